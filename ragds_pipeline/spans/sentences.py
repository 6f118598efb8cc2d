"""The units of a document that can be quoted as evidence: sentences, table rows, headings, pieces of code.

What belongs here: which stretches of a block are shown to a model with a number. What does not: where
sentences end in running text (``spans.breaks``) and how a quote is found again.

A unit is a plain range of the normalised text, so that evidence given by number is verbatim by
construction. Left out is what cannot prove anything: HTML comments, front matter, thematic breaks, link
targets, delimiter rows, fence markers, and whatever holds no letter or digit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragds_pipeline.spans.blocks import (
    CODE,
    COMMENT,
    FENCE,
    FRONT_MATTER,
    HEADING,
    HTML,
    REFERENCE,
    RULE,
    TABLE,
    Block,
)
from ragds_pipeline.spans.breaks import cut_before, sentence_ends

MAX_SENTENCE_CHARS = 1_000
"""A longer sentence, row or line is cut at clauses or white space."""
MAX_CODE_CHARS = 600
"""A longer code block is shown line by line."""


class Sentence(NamedTuple):
    """A quotable unit: ``[start_char, end_char)`` of the normalised text, without white space at its ends."""

    start_char: int
    end_char: int


def sentences(text: str, blocks: Sequence[Block], start_char: int = 0, end_char: int | None = None) -> list[Sentence]:
    """Return the quotable units that lie in ``[start_char, end_char)``, in order, without overlap.

    Args:
        text: the normalised text.
        blocks: all blocks of the document, from ``kb.structure``.
        start_char: where to begin, for example the start of a passage. A unit is never made of two blocks;
            one that the range cuts through is clipped to it.
        end_char: where to stop; None for the end of the text.
    """
    stop = len(text) if end_char is None else min(end_char, len(text))
    found: list[Sentence] = []
    first = max(0, bisect_right(blocks, start_char, key=_start) - 1)
    for block in blocks[first:]:
        if block.start_char >= stop:
            break
        for start, end in _units(text, block):
            clipped = _trim(text, max(start, start_char), min(end, stop))
            if clipped is not None:
                found.extend(_within_limit(text, *clipped))
    return found


def _start(block: Block) -> int:
    return block.start_char


_TELLING = re.compile(r"\w")


def _trim(text: str, start: int, end: int) -> Sentence | None:
    """Return ``[start, end)`` without white space at its ends; None if no letter or digit is left."""
    if start >= end or not _TELLING.search(text, start, end):
        return None
    while text[start].isspace():
        start += 1
    while text[end - 1].isspace():
        end -= 1
    return Sentence(start, end)


def _within_limit(text: str, start: int, end: int) -> Iterator[Sentence]:
    while end - start > MAX_SENTENCE_CHARS:
        cut = cut_before(text, start, start + MAX_SENTENCE_CHARS)
        piece = _trim(text, start, cut)
        if piece is not None:
            yield piece
        start = cut
    rest = _trim(text, start, end)
    if rest is not None:
        yield rest


def _units(text: str, block: Block) -> Iterator[tuple[int, int]]:
    if block.kind in (FRONT_MATTER, COMMENT, RULE, REFERENCE):
        return iter(())
    if block.kind == TABLE:
        return _rows(text, block)
    if block.kind in (FENCE, CODE):
        return _code(text, block)
    if block.kind == HTML:
        return _html(text, block)
    if block.kind == HEADING:
        return _heading(text, block)
    return _prose(text, block)


# List bullets and numbers, quote marks and check boxes in front of a paragraph: layout, not evidence.
_MARKERS = re.compile(r"(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])))*[ \t]*(?:\[[ xX]\](?=[ \t]))?\s*")
_QUOTE_MARKS = re.compile(r"[\s>]*")


def _prose(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a paragraph; lines that were only wrapped are one sentence."""
    start = _skip(_MARKERS, text, block.start_char, block.end_char)
    for end in sentence_ends(text, start, block.end_char):
        yield start, end
        start = _skip(_QUOTE_MARKS, text, end, block.end_char)
    yield start, block.end_char


def _skip(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    match = pattern.match(text, start, end)
    return match.end() if match else start


_ATX = re.compile(r"(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])))*[ \t]*(#{1,6})(?=\s)[ \t]*")
_UNDERLINE = re.compile(r"\n[ \t>]*(?:=+|-+)[ \t]*\Z")


def _heading(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the heading without its marks: ``#`` before and after, or the line below."""
    line = text[block.start_char : block.end_char]
    atx = _ATX.match(line)
    start = atx.end() if atx else _skip(_MARKERS, text, block.start_char, block.end_char) - block.start_char
    if atx:
        bare = line.rstrip("#")  # a closing run of # counts only after a blank: "C#" keeps its own
        end = len(bare) if bare[-1:] in (" ", "\t") else len(line)
    else:
        underline = _UNDERLINE.search(line)
        end = underline.start() if underline else len(line)
    yield block.start_char + start, block.start_char + max(start, end)


_LINE = re.compile(r"[^\n]+")
_DELIMITER_ROW = re.compile(r"[\s|:>-]*-[\s|:>-]*")


def _rows(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the header row and each data row; the delimiter row, always the second line, is none."""
    for number, line in enumerate(_LINE.finditer(text, block.start_char, block.end_char)):
        if number != 1 or not _DELIMITER_ROW.fullmatch(line[0]):
            yield _skip(_MARKERS, text, line.start(), line.end()), line.end()


_FENCE_MARK = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*[ \t>]*(`{3,}|~{3,})")


def _code(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the code between the fences as one unit, or line by line if it is long."""
    start, end = block.start_char, block.end_char
    if block.kind == FENCE:
        start, end = _between_fences(text, start, end)
    if end - start <= MAX_CODE_CHARS:
        yield start, end
        return
    for line in _LINE.finditer(text, start, end):
        yield line.span()


def _between_fences(text: str, start: int, end: int) -> tuple[int, int]:
    opening = _FENCE_MARK.match(text, start, end)
    inner = text.find("\n", start, end) + 1
    if not inner:
        return end, end
    last = text.rfind("\n", start, end) + 1
    closing = _FENCE_MARK.fullmatch(text[last:end].rstrip())
    # A fence that nobody closed runs to the end of the document or of its list item.
    closed = last >= inner and closing is not None and opening is not None and closing[1].startswith(opening[1])
    return inner, max(inner, last - 1) if closed else end


_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)


def _html(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield the stretches of text between tags, line by line."""
    start = block.start_char
    for markup in _MARKUP.finditer(text, block.start_char, block.end_char):
        yield from _text_lines(text, start, markup.start())
        start = markup.end()
    yield from _text_lines(text, start, block.end_char)


def _text_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for line in _LINE.finditer(text, start, end):
        yield line.span()
