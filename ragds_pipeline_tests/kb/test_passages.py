from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.kb.normalise import decode, front_matter_end, normalise
from ragds_pipeline.kb.passages import passage_stem, passage_stems, passages
from ragds_pipeline.kb.structure import parse
from ragds_pipeline.records import Passage
from ragds_pipeline.spans.breaks import inside_grapheme, is_wide
from ragds_pipeline_tests.kb.markdown_texts import texts
from ragds_pipeline_tests.shared_data import shared_data

SOURCES = (
    "18f-handbook/rev-2023-12-01",
    "srd-5.2.1-datapizza/docs",
    "chroma-chunking-evaluation/corpora/state_of_the_union.md",
)


def _cut(text: str, target: int = 200, limit: int = 400, path: str = "docs/a.md") -> list[Passage]:
    structure = parse(path, text, "sha", front_matter_end(text))
    return passages(path, text, "sha", structure.sections, structure.blocks, target, limit)


def _contents(text: str, target: int = 200, limit: int = 400) -> list[str]:
    return [passage.content for passage in _cut(text, target, limit)]


def _assert_covers(text: str, made: list[Passage]) -> None:
    position = 0
    for number, passage in enumerate(made, start=1):
        assert passage.id == f"docs/a#{number}"
        assert passage.start_char == position < passage.end_char
        assert passage.content == text[passage.start_char : passage.end_char]
        position = passage.end_char
    assert position == len(text)


@given(texts, st.integers(1, 60), st.integers(0, 120))
def test_passages_cover_the_text_and_cut_no_word_row_or_grapheme(text: str, target: int, more: int) -> None:
    limit = target + more
    for path in ("docs/a.md", "docs/a.txt"):
        structure = parse(path, text, "sha", front_matter_end(text))
        made = passages(path, text, "sha", structure.sections, structure.blocks, target, limit)
        _assert_covers(text, made)
        tables = [block for block in structure.blocks if block.kind == "table"]
        for passage in made[1:]:
            cut = passage.start_char
            assert not inside_grapheme(text, cut) or _longest_run(text, cut) > limit / 2
            if text[cut - 1].isalnum() and text[cut].isalnum() and not is_wide(text[cut - 1]):
                assert _longest_run(text, cut) > limit / 4
            if any(table.start_char < cut < table.end_char for table in tables):
                assert text[cut - 1] == "\n" or _line_length(text, cut) > 2 * limit
            assert passage.content.strip() and (text[cut].strip() or text[cut - 1] == "\n")


def _longest_run(text: str, position: int) -> int:
    """Return the length of the word around ``position``."""
    start = end = position
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return end - start


def _line_length(text: str, position: int) -> int:
    return len(text) - len(text[:position].rpartition("\n")[0]) - len(text[position:].partition("\n")[2])


@given(texts)
def test_only_rows_and_code_exceed_the_limit(text: str) -> None:
    target, limit = 40, 80
    lined = {"table", "fence", "code", "html", "comment", "front_matter"}
    structure = parse("docs/a.md", text, "sha", front_matter_end(text))
    for passage in passages("docs/a.md", text, "sha", structure.sections, structure.blocks, target, limit):
        inside = [b for b in structure.blocks if b.start_char < passage.end_char and b.end_char > passage.start_char]
        if not any(block.kind in lined for block in inside):
            first = inside[0].start_char if passage.start_char == 0 and inside else passage.start_char
            assert len(text[first : passage.end_char].strip()) <= limit
        assert len(passage.content.strip()) <= 2 * limit + limit


def test_empty_and_blank_texts() -> None:
    assert _cut("") == []
    assert _contents(" \n\n\t\n") == [" \n\n\t\n"]


def test_front_matter_only() -> None:
    (passage,) = _cut("---\ntitle: x\n---\n")
    assert passage.heading_path == ()


def test_sizes_must_make_sense() -> None:
    for target, limit in ((0, 10), (11, 10), (-1, 5)):
        with pytest.raises(ValueError, match="target_chars"):
            _cut("a", target, limit)


def test_cuts_before_headings_and_keeps_them_with_their_text() -> None:
    text = "# Title\n\n" + "".join(f"## S{n}\n\n{'Word ' * 34}end.\n\n" for n in range(4))
    made = _cut(text)
    assert [passage.heading_path for passage in made] == [
        ("Title",),
        *(("Title", f"S{n}") for n in range(1, 4)),
    ]
    assert all(passage.content.rstrip().endswith("end.") for passage in made)


def test_small_sections_share_a_passage() -> None:
    text = "".join(f"## S{n}\n\nShort text.\n\n" for n in range(30))
    made = _contents(text)
    assert all(content.startswith("## S") for content in made)
    assert all(100 <= len(content.rstrip()) <= 220 for content in made[:-1])


def test_a_heading_never_ends_a_passage() -> None:
    for size in range(150, 420, 7):
        text = f"{'word ' * (size // 5)}\n\n# A\n\n## B\n\n{'next ' * 90}end.\n"
        for content in _contents(text):
            assert not content.rstrip().endswith(("# A", "## B"))


def test_front_matter_goes_with_the_first_section_and_takes_its_heading() -> None:
    (passage,) = _cut("---\ntitle: x\n---\n\n# A\n\ntext\n")
    assert passage.heading_path == ("A",)


def test_a_fence_that_fits_is_whole_and_a_long_one_is_cut_between_lines() -> None:
    fence = "```\n" + "x = 1\n" * 50 + "```\n"
    assert any(
        fence.strip() in content for content in _contents("Text before it. " * 10 + "\n\n" + fence + "\nafter\n")
    )
    long = "```\n" + "x = 1\n" * 300 + "```\n"
    assert all(content.endswith("\n") for content in _contents(long))


def test_rows_are_whole_up_to_the_hard_limit() -> None:
    row = "| " + "cell " * 120 + "|\n"
    made = _contents("| a |\n|---|\n" + row * 3)
    assert all(content.endswith("|\n") for content in made)
    huge = "| " + "cell " * 400 + "|\n"
    for content in _contents("| a |\n|---|\n" + huge):
        assert len(content) <= 401 and (content.endswith((" ", "\n")))


def test_one_enormous_line() -> None:
    assert all(len(content.rstrip()) <= 400 for content in _contents("word " * 5_000))
    assert all(len(content) <= 400 for content in _contents("x" * 5_000))


def test_text_without_spaces_is_cut_after_sentences_and_commas() -> None:
    made = _contents("経費の精算は翌月末までに申請してください。" * 60)
    assert all(content.endswith("。") for content in made)
    made = _contents("経費の精算は、翌月末までに申請してください" * 60)
    assert all(content.endswith("、") for content in made[:-1])
    assert len(_contents("経" * 1_000)) == 3
    assert all(len(content) % 5 == 0 for content in _contents("👩‍👩‍👧" * 200))


def test_blank_runs_make_no_blank_passages() -> None:
    made = _contents("a\n\n" + "\n" * 5_000 + "b " + " " * 5_000 + "c\n")
    assert all(content.strip() for content in made)


def test_runs_of_one_character_take_linear_time() -> None:
    """Each of these once took the square of its length, that is hours, in one regular expression or another."""
    for run in ("." * 100_000, "a" + " " * 100_000 + "b", "# a" + " " * 100_000 + "b", ".”" * 50_000):
        _assert_covers(run, _cut(run))


def test_nested_lists_are_cut_between_items() -> None:
    items = "".join(f"- item {n} {'word ' * 8}\n  - sub {n} {'word ' * 8}\n" for n in range(30))
    assert all(content.startswith(("- item", "  - sub")) for content in _contents(items))


def test_stems_that_collide_keep_their_extension() -> None:
    paths = ["a.md", "a.txt", "b/a.md", "v1.2/notes.md", "LICENSE", "LICENSE.md", ".hidden"]
    assert passage_stems(paths) == {
        "a.md": "a.md",
        "a.txt": "a.txt",
        "b/a.md": "b/a",
        "v1.2/notes.md": "v1.2/notes",
        "LICENSE": "LICENSE",
        "LICENSE.md": "LICENSE.md",
        ".hidden": ".hidden",
    }
    assert passage_stem("a.md", ["a.md", "b.md"]) == "a"


@given(st.lists(st.sampled_from(["a", "a.md", "a.md.txt", "a.md.md", "a.txt", "b/a.md", "a.md.txt.md"]), unique=True))
def test_stems_are_unique(paths: list[str]) -> None:
    assert len(set(passage_stems(paths).values())) == len(paths)


@pytest.mark.parametrize("source", SOURCES)
def test_real_documents(source: str) -> None:
    root = shared_data(source)
    for path in [root] if root.is_file() else sorted(root.rglob("*.md")):
        text = normalise(decode(path.read_bytes()).text)
        structure = parse("docs/a.md", text, "sha", front_matter_end(text))
        made = passages("docs/a.md", text, "sha", structure.sections, structure.blocks, 1_200, 2_400)
        _assert_covers(text, made)
        headings = {block.end_char for block in structure.blocks if block.level}
        for passage in made[:-1]:
            assert passage.start_char + len(passage.content.rstrip()) not in headings, passage.id
            assert passage.end_char == len(text) or text[passage.end_char - 1].isspace(), passage.id
        assert all(len(passage.content.rstrip()) <= 2_400 for passage in made), path
