from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.kb.normalise import decode, front_matter_end, normalise
from ragds_pipeline.kb.structure import blocks
from ragds_pipeline.spans.blocks import Block
from ragds_pipeline.spans.sentences import MAX_SENTENCE_CHARS, sentences
from ragds_pipeline_tests.kb.markdown_texts import texts
from ragds_pipeline_tests.shared_data import shared_data


def _units(text: str, *, markdown: bool = True) -> list[str]:
    found = blocks(text, front_matter_end(text), markdown=markdown)
    return [text[start:end] for start, end in sentences(text, found)]


def _assert_sound(text: str, found: list[Block], start_char: int, end_char: int) -> None:
    previous = start_char
    for start, end in sentences(text, found, start_char, end_char):
        assert previous <= start < end <= end_char
        assert text[start:end] == text[start:end].strip()
        assert end - start <= MAX_SENTENCE_CHARS + 1
        assert any(block.start_char <= start and end <= block.end_char for block in found)
        previous = end


@given(texts, st.integers(0, 300), st.integers(0, 300))
def test_units_are_in_order_trimmed_and_each_in_one_block(text: str, a: int, b: int) -> None:
    for markdown in (True, False):
        found = blocks(text, front_matter_end(text), markdown=markdown)
        _assert_sound(text, found, 0, len(text))
        start, end = sorted((min(a, len(text)), min(b, len(text))))
        _assert_sound(text, found, start, end)


@given(texts)
def test_prose_is_covered(text: str) -> None:
    """In plain text all letters and digits stand in some unit, but for the numbers of lists."""
    found = blocks(text, 0, markdown=False)
    shown = "".join(text[s:e] for s, e in sentences(text, found))
    for letter in ("Rule", "日", "ï"):
        assert shown.count(letter) == text.count(letter)


def test_prose_headings_and_wrapped_lines() -> None:
    text = "# The title #\n\n## In C#\n\nOne line\nwrapped. Two e.g. this.\n\nSetext\n------\n\nLast\n"
    assert _units(text) == ["The title", "In C#", "One line\nwrapped.", "Two e.g. this.", "Setext", "Last"]


def test_markers_are_left_out() -> None:
    text = "- One. Two.\n  - [x] nested\n1. first\n\n   second para\n\n> quoted. More\n> of it.\n\n- # head\n"
    assert _units(text) == [
        "One.",
        "Two.",
        "nested",
        "first",
        "second para",
        "quoted.",
        "More\n> of it.",
        "head",
    ]


def test_each_row_is_a_unit_and_the_delimiter_row_is_none() -> None:
    text = "| a | b |\n|:--|--:|\n| 1 | x \\| y. Z |\n| 2 | - |\n"
    assert _units(text) == ["| a | b |", "| 1 | x \\| y. Z |", "| 2 | - |"]


def test_code_is_one_unit_if_short_else_line_by_line() -> None:
    assert _units("```py\na = 1\n\nb = 2\n```\n") == ["a = 1\n\nb = 2"]
    assert _units("~~~\nopen\n") == ["open"]
    assert _units("```\n```\n") == []
    assert _units("    indented\n") == ["indented"]
    assert _units("- ```\n  in a list\n  ```\n") == ["in a list"]
    assert _units("```\n" + "x = 1\n" * 200 + "```\n") == ["x = 1"] * 200


def test_what_proves_nothing_is_left_out() -> None:
    text = "---\ntitle: x\n---\n<!-- a comment -->\n\n***\n\n[ref]: http://x 'T'\n\n!!! ---\n\nText\n"
    assert _units(text) == ["Text"]


def test_text_between_html_tags_is_shown() -> None:
    text = "<div>\n<b>Bold</b> text <!-- no\nno -->more\n</div>\n\n<style>\np { color: red }\n</style>\n"
    assert _units(text) == ["Bold", "text", "more"]


def test_a_long_sentence_is_cut_at_clauses() -> None:
    found = _units("word word, " * 300)
    assert all(unit.endswith("word,") and len(unit) <= MAX_SENTENCE_CHARS for unit in found)
    assert len(found) == 4
    assert all(len(unit) <= MAX_SENTENCE_CHARS for unit in _units("語" * 5_000))


def test_a_range_clips() -> None:
    text = "First one. Second one.\n\nThird one.\n"
    found = blocks(text, 0)
    assert [text[s:e] for s, e in sentences(text, found, 11, 29)] == ["Second one.", "Third"]
    assert sentences(text, found, 5, 5) == []


@pytest.mark.parametrize("source", ["18f-handbook/rev-2023-12-01", "srd-5.2.1-datapizza/docs"])
def test_real_documents(source: str) -> None:
    for path in sorted(shared_data(source).rglob("*.md")):
        text = normalise(decode(path.read_bytes()).text)
        _assert_sound(text, blocks(text, front_matter_end(text)), 0, len(text))
