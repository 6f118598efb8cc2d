"""Cutting a document into passages: the pieces shown to a model, along the document's structure.

What belongs here: where to cut. What does not: reading the structure (``kb.structure``) and the rules of
running text (``spans.breaks``).

The text is first taken apart into units that should stay whole: a block with the headings above it, or, where
that is longer than a passage may be, its rows, lines or sentences. Passages are then filled with units from
the start; each ends at the unit boundary with the least cost, which is what the boundary breaks apart
(nothing before a heading, most inside a line) plus how far the passage is from the target size.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from ragds_pipeline.records import Passage, Section
from ragds_pipeline.spans.blocks import CODE, COMMENT, FENCE, FRONT_MATTER, HEADING, HTML, TABLE, Block
from ragds_pipeline.spans.breaks import cut_before, sentence_ends, skip_blank

# What a cut costs, on the scale on which a passage of no size at all costs 1.
_AT_HEADING = 0.0
_BETWEEN_BLOCKS = 0.45
_AFTER_COLON = 0.65
"""The line before introduces what follows."""
_INSIDE_LIST = 0.7
_INSIDE_BLOCK = 0.85
_INSIDE_SENTENCE = 0.95
_AFTER_FRONT_MATTER = 0.95
"""Front matter says what the document is and helps nobody alone."""

_COLONS = ":\uff1a"

_TINY = 0.5
"""Below this share of the target a passage may run on into the next top-level section."""

_LINED = frozenset({TABLE, FENCE, CODE, HTML, COMMENT, FRONT_MATTER})
"""Kinds in which the line is the unit: a row or line of code is not cut, even if longer than a passage."""

_HARD_LIMIT = 2
"""A row or line of code longer than this many times ``max_chars`` is cut after all, at white space."""


class _Piece(NamedTuple):
    start: int
    end: int
    cost: float
    """Of a cut before it."""


class _Unit(NamedTuple):
    start: int
    end: int
    """End of its text; the white space up to the next unit belongs to the unit but not to its size."""
    cost: float
    """Of a cut before it."""
    top: bool
    """True where it begins with a top-level heading."""


def passage_stem(path: str, all_paths: Iterable[str]) -> str:
    """Return what the ids of a document's passages begin with: its path without the extension.

    Where two documents differ in the extension only (``a.md`` and ``a.txt``), both keep it.
    """
    return passage_stems(all_paths).get(path, _stem(path))


def passage_stems(all_paths: Iterable[str]) -> dict[str, str]:
    """Return :func:`passage_stem` of every path at once."""
    stems = {path: _stem(path) for path in all_paths}
    counts = Counter(stems.values())
    # "a" and "a.md": the stem of the second is the whole path of the first.
    return {
        path: path if counts[stem] > 1 or (stem != path and stem in stems) else stem for path, stem in stems.items()
    }


def _stem(path: str) -> str:
    return str(PurePosixPath(path).with_suffix("")) if PurePosixPath(path).suffix else path


def passages(
    document_path: str,
    text: str,
    text_sha256: str,
    sections: Sequence[Section],
    blocks: Sequence[Block],
    target_chars: int,
    max_chars: int,
    *,
    stem: str | None = None,
) -> list[Passage]:
    """Cut a document into passages that cover it without gap or overlap.

    Args:
        document_path: path in the KB.
        text: the normalised text. No passages come of an empty one.
        text_sha256: its hash.
        sections: from ``kb.structure.parse``.
        blocks: from the same parse.
        target_chars: the size to aim at, in characters.
        max_chars: the most a passage may hold, not counting white space at its end. Only a table row or a
            line of code, which is not cut below twice this size, or one over-long grapheme can make a
            passage larger.
        stem: what ids begin with, see :func:`passage_stem`; by default the path without its extension.

    Raises:
        ValueError: unless ``0 < target_chars <= max_chars``.
    """
    if not 0 < target_chars <= max_chars:
        raise ValueError(f"target_chars {target_chars} and max_chars {max_chars}: 0 < target <= max is needed")
    if not text:
        return []
    stem = _stem(document_path) if stem is None else stem
    units = _units(text, blocks, _top_level(blocks), max_chars) or [_Unit(0, 0, 0.0, False)]
    starts = [0, *_cuts(units, target_chars, max_chars), len(text)]
    body = next((block.start_char for block in blocks if block.kind != FRONT_MATTER), 0)
    made: list[Passage] = []
    section = 0
    for number, (start, end) in enumerate(pairwise(starts), start=1):
        # The first passage is in the section of its first text, past blank lines and front matter.
        anchor = max(start, body) if body < end else start
        while section + 1 < len(sections) and sections[section + 1].start_char <= anchor:
            section += 1
        made.append(
            Passage(
                id=f"{stem}#{number}",
                document_path=document_path,
                text_sha256=text_sha256,
                heading_path=sections[section].heading_path if sections else (),
                start_char=start,
                end_char=end,
                content=text[start:end],
            )
        )
    return made


def _top_level(blocks: Sequence[Block]) -> int:
    """Return the highest heading level used more than once (a lone title splits nothing), or 0."""
    counts = Counter(block.level for block in blocks if block.level)
    return min((level for level, count in counts.items() if count > 1), default=0)


def _cuts(units: Sequence[_Unit], target: int, limit: int) -> list[int]:
    """Return where the second and each further passage begins."""
    cuts: list[int] = []
    first, count = 0, len(units)
    start = 0
    while True:
        best, best_cost = count, float("inf")
        for index in range(first + 1, count):
            size = units[index - 1].end - start
            if size > limit and index > first + 1:
                break
            cost = units[index].cost
            cost += (target - size) / target if size < target else (size - target) / (limit - target or 1)
            if units[index].top and size >= target * _TINY:
                best = index
                break
            if cost <= best_cost:
                best, best_cost = index, cost
        else:
            # All that is left fits: keep it together if it is about a passage, or if the rest would be a
            # scrap.
            size = units[-1].end - start
            if size <= limit and (size <= target or size - (units[best - 1].end - start) < target * _TINY / 2):
                best = count
        if best >= count:
            return cuts
        first, start = best, units[best].start
        cuts.append(start)


def _units(text: str, blocks: Sequence[Block], top_level: int, limit: int) -> list[_Unit]:
    """Take the blocks apart into units, with what a cut before each of them costs."""
    units: list[_Unit] = []
    group = 0  # index of the first block of the unit being built
    for index, block in enumerate(blocks):
        if block.kind == HEADING and index + 1 < len(blocks):
            continue  # a heading stays with what follows
        lead = blocks[group]
        cost = _cost(text, lead, blocks[group - 1] if group else None)
        unit = _Unit(lead.start_char, block.end_char, cost, bool(lead.level) and lead.level <= top_level)
        if unit.end - unit.start <= limit:
            units.append(unit)
        else:
            units.extend(_apart(text, unit, blocks[group : index + 1], limit))
        group = index + 1
    return units


def _cost(text: str, block: Block, previous: Block | None) -> float:
    """Return what a cut before ``block`` costs."""
    if previous is not None and previous.kind == FRONT_MATTER:
        return _AFTER_FRONT_MATTER
    if block.level:
        return _AT_HEADING
    if block.depth:
        return _INSIDE_LIST
    introduced = previous is not None and text[previous.end_char - 1] in _COLONS
    return _AFTER_COLON if introduced else _BETWEEN_BLOCKS


def _apart(text: str, unit: _Unit, blocks: Sequence[Block], limit: int) -> Iterator[_Unit]:
    """Take a unit that is too long for a passage apart into lines or sentences.

    Headings stay with the first piece of the block below them, unless they fill half a passage themselves.
    """
    start, cost, top = unit.start, unit.cost, unit.top
    for index, block in enumerate(blocks):
        room = limit - (skip_blank(text, block.start_char, block.end_char) - start) if index else limit
        if room < limit / 2:
            yield _Unit(start, blocks[index - 1].end_char, cost, top)
            start, cost, top, room = block.start_char, _INSIDE_BLOCK, False, limit
        cut = _lines if block.kind in _LINED else _prose
        pieces = cut(text, block, limit, room)
        for number, (piece_start, piece_end, piece_cost) in enumerate(pieces):
            if number:
                start, cost, top = piece_start, piece_cost, False
            if block is blocks[-1] or number < len(pieces) - 1:
                yield _Unit(start, piece_end, cost, top)


_LINE = re.compile(r"^[^\S\n]*+\S[^\n]*", re.MULTILINE)


def _lines(text: str, block: Block, limit: int, room: int) -> list[_Piece]:
    """Return the lines of a table or a code block."""
    pieces: list[_Piece] = []
    for match in _LINE.finditer(text, block.start_char, block.end_char):
        start, end = match.start(), match.start() + len(match[0].rstrip())
        if end - start <= limit * _HARD_LIMIT:
            pieces.append(_Piece(start, end, _INSIDE_BLOCK))
        else:
            pieces.extend(_pieces(text, start, end, limit, limit if pieces else room))
    return pieces


def _prose(text: str, block: Block, limit: int, room: int) -> list[_Piece]:
    """Return the sentences of a paragraph; a heading is all one."""
    pieces: list[_Piece] = []
    start = block.start_char
    ends = [] if block.kind == HEADING else sentence_ends(text, start, block.end_char)
    for end in (*ends, block.end_char):
        pieces.extend(_pieces(text, start, end, limit, limit if pieces else room))
        start = skip_blank(text, end, block.end_char)
    return pieces


def _pieces(text: str, start: int, end: int, limit: int, room: int) -> Iterator[_Piece]:
    """Cut a line or sentence into pieces of at most ``limit`` characters, the first of at most ``room``."""
    cost = _INSIDE_BLOCK
    first = skip_blank(text, start, end)  # indentation counts for nothing
    while end - first > room:
        cut = cut_before(text, first, first + room)
        yield _Piece(start, start + len(text[start:cut].rstrip()), cost)
        start, cost, room = cut, _INSIDE_SENTENCE, limit
        first = start
    yield _Piece(start, end, cost)
