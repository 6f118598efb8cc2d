"""Which of several places with the same words is the one that was quoted: told by the text around them.

The weights are those of the Hypothesis client (``match-quote.ts``): quote 50, prefix 20, suffix 20, position 2. Two
things are done better. Copies are compared where they begin to differ, however far out, so that boilerplate with
the same 100 characters around it can still be told apart. And the choice must hold both ways: the new place must
like the quoted copy better than any other copy of the old text, else a copy that was deleted would be taken over by
one that was always there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

QUOTE, PREFIX, SUFFIX, POSITION = 50, 20, 20, 2
MARGIN = 0.05
"""Two places whose scores are closer than this cannot be told apart."""
WIDTH = 64
"""Characters compared on either side, from where the copies differ."""
NEAREST = 20
"""Characters right beside the place, or beside where copies begin to differ."""
FARTHEST = 4_000
"""Copies that are the same over so many characters on both sides are not told apart."""
MOST_COPIES = 32
"""Above that, copies are not told apart: the work grows with their cube, and nobody quotes such text."""


class Copy(NamedTuple):
    """One place of the quote in the text that holds it."""

    path: str
    text: str
    start: int
    end: int


def context_score(old: Copy, new: Copy, width: int = WIDTH) -> float:
    """Return how alike the text around two places is, 0 to 1, both sides counted alike."""
    prefix = _alike(old.text[max(0, old.start - width) : old.start], new.text[max(0, new.start - width) : new.start])
    suffix = _alike(old.text[old.end : old.end + width], new.text[new.end : new.end + width])
    return (prefix + suffix) / 2


def best_side(old: Copy, new: Copy, width: int = WIDTH) -> float:
    """Return how alike the text on the more alike side of two places is."""
    prefix = _alike(old.text[max(0, old.start - width) : old.start], new.text[max(0, new.start - width) : new.start])
    suffix = _alike(old.text[old.end : old.end + width], new.text[new.end : new.end + width])
    return max(prefix, suffix)


class Choice(NamedTuple):
    """The place that was chosen, or None; ``gone`` says that all places belong to other copies."""

    place: int | None
    gone: bool = False


def owners(olds: Sequence[Copy], news: Sequence[Copy]) -> list[int | None]:
    """Return, for each new place, which old copy it is most like; None where that cannot be told."""
    if len(olds) > MOST_COPIES or len(news) > MOST_COPIES:
        return [None] * len(news)
    same = _agreement(olds)
    return [pick(new, olds, same) for new in news]


def told_apart(own: int, olds: Sequence[Copy], news: Sequence[Copy], owned_by: Sequence[int | None]) -> Choice:
    """Choose the new place of the old copy ``olds[own]``.

    Args:
        own: index of the quoted copy.
        olds: all copies in the old text, the quoted one included.
        news: all places in the new text.
        owned_by: from :func:`owners`.
    """
    mine = [at for at, owner in enumerate(owned_by) if owner == own]
    if not mine:
        return Choice(None, gone=all(owner is not None for owner in owned_by))
    chosen = pick(olds[own], [news[at] for at in mine])
    return Choice(None if chosen is None else mine[chosen])


def pick(own: Copy, others: Sequence[Copy], same: tuple[int, int] | None = None) -> int | None:
    """Return the index of the place whose surroundings are most like those of ``own``; None if two are as good.

    ``same`` is how far all of them agree before and after, where that is known.
    """
    alive = list(range(len(others)))
    while len(alive) > 1:
        before, after = same or _agreement([others[at] for at in alive])
        same = None
        own_sides = _outer(own, before, -1)[::-1], _outer(own, after, 1)
        scores = [_score(own, own_sides, others[at], before, after) for at in alive]
        best = max(scores)
        left = [at for at, score in zip(alive, scores, strict=True) if score > best - MARGIN]
        if len(left) == len(alive):
            return None
        alive = left
    return alive[0] if alive else None


def _agreement(copies: Sequence[Copy]) -> tuple[int, int]:
    return (_common(copies, -1), _common(copies, 1)) if copies else (0, 0)


def _common(copies: Sequence[Copy], direction: int) -> int:
    """How many characters before (-1) or after (1) the places are the same in all of them."""
    first, same = copies[0], FARTHEST
    for other in copies[1:]:
        low, width = 0, min(16, same)
        # Most copies differ soon: double the width while they agree, then look in the last stretch only.
        while width < same and _side(first, width, direction) == _side(other, width, direction):
            low, width = width, min(2 * width, same)
        high = width
        while low < high:
            middle = (low + high + 1) // 2
            if _side(first, middle, direction) == _side(other, middle, direction):
                low = middle
            else:
                high = middle - 1
        same = low
    return same


def _side(copy: Copy, width: int, direction: int) -> tuple[int, str]:
    start, end = (copy.start - width, copy.start) if direction < 0 else (copy.end, copy.end + width)
    part = copy.text[max(0, start) : end]
    # The width tells a text that ends here from one that goes on with the same characters.
    return width - len(part), part


def _score(own: Copy, own_sides: tuple[str, str], other: Copy, before: int, after: int) -> float:
    prefix = _outward(own_sides[0], _outer(other, before, -1)[::-1]) if before < FARTHEST else 1.0
    suffix = _outward(own_sides[1], _outer(other, after, 1)) if after < FARTHEST else 1.0
    position = 0.0
    if own.path == other.path:
        position = 1 - abs(own.start - other.start) / max(len(own.text), len(other.text), 1)
    return (QUOTE + PREFIX * prefix + SUFFIX * suffix + POSITION * position) / (QUOTE + PREFIX + SUFFIX + POSITION)


def _outward(one: str, other: str) -> float:
    """How alike two texts are that both lead away from a place; what is nearest to it counts most.

    A third each: how far they agree exactly, how alike the nearest ``NEAREST`` characters are, and all of them. Text
    that one of them has beyond the end of the other's document says nothing.
    """
    size = min(len(one), len(other))
    if size == 0:
        return float(one == other)
    one, other = one[:size], other[:size]
    if one == other:
        return 1.0
    near = min(NEAREST, size)
    agree = next((at for at in range(near) if one[at] != other[at]), near)
    return (agree / near + _alike(one[:NEAREST], other[:NEAREST]) + _alike(one, other)) / 3


def _outer(copy: Copy, skip: int, direction: int) -> str:
    """The text around a place from ``skip`` characters outwards."""
    if direction < 0:
        end = max(0, copy.start - skip)
        return copy.text[max(0, end - WIDTH) : end]
    start = copy.end + skip
    return copy.text[start : start + WIDTH]


def _alike(one: str, other: str) -> float:
    if one == other:
        return 1.0
    return fuzz.ratio(one, other) / 100
