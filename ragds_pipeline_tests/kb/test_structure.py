from __future__ import annotations

from hypothesis import given

from ragds_pipeline.kb.normalise import front_matter_end
from ragds_pipeline.kb.structure import Structure, blocks, parse, sections
from ragds_pipeline.records import Section
from ragds_pipeline_tests.kb.markdown_texts import texts


def _parse(text: str, path: str = "a.md") -> Structure:
    return parse(path, text, "sha", front_matter_end(text))


def _headings(text: str) -> list[tuple[int, str]]:
    return [(section.level, section.heading) for section in _parse(text).sections[1:]]


def _kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind, text[block.start_char : block.end_char]) for block in _parse(text).blocks]


@given(texts)
def test_blocks_are_whole_lines_in_order_with_only_white_space_between(text: str) -> None:
    for path in ("a.md", "a.txt"):
        previous = 0
        for block in _parse(text, path).blocks:
            assert previous <= block.start_char < block.end_char <= len(text)
            assert not text[previous : block.start_char].strip()
            assert block.start_char == 0 or text[block.start_char - 1] == "\n"
            assert not text[block.end_char : text.find("\n", block.end_char) % (len(text) + 1)].strip()
            previous = block.end_char
        assert not text[previous:].strip()


@given(texts)
def test_sections_nest_and_begin_at_their_heading_lines(text: str) -> None:
    found = _parse(text).sections
    root = found[0]
    assert (root.level, root.parent, root.start_char, root.end_char) == (0, -1, 0, len(text))
    for index, section in enumerate(found):
        assert section.index == index
        assert section.start_char <= section.body_start_char <= section.end_char
        if index:
            parent = found[section.parent]
            assert section.parent < index and parent.level < section.level
            assert parent.start_char <= section.start_char and section.end_char <= parent.end_char
            assert section.heading_path == (*parent.heading_path, section.heading)
            assert text[section.start_char - 1 : section.start_char] in ("", "\n")
            assert section.end_char == _next_of_level(found, index, len(text))


def _next_of_level(found: list[Section], index: int, end: int) -> int:
    later = (s.start_char for s in found[index + 1 :] if s.level <= found[index].level)
    return next(later, end)


def test_a_heading_whose_text_occurs_before() -> None:
    text = "Rules and Scope are below.\n\n# Rules\n\nRules\n\n## Scope\n\nScope\n"
    root, rules, scope = _parse(text).sections
    assert (root.start_char, root.body_start_char) == (0, 0)
    assert text[rules.start_char :].startswith("# Rules\n") and text[rules.body_start_char :].startswith("\nRules")
    assert scope.heading_path == ("Rules", "Scope") and text[scope.start_char :].startswith("## Scope")


def test_marks_in_fences_comments_and_front_matter_are_no_headings() -> None:
    front = "---\n# no: 1\ntitle: x\n---\n"
    text = front + "```\n# no\n```\n<!--\n# no\n\n# no\n-->\n    # no\n\n\\# no\n#no\n# Yes #\n"
    assert _headings(text) == [(1, "Yes")]
    assert sections("a.md", "```\n# no\n", "sha", 0)[1:] == []


def test_setext_and_atx_and_duplicate_headings() -> None:
    text = "Title\nin two lines\n===\n\nSame\n----\na\n\n## Same ##\nb\n"
    assert _headings(text) == [(1, "Title in two lines"), (2, "Same"), (2, "Same")]
    first, second = _parse(text).sections[2:]
    assert text[first.start_char : first.end_char] == "Same\n----\na\n\n"
    assert text[second.body_start_char : second.end_char] == "b\n"


def test_headings_in_lists_and_quotes_begin_no_section() -> None:
    text = "# A\n- # in a list\n> # in a quote\n\n<h1>html</h1>\n"
    assert _headings(text) == [(1, "A")]
    assert [kind for kind, _ in _kinds(text)] == ["heading", "heading", "heading", "html"]
    assert [block.level for block in _parse(text).blocks] == [1, 0, 0, 0]


def test_heading_text_is_plain() -> None:
    text = "# **Bold** {#id}\n## [Link](u) and `x`\n### `code`\n#### __init__ and a_b_c\n##### {% raw %}\n"
    assert [heading for _, heading in _headings(text)] == [
        "Bold",
        "Link and `x`",
        "code",
        "__init__ and a_b_c",
        "{% raw %}",
    ]


def test_levels_may_be_skipped() -> None:
    paths = [section.heading_path for section in _parse("### C\n# A\n#### D\n## B\n").sections]
    assert paths == [(), ("C",), ("A",), ("A", "D"), ("A", "B")]


def test_odd_line_separators_shift_nothing() -> None:
    text = "a\x0bb\x0cc\x85d\u2028e\u2029f\x1cg\n\n# H\u2028x\n\ntext 🚀 rocket\n"
    (_, section) = _parse(text).sections
    assert section.start_char == text.index("# H")
    assert text[section.body_start_char :] == "\ntext 🚀 rocket\n"


def test_kinds_of_blocks() -> None:
    text = (
        "para\nwrapped\n\n- one\n  - two\n\n    more\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | x\\|y |\n\n"
        "```py\ncode\n```\n\n    indented\n\n---\n\n<div>x</div>\n\n<!-- c -->\n\n[r]: http://x 'T'\n\n- \n"
    )
    assert _kinds(text) == [
        ("paragraph", "para\nwrapped"),
        ("list_item", "- one"),
        ("list_item", "  - two"),
        ("list_item", "    more"),
        ("paragraph", "> quote"),
        ("table", "| a | b |\n|---|---|\n| 1 | x\\|y |"),
        ("fence", "```py\ncode\n```"),
        ("code", "    indented"),
        ("rule", "---"),
        ("html", "<div>x</div>"),
        ("comment", "<!-- c -->"),
        ("reference", "[r]: http://x 'T'"),
        ("paragraph", "-"),
    ]
    assert [block.depth for block in _parse(text).blocks][:5] == [0, 0, 2, 4, 0]


def test_front_matter_is_one_block() -> None:
    text = "---\ntitle: x\n---\n"
    assert _kinds(text) == [("front_matter", "---\ntitle: x\n---")]
    assert _parse(text).sections[0].body_start_char == len(text)


def test_nothing_is_lost_below_the_nesting_limit() -> None:
    text = ">" * 300 + " deep\n\nafter\n"
    assert "".join(content for _, content in _kinds(text)).endswith("after")


def test_empty_text() -> None:
    assert _parse("").blocks == []
    assert len(_parse("").sections) == 1


def test_plain_text_has_paragraphs_only() -> None:
    text = "# not a heading\n- not a list\n\n\x0c\n  second\n"
    assert [section.heading for section in _parse(text, "a.TXT").sections] == [""]
    found = blocks(text, 0, markdown=False)
    assert [text[b.start_char : b.end_char] for b in found] == ["# not a heading\n- not a list", "  second"]
