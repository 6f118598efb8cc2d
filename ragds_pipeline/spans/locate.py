"""Where a quote stands in one document: every occurrence, never a guess.

The quote is looked up by its strict key, and by its lenient key only where the strict one finds nothing.
There is no separate search for the verbatim quote: its places are among the strict ones, and a quote that
stands once as written and once with a line break inside stands twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragds_pipeline.spans.match_key import (
    LENIENT,
    STRICT,
    Level,
    MatchKey,
    end_of_character,
    is_dropped,
    key_of,
    match_key,
)

MIN_KEY_CHARS = 8
"""Shortest strict key that may be searched for. Below that, hits are chance; even at 20 characters 26 % of
quotes stand more than once in their own document (measured on 61.8 million characters), so callers must still
tell occurrences apart by :func:`context` or ask a person."""

Match = Literal["exact", "strict", "lenient"]


class QuoteTooShort(ValueError):
    """A quote has fewer characters besides white space than a search needs to mean anything."""

    def __init__(self, quote: str, key_chars: int, min_key_chars: int) -> None:
        super().__init__(
            f"quote {quote[:40]!r} has {key_chars} characters without white space, "
            f"at least {max(1, min_key_chars)} are needed"
        )
        self.key_chars = key_chars
        self.min_key_chars = min_key_chars


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """One place of a quote: half-open code point range ``[start_char, end_char)`` and how it was matched."""

    start_char: int
    end_char: int
    match: Match
    """``exact``: the text there is the quote, without white space at its ends; else the level of the key."""


def searchable_key(quote: str, min_key_chars: int = MIN_KEY_CHARS) -> str:
    """Return the strict key of ``quote``.

    Raises:
        QuoteTooShort: if the key is empty or shorter than ``min_key_chars``.
    """
    key = key_of(quote, STRICT)
    if len(key) < max(1, min_key_chars):
        raise QuoteTooShort(quote, len(key), min_key_chars)
    return key


class Locator:
    """Finds quotes in one text. Keys are made at first use and kept, so one locator serves many quotes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._keys: dict[Level, MatchKey] = {}

    def locate(self, quote: str, *, min_key_chars: int = MIN_KEY_CHARS) -> list[Occurrence]:
        """Return every occurrence of ``quote``, overlapping ones too, by ascending offset.

        The list is empty if there is none. All are of one level: strict (each labelled ``exact`` or
        ``strict``), or lenient if strict finds none. A span never begins or ends with white space and never
        splits a visible character.

        Raises:
            QuoteTooShort: if the quote's strict key is shorter than ``min_key_chars``. Lower it only for
                quotes that something else than their wording ties to a place, such as published offsets.
        """
        key = searchable_key(quote, min_key_chars)
        spans = list(self._key(STRICT).find(key))
        if spans:
            verbatim = _trimmed(quote)
            return [
                Occurrence(start, end, "exact" if self.text[start:end] == verbatim else "strict")
                for start, end in spans
            ]
        lenient = key_of(quote, LENIENT)
        return [Occurrence(start, end, "lenient") for start, end in self._key(LENIENT).find(lenient)]

    def _key(self, level: Level) -> MatchKey:
        if level not in self._keys:
            self._keys[level] = match_key(self.text, level)
        return self._keys[level]


def context(text: str, start_char: int, end_char: int, width: int = 32) -> tuple[str, str]:
    """Return up to ``width`` code points before and after a range, to tell equal quotes apart.

    Raises:
        ValueError: if ``[start_char, end_char)`` is not inside the text, or ``width`` is negative.
    """
    if not 0 <= start_char <= end_char <= len(text) or width < 0:
        raise ValueError(f"[{start_char}, {end_char}), width {width}: not in a text of {len(text)} characters")
    return text[max(0, start_char - width) : start_char], text[end_char : end_char + width]


def _trimmed(quote: str) -> str:
    """The quote from its first to its last key character, as spans are: no white space at the ends."""
    start, end = 0, len(quote)
    while is_dropped(quote[start]):
        start += 1
    while is_dropped(quote[end - 1]):
        end -= 1
    return quote[start : end_of_character(quote, end)]
