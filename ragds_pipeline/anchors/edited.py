"""Where an edited span may stand now: likeness with context by RapidFuzz, then exact bounds by edlib.

RapidFuzz finds the neighbourhood quickly but with a window of the needle's length; edlib aligns the
needle character by character there, so that the bounds follow what was put in or taken out. The needle is the
span with the text before and after it: the surroundings of an edit are the best guide to it.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import NamedTuple

import edlib
import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz
from rapidfuzz.distance import Indel

from ragds_pipeline.spans.breaks import is_wide

CONTEXT = 64
"""Characters of context on either side of the span that are searched for with it."""
NEAR = 20_000
"""Characters around the expected place that are searched first; RapidFuzz can take very long on long texts that
resemble themselves (rapidfuzz #430)."""
GOOD = 80.0
"""A likeness, of 100, with which the first search is content."""
LEAST = 50.0
"""Below this likeness of needle and window nothing is looked at more closely."""
CONTENT = 0.75
"""With this likeness, a place next to unchanged text needs no comparison with the rest of the document."""
_ANCHOR = 32
"""Characters right before or after the span that, standing once in the new text, lead to it."""
LONGEST_FUZZY = 600
"""Longer needles are aligned by edlib at once; RapidFuzz would take longer than that."""


class Edited(NamedTuple):
    """A place that may hold the edited span."""

    start: int
    end: int
    score: float
    """Likeness of the span and the text there, 0 to 1."""


def find_edited(
    old: str, start: int, end: int, new: str, expected: int | None = None, within: tuple[int, int] | None = None
) -> Edited | None:
    """Return the place in ``new`` that is most like ``old[start:end]`` in its context, or None.

    Args:
        old: the old text.
        start: where the span begins in it.
        end: where it ends.
        new: the text to search.
        expected: offset in ``new`` near which the span is expected; None if unknown.
        within: range of ``new`` in which alone it is looked for, if something else led there.
    """
    quote = old[start:end]
    if not new or not quote.strip():
        return None
    if within is not None:
        return _aligned(quote, 0, len(quote), new, within)
    left, right = max(0, start - CONTEXT), min(len(old), end + CONTEXT)
    needle, span = old[left:right], (start - left, end - left)
    # From the most telling to the widest search; the surroundings may have changed more than the span.
    near = _aligned(needle, *span, new, _between(needle, *span, new))
    if near is not None and near.score >= CONTENT:
        return near
    wide = _aligned(needle, *span, new, _neighbourhood(needle, new, expected, len(quote)))
    if wide is not None and wide.score >= CONTENT:
        return wide
    bare = _aligned(quote, 0, len(quote), new, _neighbourhood(quote, new, expected, len(quote)))
    return max((each for each in (near, wide, bare) if each is not None), key=attrgetter("score"), default=None)


def exactly_between(old: str, start: int, end: int, new: str) -> tuple[int, int] | None:
    """Return what stands in ``new`` between the very characters that stood before and after ``old[start:end]``.

    None unless these stand there once each, and so close together that an edit of the span is what lies between.
    """
    before, after = old[max(0, start - _ANCHOR) : start], old[end : end + _ANCHOR]
    left = _only(before, new)
    right = _only(after, new, left + _ANCHOR) if left >= 0 else -1
    if right < 0 or right - left - _ANCHOR > 3 * (end - start) + CONTEXT:
        return None
    first, last = left + _ANCHOR, right
    while first < last and new[first].isspace():
        first += 1
    while last > first and new[last - 1].isspace():
        last -= 1
    return (first, last) if first < last else None


def _between(needle: str, start: int, end: int, new: str) -> tuple[int, int] | None:
    """Where the text before or after the span stands verbatim and once, there the span is looked for first."""
    before, after = needle[:start][-_ANCHOR:], needle[end:][:_ANCHOR]
    left = _only(before, new)
    right = _only(after, new, left + len(before) if left >= 0 else 0)
    room = 2 * (end - start) + CONTEXT
    if left >= 0 and right >= 0 and right - left <= 2 * room:
        return max(0, left - CONTEXT), min(len(new), right + len(after) + CONTEXT)
    if left >= 0:
        return max(0, left - CONTEXT), min(len(new), left + len(before) + room)
    if right >= 0:
        return max(0, right - room), min(len(new), right + len(after) + CONTEXT)
    return None


def _only(anchor: str, text: str, start: int = 0) -> int:
    """The place of the anchor's only occurrence; -1 if there is none, or another, or the anchor is too short."""
    if len(anchor) < _ANCHOR:
        return -1
    at = text.find(anchor, start)
    return at if at >= 0 and text.find(anchor, at + 1) < 0 else -1


def _neighbourhood(needle: str, new: str, expected: int | None, size: int) -> tuple[int, int] | None:
    windows: list[tuple[int, int]] = []
    if expected is not None and len(new) > 2 * NEAR:
        windows.append((max(0, expected - NEAR), min(len(new), expected + NEAR + size)))
    windows.append((0, len(new)))
    best: tuple[float, int, int] | None = None
    for low, high in windows:
        if len(needle) > LONGEST_FUZZY or len(needle) >= high - low:
            best = (100.0, low, high)
            break
        found = fuzz.partial_ratio_alignment(needle, new[low:high], score_cutoff=LEAST)
        if found is not None and (best is None or found.score > best[0]):
            best = (found.score, low + found.dest_start, low + found.dest_end)
        if best is not None and best[0] >= GOOD:
            break
    if best is None:
        return None
    widen = len(needle) // 2 + CONTEXT
    return max(0, best[1] - widen), min(len(new), best[2] + widen)


def _aligned(needle: str, start: int, end: int, new: str, region: tuple[int, int] | None) -> Edited | None:
    """Align the needle in a region of ``new``; return where its ``[start, end)`` lies."""
    if region is None:
        return None
    low, high = region
    window = new[low:high]
    pattern, target = _as_bytes(needle, window)
    found = edlib.align(pattern, target, mode="HW", task="path", k=len(needle) * 6 // 10)
    if found["editDistance"] < 0:
        return None
    begins, ends = _bounds(found["cigar"], found["locations"][0][0], start, end)
    first = low + _first(window, *begins)
    last = low + _last(window, needle[end - 1], *ends)
    first, last = _whole_words(new, first, last)
    if first >= last:
        return None
    return Edited(first, last, Indel.normalized_similarity(needle[start:end], new[first:last]))


def _as_bytes(needle: str, window: str) -> tuple[bytes, bytes]:
    """Return both as bytes for edlib, which only asks which of them are equal."""
    if needle.isascii() and window.isascii():
        return needle.encode(), window.encode()
    return _as_symbols(needle, window)


def _as_symbols(needle: str, window: str) -> tuple[bytes, bytes]:
    """Return both with the needle's characters as bytes 1 to 255 and all others as 0.

    edlib knows 256 symbols. If the needle has more than 255, the rarer ones share symbols: the alignment gets a
    little less exact, the score is computed on the characters.
    """
    wanted = np.frombuffer(needle.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    searched = np.frombuffer(window.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    alphabet = np.unique(wanted)

    def mapped(points: npt.NDArray[np.uint32]) -> bytes:
        at = np.minimum(np.searchsorted(alphabet, points), len(alphabet) - 1)
        return np.where(alphabet[at] == points, at % 255 + 1, 0).astype(np.uint8).tobytes()

    return mapped(wanted), mapped(searched)


_STEP = re.compile(r"(\d+)([=XID])")


def _bounds(cigar: str, at: int, start: int, end: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Walk the alignment; return the ranges in the target in which the span's start and end lie.

    A range is wider than a point where text was put in right at the bound.
    """
    needle = 0
    first_low = first_high = last_low = last_high = -1
    for size, kind in _STEP.findall(cigar):
        length = int(size)
        in_needle = length if kind in "=XI" else 0
        in_target = length if kind in "=XD" else 0
        if first_low < 0 and needle + in_needle >= start:
            first_low = at + min(in_target, start - needle)
        if first_high < 0 and needle + in_needle > start:
            first_high = at + min(in_target, start - needle)
        if last_low < 0 and needle + in_needle >= end:
            last_low = at + min(in_target, end - needle)
        if needle + in_needle > end and last_high < 0:
            last_high = at + min(in_target, end - needle)
        needle += in_needle
        at += in_target
    last_high = at if last_high < 0 else last_high
    first_high = at if first_high < 0 else first_high
    return (first_low, max(first_low, first_high)), (last_low, max(last_low, last_high))


_TERMINAL = re.compile(r"[.!?…。！？][\"'”’»)\]*_`]*(?=\s|$)|\n|[。！？]")


def _first(window: str, low: int, high: int) -> int:
    """Where the span begins: what was put in before it belongs to it, from the last sentence or line break on."""
    if high <= low:
        return low
    ends = [match.end() for match in _TERMINAL.finditer(window, low, high)]
    start = ends[-1] if ends else low
    while start < high and (window[start].isspace() or window[start] in "|"):
        start += 1
    return start


def _last(window: str, final: str, low: int, high: int) -> int:
    """Where the span ends: what was put in after it belongs to it, up to the end of the sentence, if any is open."""
    if high <= low or final in ".!?…。！？:：|":
        return low
    closing = _TERMINAL.search(window, low, high)
    if closing is not None:
        return closing.end() if closing[0] != "\n" else closing.start()
    while high > low and window[high - 1].isspace():
        high -= 1
    return high


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Move the bounds outwards to where words begin and end, and off white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while 0 < start < len(text) and _inside_word(text, start):
        start -= 1
    while 0 < end < len(text) and _inside_word(text, end):
        end += 1
    return start, end


def _inside_word(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if not (before.isalnum() and (after.isalnum() or after >= "\u0300")):
        return False
    return not is_wide(before) and not is_wide(after)
