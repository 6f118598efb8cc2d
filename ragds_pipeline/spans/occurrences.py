"""Where quotes stand in the whole KB: every occurrence in every document, by the strict match key.

The keys of the documents are joined, in UTF-8, into shards of bounded size. A shard is searched either with a
suffix array (Manber and Myers 1993; built by libdivsufsort through pydivsufsort) or by scanning, which is
cheaper for few quotes. The lenient level is left out on purpose: anywhere in the KB, it would find more
chance hits than copies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from ragds_pipeline.records import Place
from ragds_pipeline.spans import seeds
from ragds_pipeline.spans.locate import MIN_KEY_CHARS, searchable_key
from ragds_pipeline.spans.match_key import FIRST_EXTENDER, STRICT, MatchKey, end_of_character, match_key
from ragds_pipeline.spans.suffix_array import SuffixArray

SHARD_BYTES = 64_000_000
"""Bytes of keys in one shard, by default; it takes 9 bytes of memory a byte of key (key 1, offsets 4,
suffixes 4). Smaller shards sort a little faster, but each costs every quote a search: 70 MB of text and
100,000 quotes took 9.9 s in all with shards of 64 MB, 11.2 s with 32 MB, 11.5 s with 16 MB."""

SCAN_AT_MOST = 600
"""Up to so many different quotes, :func:`find_everywhere` scans instead of sorting. Both grow with the KB, so
the threshold does not: in 70 MB, a quote costs 7 ms to scan for and sorting costs 5 to 6 s
(benchmarks/results/spans.md)."""

_SEPARATOR = b"\xff"  # occurs in no UTF-8 text, so no match crosses two documents


class OccurrenceIndex:
    """All documents of a KB, sorted for search. Keep it where several batches of quotes are to be found.

    It holds 9 bytes of memory a byte of key, plus the texts. For a single batch over a KB too large for that,
    use :func:`find_everywhere`, which holds one shard at a time.
    """

    def __init__(self, shards: Sequence[_Shard]) -> None:
        self._shards = shards

    @classmethod
    def build(cls, documents: Iterable[tuple[str, str]], *, shard_bytes: int = SHARD_BYTES) -> OccurrenceIndex:
        """Index ``(path, normalised text)`` pairs. The order of documents is the order of results."""
        shards = list(_shards(documents, shard_bytes))
        for shard in shards:
            shard.sort()
        return cls(shards)

    def find_many(self, quotes: Sequence[str], *, min_key_chars: int = MIN_KEY_CHARS) -> list[list[Place]]:
        """Return, for each quote, every place where it stands, ordered by document and offset.

        The list of a quote that stands nowhere is empty. Spans follow the rules of
        :class:`~ragds_pipeline.spans.locate.Locator` at the strict level.

        Raises:
            QuoteTooShort: if the strict key of any quote is shorter than ``min_key_chars``.
        """
        return _search(self._shards, quotes, min_key_chars)


def find_everywhere(
    quotes: Sequence[str],
    documents: Iterable[tuple[str, str]],
    *,
    min_key_chars: int = MIN_KEY_CHARS,
    shard_bytes: int = SHARD_BYTES,
) -> list[list[Place]]:
    """Do what :meth:`OccurrenceIndex.find_many` does for one batch, with one shard in memory at a time.

    Whether shards are sorted or scanned is decided by ``SCAN_AT_MOST``; the result is the same.
    """
    sort = len(set(quotes)) > SCAN_AT_MOST

    def prepared() -> Iterator[_Shard]:
        for shard in _shards(documents, shard_bytes):
            if sort:
                shard.sort()
            yield shard

    return _search(prepared(), quotes, min_key_chars)


def find_keys(
    keys: Sequence[str], documents: Iterable[tuple[str, str]], *, shard_bytes: int = SHARD_BYTES // 4
) -> list[list[Place]]:
    """Return, for each strict key, every place where it stands in the documents, by a join on seeds.

    For many quotes and few documents, such as those that changed in a revision: neither scanning nor sorting.
    Places are those of :func:`find_everywhere`, with one shard in memory at a time.

    Raises:
        ValueError: if a key is shorter than ``seeds.SHORTEST`` bytes in UTF-8.
    """
    wanted = [key.encode("utf-8", "surrogatepass") for key in keys]
    places = KeyShards(lambda: documents, shard_bytes=shard_bytes).find(wanted)
    return [places.get(pattern, []) for pattern in wanted]


class KeyShards:
    """Documents to look up strict keys in, time and again; shards are made anew each time, unless there is only one."""

    def __init__(
        self, documents: Callable[[], Iterable[tuple[str, str]]], *, shard_bytes: int = SHARD_BYTES // 4
    ) -> None:
        self._documents = documents
        self._shard_bytes = shard_bytes
        self._only: list[_Shard] | None = None

    def find(self, keys: Collection[bytes], at_most: int | None = None) -> dict[bytes, list[Place]]:
        """Return, for each key in UTF-8 that stands in the documents, every place, ordered by document and offset.

        A key that stands in more than ``at_most`` places is left out.

        Raises:
            ValueError: if a key is shorter than ``seeds.SHORTEST`` bytes.
        """
        places: dict[bytes, list[Place]] = {}
        for shard in self._shards():
            for pattern, positions in seeds.find_all(shard.buffer, keys).items():
                found = places.setdefault(pattern, [])
                # One more than wanted is enough to know that there are too many.
                room = None if at_most is None else at_most + 1 - len(found)
                found.extend(islice(shard.places(positions, len(pattern)), room))
        return {key: found for key, found in places.items() if found and (at_most is None or len(found) <= at_most)}

    def _shards(self) -> Iterator[_Shard]:
        if self._only is not None:
            yield from self._only
            return
        made: list[_Shard] = []
        several = False
        for shard in _shards(self._documents(), self._shard_bytes):
            several = several or bool(made)
            made = [shard] if not several else []
            yield shard
        if not several:
            self._only = made


def _search(shards: Iterable[_Shard], quotes: Sequence[str], min_key_chars: int) -> list[list[Place]]:
    wanted = [searchable_key(quote, min_key_chars).encode("utf-8", "surrogatepass") for quote in quotes]
    patterns = sorted(set(wanted))
    places: dict[bytes, list[Place]] = {pattern: [] for pattern in patterns}
    for shard in shards:
        for pattern, positions in zip(patterns, shard.positions(patterns), strict=True):
            places[pattern].extend(shard.places(positions, len(pattern)))
    return [list(places[pattern]) for pattern in wanted]


@dataclass(slots=True, eq=False)
class _Shard:
    """The keys of some documents in one buffer, each followed by the separator."""

    buffer: bytes
    offsets: memoryview
    """For each byte of the buffer, the offset of its code point in its document's text."""
    starts: list[int]
    """Where each document's key begins in the buffer."""
    documents: list[tuple[str, str]]
    suffixes: SuffixArray | None = None

    def sort(self) -> None:
        """Build the suffix array, which :meth:`positions` then uses."""
        self.suffixes = SuffixArray(self.buffer)

    def positions(self, patterns: Sequence[bytes]) -> Iterator[Iterable[int]]:
        """Yield, for each pattern, where in the buffer it begins."""
        if self.suffixes is not None:
            return self.suffixes.find(patterns)
        return (_scan(self.buffer, pattern) for pattern in patterns)

    def places(self, positions: Iterable[int], size: int) -> Iterator[Place]:
        """Yield the places of ``size`` bytes at the positions, except those that would split a character."""
        offsets, starts, documents = self.offsets, self.starts, self.documents
        for at in positions:
            path, text = documents[bisect_right(starts, at) - 1]
            behind = at + size
            end = offsets[behind - 1] + 1
            if text[end : end + 1] >= FIRST_EXTENDER:  # spares most places, and there may be many, the call
                end = end_of_character(text, end)
                if self.buffer[behind] != _SEPARATOR[0] and offsets[behind] < end:
                    continue
            yield Place(path, offsets[at], end)


def _scan(buffer: bytes, pattern: bytes) -> Iterator[int]:
    at = buffer.find(pattern)
    while at >= 0:
        yield at
        at = buffer.find(pattern, at + 1)


def _shards(documents: Iterable[tuple[str, str]], shard_bytes: int) -> Iterator[_Shard]:
    """Pack documents into shards of at most ``shard_bytes``; a larger document has a shard to itself."""
    keys: list[bytes] = []
    offsets: list[npt.NDArray[np.uint32]] = []
    packed: list[tuple[str, str]] = []
    size = 0
    for path, text in documents:
        key = match_key(text, STRICT)
        encoded = key.key.encode("utf-8", "surrogatepass") + _SEPARATOR
        if packed and size + len(encoded) > shard_bytes:
            yield _shard(keys, offsets, packed)
            keys, offsets, packed, size = [], [], [], 0
        keys.append(encoded)
        offsets.append(_offset_of_each_byte(key))
        packed.append((path, text))
        size += len(encoded)
    if packed:
        yield _shard(keys, offsets, packed)


def _shard(keys: list[bytes], offsets: list[npt.NDArray[np.uint32]], documents: list[tuple[str, str]]) -> _Shard:
    ends = np.cumsum([len(key) for key in keys])
    return _Shard(b"".join(keys), np.concatenate(offsets).data, [0, *ends[:-1].tolist()], documents)


def _offset_of_each_byte(key: MatchKey) -> npt.NDArray[np.uint32]:
    """For each byte of the key in UTF-8 and for the separator after it, the text offset of its code point."""
    offsets = key.offsets
    if not key.key.isascii():
        points = np.frombuffer(key.key.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        sizes = np.ones(len(points), dtype=np.uint8)
        for first_longer in (0x80, 0x800, 0x10000):
            sizes += points >= first_longer
        offsets = np.repeat(offsets, sizes)
    return np.append(offsets, np.uint32(len(key.text)))
