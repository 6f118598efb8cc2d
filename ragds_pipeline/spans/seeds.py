"""All places of many byte strings in one buffer, by a join on hashes of their first bytes.

For a single batch this is cheaper than sorting the buffer: each position costs a few vectorised operations, and only
positions whose first 8 or 32 bytes are those of some pattern are looked at one by one (Karp and Rabin 1987; the hash of
2n bytes is made of two of n bytes, as in prefix doubling). It is the wrong tool where most positions begin like some
pattern; a suffix array has no such weakness.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SHORTEST = 8
"""Shortest pattern that can be found, in bytes."""
_LONG = 32
_PIECE = 1 << 20
"""Positions hashed at a time, so that the hashes stay in the processor's cache."""
_FILTER_BITS = 22
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)

Hashes = npt.NDArray[np.uint64]


def find_all(buffer: bytes, patterns: Sequence[bytes]) -> dict[bytes, list[int]]:
    """Return the ascending positions at which each pattern begins in the buffer, overlapping ones too.

    A pattern that stands nowhere is not in the result: most do not, where few documents are searched.

    Raises:
        ValueError: if a pattern is shorter than ``SHORTEST`` bytes.
    """
    if any(len(pattern) < SHORTEST for pattern in patterns):
        raise ValueError(f"patterns of less than {SHORTEST} bytes have no seed")
    found: dict[bytes, list[int]] = {}
    wanted = set(patterns)
    for size, longer in ((SHORTEST, False), (_LONG, True)):
        of_size = [pattern for pattern in wanted if (len(pattern) >= _LONG) is longer]
        if of_size and len(buffer) >= size:
            _find(buffer, of_size, wanted, size, found)
    return found


def _find(buffer: bytes, patterns: list[bytes], wanted: set[bytes], size: int, found: dict[bytes, list[int]]) -> None:
    heads = b"".join([pattern[:size] for pattern in patterns])
    seeds = _hashes(heads, size)[::size]
    known = np.unique(seeds)
    filled = np.zeros(1 << _FILTER_BITS, dtype=np.bool_)
    filled[known >> np.uint64(64 - _FILTER_BITS)] = True
    hits: list[tuple[int, int]] = []
    for start in range(0, len(buffer) - size + 1, _PIECE):
        hashes = _hashes(buffer[start : start + _PIECE + size - 1], size)
        likely = np.flatnonzero(filled[hashes >> np.uint64(64 - _FILTER_BITS)])
        at = np.minimum(np.searchsorted(known, hashes[likely]), len(known) - 1)
        same = known[at] == hashes[likely]
        hits += zip((likely[same] + start).tolist(), hashes[likely][same].tolist(), strict=True)
    hit = {seed for _, seed in hits}
    lengths: dict[int, set[int]] = {}
    for seed, pattern in zip(seeds.tolist(), patterns, strict=True):
        if seed in hit:
            lengths.setdefault(seed, set()).add(len(pattern))
    for position, seed in hits:
        for length in lengths[seed]:
            pattern = buffer[position : position + length]
            if pattern in wanted and len(pattern) == length:
                found.setdefault(pattern, []).append(position)


def _hashes(data: bytes, size: int) -> Hashes:
    """Return the hash of the ``size`` bytes at each position that has so many."""
    count = len(data) - SHORTEST + 1
    words = np.empty(count, dtype=np.uint64)
    for shift in range(min(SHORTEST, count)):
        aligned = np.frombuffer(data, dtype="<u8", offset=shift, count=(len(data) - shift) // 8)
        words[shift::SHORTEST] = aligned[: len(words[shift::SHORTEST])]
    width = SHORTEST
    while width < size:
        words = words[:-width] * _MIX ^ words[width:] * _ODD
        words ^= words >> np.uint64(29)
        width *= 2
    mixed = words * _ODD
    return (mixed ^ mixed >> np.uint64(32)) * _MIX
