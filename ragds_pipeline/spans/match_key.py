"""Match keys: a text reduced to what two copies of one passage have in common, with the way back to offsets.

A key is made code point by code point, so that each character of the key knows the one code point of the text
it came from. That is why the lenient level *decomposes* (NFKD): composing would have to look at neighbours.

* strict: white space, control (Cc) and format (Cf: soft hyphen, zero-width ...) characters and variation
  selectors are dropped. Nothing else changes.
* lenient: strict, then NFKD and case folding (Unicode 3.13, "compatibility caseless match"), quotation marks
  and dashes as ASCII. Combining marks stay: dropping them would make が equal か.

Keys are for searching only; offsets always refer to the text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from threading import Lock

import numpy as np
import numpy.typing as npt


class Level(StrEnum):
    """How much two passages may differ and still match."""

    STRICT = "strict"
    LENIENT = "lenient"


STRICT = Level.STRICT
LENIENT = Level.LENIENT

_QUOTES_AND_DASHES = {
    **dict.fromkeys("‘’‚‛‹›′´", "'"),
    **dict.fromkeys("“”„‟«»″", '"'),
    **dict.fromkeys("−⁃", "-"),
    "〜": "~",  # category Pd, yet Japanese texts mix it with full-width ～, which NFKD makes "~"
}

FIRST_EXTENDER = "\u0300"
"""No character below this one is an extender."""

# Characters outside category M that still belong to the character before them (UAX 29, GB6-GB9): joiners,
# half-width voicing marks, emoji skin tones, tags, and Hangul vowels and finals.
_OTHER_EXTENDERS = frozenset(
    chr(code)
    for first, last in (
        (0x1160, 0x11FF),
        (0x200C, 0x200D),
        (0xD7B0, 0xD7FB),
        (0xFF9E, 0xFF9F),
        (0x1F3FB, 0x1F3FF),
        (0xE0020, 0xE007F),
    )
    for code in range(first, last + 1)
)

_CODE_POINTS = 0x110000


def is_dropped(char: str) -> bool:
    """Whether ``char`` is left out of every key: white space, Cc, Cf or a variation selector."""
    return (
        char.isspace()
        or unicodedata.category(char) in ("Cc", "Cf")
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
        or char in "\u180b\u180c\u180d\u180f"
    )


def is_extender(char: str) -> bool:
    """Whether ``char`` continues the visible character before it: a mark, a variation selector, a joiner."""
    return char >= FIRST_EXTENDER and (unicodedata.category(char)[0] == "M" or char in _OTHER_EXTENDERS)


def fold(char: str, level: Level) -> str:
    """Return what one code point becomes in a key: the empty string, one character or several."""
    if is_dropped(char):
        return ""
    if level is STRICT:
        return char
    if char in _QUOTES_AND_DASHES:
        return _QUOTES_AND_DASHES[char]
    folded = _caseless(char)
    if folded[0].isspace():
        # A spacing accent becomes blank + mark; without the blank, the mark would cling to the letter before.
        folded = unicodedata.normalize("NFD", char)
    return "".join(_ascii_punctuation(part) for part in folded if not is_dropped(part))


def _caseless(char: str) -> str:
    """NFKD(casefold(NFKD(casefold(NFD(char))))), the fixed point Unicode defines for caseless matching."""
    once = unicodedata.normalize("NFKD", unicodedata.normalize("NFD", char).casefold())
    return unicodedata.normalize("NFKD", once.casefold())


def _ascii_punctuation(char: str) -> str:
    return "-" if unicodedata.category(char) == "Pd" else _QUOTES_AND_DASHES.get(char, char)


@dataclass(frozen=True, slots=True, eq=False)
class MatchKey:
    """The key of one text at one level."""

    level: Level
    text: str
    key: str
    offsets: npt.NDArray[np.uint32]
    """For each code point of ``key``, the offset in ``text`` of the code point it came from; never
    decreasing."""

    def span(self, key_start: int, key_end: int) -> tuple[int, int]:
        """Return the text's half-open code point range that ``key[key_start:key_end]`` came from.

        The range starts at the first character's code point and ends after the last one's, extended over
        extenders that directly follow (UAX 29, GB9), so that it never ends between a base and its variation
        selector or mark.

        Raises:
            ValueError: if the range is empty or not inside the key.
        """
        if not 0 <= key_start < key_end <= len(self.offsets):
            raise ValueError(f"[{key_start}, {key_end}) is not in a key of {len(self.offsets)} characters")
        start, end = int(self.offsets[key_start]), int(self.offsets[key_end - 1]) + 1
        return start, end_of_character(self.text, end)

    def find(self, wanted: str) -> Iterator[tuple[int, int]]:
        """Yield the span of every place, overlapping ones too, where the key ``wanted`` stands.

        Places that would split a character are passed over: inside the expansion of one code point (``f`` of
        ``ﬁ``), or before a mark that the key keeps (``か`` in decomposed ``が``).
        """
        if not wanted:
            return
        at = self.key.find(wanted)
        while at >= 0:
            end_at = at + len(wanted)
            start, end = self.span(at, end_at)
            begins_whole = at == 0 or self.offsets[at - 1] != start
            ends_whole = end_at == len(self.key) or self.offsets[end_at] >= end
            if begins_whole and ends_whole:
                yield start, end
            at = self.key.find(wanted, at + 1)


def end_of_character(text: str, end: int) -> int:
    """Return ``end`` moved past the extenders that directly follow there."""
    while end < len(text) and is_extender(text[end]):
        end += 1
    return end


def match_key(text: str, level: Level = STRICT) -> MatchKey:
    """Return the key of ``text`` at ``level`` with its map. Any ``str`` will do, lone surrogates included."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    folds = _folds(level)
    counts = folds.counts(points)
    if level is STRICT:
        offsets = np.flatnonzero(counts.view(np.bool_)).astype(np.uint32)
        return MatchKey(level, text, _to_str(points[offsets]), offsets)
    offsets = np.repeat(np.arange(len(points), dtype=np.uint32), counts)
    folded = folds.first[points[offsets]]
    later = np.flatnonzero(offsets[1:] == offsets[:-1]) + 1
    if len(later):
        sources = offsets[later]
        first_at = np.cumsum(counts, dtype=np.int64) - counts
        folded[later] = folds.pool[folds.pool_at[points[sources]] + later - first_at[sources]]
    return MatchKey(level, text, _in_canonical_order(_to_str(folded)), offsets)


def key_of(quote: str, level: Level = STRICT) -> str:
    """Return the key of a short string, without a map: equal to ``match_key(quote, level).key``."""
    key = quote.translate(_translations(level))
    return key if level is STRICT else _in_canonical_order(key)


def encoded_keys(quotes: Sequence[str]) -> list[bytes]:
    """Return the strict keys of many short strings in UTF-8: ``key_of(quote).encode()``, ten times as fast."""
    encoded = [quote.encode("utf-8", "surrogatepass") for quote in quotes]
    # No byte of a longer character in UTF-8 is a byte of ASCII, and no character's bytes are part of another's.
    joined = _SEPARATOR.join(encoded).translate(None, _dropped_ascii())
    for char in set("".join([quote for quote in quotes if not quote.isascii()])):
        if not char.isascii() and is_dropped(char):
            joined = joined.replace(char.encode(), b"")
    return joined.split(_SEPARATOR) if encoded else []


_SEPARATOR = b"\xff"  # occurs in no UTF-8


@cache
def _dropped_ascii() -> bytes:
    return bytes(code for code in range(128) if is_dropped(chr(code)))


def _in_canonical_order(key: str) -> str:
    """Sort each run of marks as NFD does; all is decomposed already, so nothing moves beyond its base's
    marks.

    The offsets stay as they are: within such a run they lose the pairing, but a place never begins or ends
    there.
    """
    return unicodedata.normalize("NFD", key)


def _to_str(points: npt.NDArray[np.uint32]) -> str:
    return points.tobytes().decode("utf-32-le", "surrogatepass")


class _Translations(dict[int, str]):
    """A table for ``str.translate`` that learns each code point when it first meets it."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def __missing__(self, code: int) -> str:
        self[code] = folded = fold(chr(code), self.level)
        return folded


@cache
def _translations(level: Level) -> _Translations:
    return _Translations(level)


_UNKNOWN = 255
"""The count of a code point that was not met yet; the longest expansion has 18 characters."""


class _Folds:
    """One level as arrays over code points, which learn each code point when they first meet it: a text has a few
    hundred different ones, and to ask what all of them become would take a second."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._learning = Lock()
        self._count = np.full(_CODE_POINTS, _UNKNOWN, dtype=np.uint8)
        self.first = np.arange(_CODE_POINTS, dtype=np.uint32)
        self.pool_at = np.zeros(_CODE_POINTS, dtype=np.uint32)
        self.pool = np.zeros(0, dtype=np.uint32)
        """Expansions of several characters."""

    def counts(self, points: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
        """Return how many characters each code point becomes; after that, the other arrays know them too."""
        counts = self._count[points]
        if len(counts) and counts.max() == _UNKNOWN:
            self._learn(np.unique(points[counts == _UNKNOWN]).tolist())
            counts = self._count[points]
        return counts

    def _learn(self, codes: list[int]) -> None:
        folds = [fold(chr(code), self._level) for code in codes]
        longer: list[int] = []
        with self._learning:
            size = len(self.pool)
            for code, folded in zip(codes, folds, strict=True):
                self.first[code] = ord(folded[0]) if folded else 0
                if len(folded) > 1:
                    self.pool_at[code] = size + len(longer)
                    longer.extend(map(ord, folded))
            self.pool = np.append(self.pool, np.array(longer, dtype=np.uint32))
            # Last, as another thread may read all that has a count.
            self._count[codes] = [len(folded) for folded in folds]


@cache
def _folds(level: Level) -> _Folds:
    return _Folds(level)
