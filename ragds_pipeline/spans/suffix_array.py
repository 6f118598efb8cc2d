"""All places of many byte strings in one buffer, by a suffix array (Manber and Myers 1993).

The array is built by libdivsufsort (Y. Mori) through pydivsufsort. It is searched by bisection, and as most
steps of a bisection over millions of suffixes are cache misses, a first look at a sample of suffixes, eight
bytes of each, leaves about ten of the 25 steps. That look is one vectorised search for all patterns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from pydivsufsort import divsufsort

_SAMPLE_EVERY = 32
_HEAD = 8


class SuffixArray:
    """The suffixes of a buffer in order; 4 bytes of memory a byte up to 2 GiB, 8 beyond."""

    def __init__(self, buffer: bytes) -> None:
        if not buffer:
            raise ValueError("an empty buffer has no suffixes")
        self._buffer = buffer
        suffixes = divsufsort(buffer)
        self._suffixes = suffixes.data.cast("B").cast("i" if suffixes.itemsize == 4 else "q")
        self._heads = _heads_at(buffer, suffixes[::_SAMPLE_EVERY])

    def find(self, patterns: Sequence[bytes]) -> Iterator[list[int]]:
        """Yield, for each pattern, the ascending positions in the buffer at which it begins.

        Patterns in order are found faster, because neighbours share cache lines.
        """
        # Less than all that begins with the pattern, and more.
        low = np.searchsorted(self._heads, _heads_of(patterns, b"\x00"), side="left")
        high = np.searchsorted(self._heads, _heads_of(patterns, b"\xff"), side="right")
        for pattern, before, behind in zip(patterns, low.tolist(), high.tolist(), strict=True):
            first = max(0, before - 1) * _SAMPLE_EVERY
            yield self._bisect(pattern, first, min(behind * _SAMPLE_EVERY, len(self._suffixes)))

    def _bisect(self, pattern: bytes, low: int, high: int) -> list[int]:
        buffer, suffixes, size = self._buffer, self._suffixes, len(pattern)

        def prefix(at: int) -> bytes:
            return buffer[at : at + size]

        first = bisect_left(suffixes, pattern, lo=low, hi=high, key=prefix)
        near = min(first + 4, high)  # most quotes stand once or twice
        end = bisect_right(suffixes, pattern, lo=first, hi=near, key=prefix)
        if end == near:
            end = bisect_right(suffixes, pattern, lo=near, hi=high, key=prefix)
        return sorted(suffixes[first:end])


def _heads_at(buffer: bytes, positions: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.uint64]:
    """The eight bytes at each position as one number, so that numbers are in the order of the bytes."""
    padded = np.frombuffer(buffer + bytes(_HEAD), dtype=np.uint8)
    heads = np.zeros(len(positions), dtype=np.uint64)
    for shift in range(_HEAD):
        heads = heads << np.uint64(8) | padded[positions + shift]
    return heads


def _heads_of(patterns: Sequence[bytes], padding: bytes) -> npt.NDArray[np.uint64]:
    joined = b"".join(pattern[:_HEAD].ljust(_HEAD, padding) for pattern in patterns)
    return np.frombuffer(joined, dtype=">u8").astype(np.uint64)
