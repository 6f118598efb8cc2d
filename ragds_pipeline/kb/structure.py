"""What a document is made of: its sections (headings) and its leaf blocks, with exact offsets.

What belongs here: reading structure out of a normalised text, once. What does not: cutting the text into
passages (``kb.passages``) or into quotable units (``spans.sentences``); both work on the blocks found here.

Markdown is read by the block rules of markdown-it-py alone: its inline rules give no positions and take
half of the time. Block rules say on which lines a block stands; offsets are those lines' starts, hence
exact. A line ends at LF and nowhere else, for markdown-it as here, so that VT, FF, NEL or U+2028 in a text
cannot shift anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ragds_pipeline.kb.block_rules import with_fast_rules
from ragds_pipeline.records import Section
from ragds_pipeline.spans.blocks import (
    CODE,
    COMMENT,
    FENCE,
    FRONT_MATTER,
    HEADING,
    HTML,
    LIST_ITEM,
    PARAGRAPH,
    REFERENCE,
    RULE,
    TABLE,
    Block,
)

STRUCTURE_VERSION = "1"

__all__ = ["STRUCTURE_VERSION", "Block", "Structure", "blocks", "parse", "sections"]


class Structure(NamedTuple):
    """All that one parse gives. ``sections[0]`` is the root."""

    sections: list[Section]
    blocks: list[Block]


class _Heading(NamedTuple):
    level: int
    text: str
    start_char: int
    body_start_char: int


def parse(document_path: str, text: str, text_sha256: str, front_matter_end: int) -> Structure:
    """Read a document's sections and blocks in one parse.

    Args:
        document_path: path in the KB; ``.txt`` is plain text (paragraphs between blank lines, no headings),
            all else Markdown.
        text: the normalised text.
        text_sha256: its hash, copied into the sections.
        front_matter_end: from ``kb.normalise.front_matter_end``; what lies before is one block and never a
        heading.

    Headings inside a list item or a block quote, and HTML headings, begin no section: they head a part of
    the item or the quotation, not of the document.
    """
    found, headings = _read(text, front_matter_end, markdown=not document_path.lower().endswith(".txt"))
    return Structure(_sections(document_path, text, text_sha256, front_matter_end, headings), found)


def sections(document_path: str, text: str, text_sha256: str, front_matter_end: int) -> list[Section]:
    """Return the sections of :func:`parse` alone."""
    return parse(document_path, text, text_sha256, front_matter_end).sections


def blocks(text: str, front_matter_end: int, *, markdown: bool = True) -> list[Block]:
    """Return the blocks of :func:`parse` alone."""
    return _read(text, front_matter_end, markdown=markdown)[0]


def _read(text: str, front_matter_end: int, *, markdown: bool) -> tuple[list[Block], list[_Heading]]:
    found: list[Block] = []
    headings: list[_Heading] = []
    if front_matter_end:
        found.append(Block(FRONT_MATTER, 0, len(text[:front_matter_end].rstrip()), 0, 0))
    if markdown:
        _read_markdown(text, front_matter_end, found, headings)
    else:
        _fill(text, front_matter_end, len(text), found)
    return found, headings


@cache
def _parser() -> MarkdownIt:
    # The nesting limit of 20 would drop the tail of a document that quotes or lists more deeply than that.
    return with_fast_rules(MarkdownIt("commonmark", {"maxNesting": 100}).enable("table"))


_CONTAINERS = frozenset({"bullet_list_open", "ordered_list_open", "list_item_open", "blockquote_open"})
_CONTAINERS_END = frozenset({"bullet_list_close", "ordered_list_close", "list_item_close", "blockquote_close"})
_LEAVES = {
    "paragraph_open": PARAGRAPH,
    "heading_open": HEADING,
    "table_open": TABLE,
    "fence": FENCE,
    "code_block": CODE,
    "html_block": HTML,
    "hr": RULE,
}


def _read_markdown(text: str, offset: int, found: list[Block], headings: list[_Heading]) -> None:
    starts = _line_starts(text, offset)
    tokens: list[Token] = []
    env: dict[str, Any] = {}
    parser = _parser()
    parser.block.parse(text[offset:], parser, env, tokens)
    references = frozenset(starts[line] for line in _reference_lines(env))
    containers: list[str] = []
    outermost: int | None = None  # level of the first container opened since the last leaf
    covered = offset
    for position, token in enumerate(tokens):
        type_ = token.type
        kind = _LEAVES.get(type_)
        if kind is not None:
            start, after = (starts[line] for line in token.map or ())
            if start > covered and not text[covered:start].isspace():
                _fill(text, covered, start, found, references)
            level = 0
            if kind == HEADING and not containers:
                level = int(token.tag[1])
                headings.append(_Heading(level, _heading_text(tokens[position + 1].content), start, after))
            elif kind == PARAGRAPH and containers and containers[-1] == "list_item_open":
                kind = LIST_ITEM
            elif kind == HTML and _is_comment(token.content):
                kind = COMMENT
            # A block may claim the blank lines after it; they belong to none.
            end = start + len(text[start:after].rstrip())
            if end > start:
                found.append(Block(kind, start, end, token.level if outermost is None else outermost, level))
            outermost = None
            covered = after
        elif type_ in _CONTAINERS:
            containers.append(type_)
            if outermost is None:
                outermost = token.level
        elif type_ in _CONTAINERS_END:
            containers.pop()
            outermost = None
    _fill(text, covered, len(text), found, references)


_COMMENTS = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def _is_comment(html: str) -> bool:
    html = html.lstrip()
    return html.startswith("<!--") and not _COMMENTS.sub("", html).strip()


def _line_starts(text: str, offset: int) -> list[int]:
    """Return the offset of each line from ``offset`` on, and the text's length as one more."""
    lines = (text[offset:] if offset else text).split("\n")
    starts = list(accumulate(map(len, lines), lambda start, length: start + length + 1, initial=offset))
    starts[-1] = len(text)
    return starts


def _reference_lines(env: dict[str, Any]) -> Iterator[int]:
    for definition in (*env.get("references", {}).values(), *env.get("duplicate_refs", ())):
        yield from range(*definition["map"])


_PARAGRAPHS = re.compile(r"^[^\S\n]*+\S[^\n]*(?:\n[^\S\n]*+\S[^\n]*)*", re.MULTILINE)


def _fill(text: str, start: int, end: int, found: list[Block], references: frozenset[int] = frozenset()) -> None:
    """Append blocks for the lines of ``[start, end)`` that no token covers.

    These are link targets (which begin at an offset of ``references``), list and quote markers without
    content and, in plain text, everything.
    """
    for match in _PARAGRAPHS.finditer(text, start, end):
        kind = REFERENCE if match.start() in references else PARAGRAPH
        found.append(Block(kind, match.start(), match.start() + len(match[0].rstrip()), 0, 0))


_ATTRIBUTES = re.compile(r" ?\{[:#.][^{}]*\}$")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|\*|_|`)(?!\1)(.+?)\1")


def _heading_text(content: str) -> str:
    """Return a heading as plain text: no ``{#id}``, a link as its text, no emphasis around the whole."""
    text = _ATTRIBUTES.sub("", " ".join(content.split()))
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    emphasised = _EMPHASIS.fullmatch(text)
    return emphasised[2].strip() if emphasised else text


def _sections(
    document_path: str, text: str, text_sha256: str, front_matter_end: int, headings: list[_Heading]
) -> list[Section]:
    ends = [len(text)] * len(headings)
    parents = [0] * len(headings)
    open_: list[int] = []
    for index, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            ends[open_.pop()] = heading.start_char
        parents[index] = open_[-1] + 1 if open_ else 0
        open_.append(index)
    found = [Section(document_path, text_sha256, 0, -1, 0, "", (), 0, front_matter_end, len(text))]
    for index, heading in enumerate(headings):
        path = (*found[parents[index]].heading_path, heading.text)
        found.append(
            Section(
                document_path=document_path,
                text_sha256=text_sha256,
                index=index + 1,
                parent=parents[index],
                level=heading.level,
                heading=heading.text,
                heading_path=path,
                start_char=heading.start_char,
                body_start_char=heading.body_start_char,
                end_char=ends[index],
            )
        )
    return found
