"""All places of many byte strings in one buffer, by a join on hashes of their first bytes.

For a single batch this is cheaper than sorting the buffer: each position costs a few vectorised operations, and only
positions whose first 8, 16 or 32 bytes are those of some pattern are looked at one by one (Karp and Rabin 1987; the
hash of 2n bytes is made of two of n bytes, as in prefix doubling). It is the wrong tool where most positions begin
like some pattern; a suffix array has no such weakness.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Set

import numpy as np
import numpy.typing as npt

SHORTEST = 8
"""Shortest pattern that can be found, in bytes."""
_SIZES = (SHORTEST, 16, 32)
"""The seed of a pattern is of the largest of these sizes that it has."""
_PIECE = 1 << 18
"""Positions looked at in one go, so that what is computed for them stays in the processor's cache."""
_FILTER_BITS = 21
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)

Hashes = npt.NDArray[np.uint64]


def find_all(buffer: bytes, patterns: Collection[bytes]) -> dict[bytes, list[int]]:
    """Return the ascending positions at which each pattern begins in the buffer, overlapping ones too.

    A pattern that stands nowhere is not in the result: most do not, where few documents are searched.

    Raises:
        ValueError: if a pattern is shorter than ``SHORTEST`` bytes.
    """
    if min(map(len, patterns), default=SHORTEST) < SHORTEST:
        raise ValueError(f"patterns of less than {SHORTEST} bytes have no seed")
    found: dict[bytes, list[int]] = {}
    # In the order given, which is mostly that in memory, and then twice as fast to walk as a set.
    wanted = dict.fromkeys(patterns)
    for size, longer in zip(_SIZES, (*_SIZES[1:], sys.maxsize), strict=True):
        of_size = [pattern for pattern in wanted if size <= len(pattern) < longer]
        if of_size and len(buffer) >= size:
            _find(buffer, of_size, wanted.keys(), size, found)
    return found


def _find(buffer: bytes, patterns: list[bytes], wanted: Set[bytes], size: int, found: dict[bytes, list[int]]) -> None:
    heads = b"".join([pattern[:size] for pattern in patterns])
    seeds = _hashes_at(heads, np.arange(0, len(heads), size), size)
    known = np.sort(seeds)
    begun, filled = _filter_of(_overlapping(heads)[::size]), _filter_of(seeds)
    hits: list[tuple[int, int]] = []
    count = len(buffer) - size + 1
    for start in range(0, count, _PIECE):
        # The first eight bytes rule out most positions; a hash of more is made for the others only.
        words = _words(buffer[start : min(start + _PIECE, count) + SHORTEST - 1])
        begins = np.flatnonzero(begun.take(_in_filter(words))) + start
        hashes = _hashes_at(buffer, begins, size)
        likely = np.flatnonzero(filled.take(_in_filter(hashes)))
        begins, hashes = begins[likely], hashes[likely]
        same = known[np.minimum(np.searchsorted(known, hashes), len(known) - 1)] == hashes
        hits += zip(begins[same].tolist(), hashes[same].tolist(), strict=True)
    hit = np.array(list({seed for _, seed in hits}), dtype=np.uint64)
    lengths: dict[int, set[int]] = {}
    for at in np.flatnonzero(np.isin(seeds, hit)).tolist():
        lengths.setdefault(int(seeds[at]), set()).add(len(patterns[at]))
    for position, seed in hits:
        for length in lengths[seed]:
            pattern = buffer[position : position + length]
            if pattern in wanted and len(pattern) == length:
                found.setdefault(pattern, []).append(position)


def _hashes_at(data: bytes, positions: npt.NDArray[np.int64], size: int) -> Hashes:
    """Return the hash of the ``size`` bytes at each position; all of them must be there."""
    words = _overlapping(data)
    hashes = [words[positions + shift] for shift in range(0, size, SHORTEST)]
    while len(hashes) > 1:
        hashes = [_joined(before, behind) for before, behind in zip(hashes[::2], hashes[1::2], strict=True)]
    return hashes[0]


def _overlapping(data: bytes) -> Hashes:
    """The eight bytes from each position on as one number: a view that copies nothing, slow to walk as a whole."""
    return np.ndarray((max(0, len(data) - SHORTEST + 1),), "<u8", data, strides=(1,))


def _words(data: bytes) -> Hashes:
    """The same as an array of its own, put together from aligned reads."""
    count = len(data) - SHORTEST + 1
    words = np.empty(count, dtype=np.uint64)
    for shift in range(min(SHORTEST, count)):
        aligned = np.frombuffer(data, dtype="<u8", offset=shift, count=(len(data) - shift) // SHORTEST)
        words[shift::SHORTEST] = aligned[: len(words[shift::SHORTEST])]
    return words


def _joined(before: Hashes, behind: Hashes) -> Hashes:
    hashes = before * _MIX
    hashes ^= behind * _ODD
    hashes ^= hashes >> np.uint64(29)
    return hashes


def _filter_of(hashes: Hashes) -> npt.NDArray[np.bool_]:
    filled = np.zeros(1 << _FILTER_BITS, dtype=np.bool_)
    filled[_in_filter(hashes)] = True
    return filled


def _in_filter(hashes: Hashes) -> npt.NDArray[np.int64]:
    """The number in the filter of each hash; small enough to be read as signed, which numpy can index by at once."""
    numbers = hashes * _ODD
    numbers >>= np.uint64(64 - _FILTER_BITS)
    return numbers.view(np.int64)
