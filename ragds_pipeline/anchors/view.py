"""One document of one revision as the ladder looks at it: its text, and what is worked out from it once, when needed.

What belongs here: keys, layout, fences, sections of a whole text. What does not: anything about two texts.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np

from ragds_pipeline.anchors.markup import KEPT, Markup, comments, fences, markup
from ragds_pipeline.anchors.reading import plain, tokens
from ragds_pipeline.spans.match_key import LENIENT, STRICT, MatchKey, is_dropped, match_key

SectionRange = tuple[int, int, int]
"""``(start_char, body_start_char, end_char)`` of a section: its heading, then its body, sub-sections included."""

SectionsOf = Callable[[str, str], Sequence[SectionRange]]
"""Gives the sections of a document, by its path and text, in order; a root section may come first."""


class TextView:
    """A document's text with its keys and layout, each made at first use."""

    def __init__(self, path: str, text: str, sections_of: SectionsOf | None = None) -> None:
        self.path = path
        self.text = text
        self._sections_of = sections_of
        self._layouts: dict[tuple[int, int], Markup] = {}

    @cached_property
    def strict(self) -> MatchKey:
        """The strict match key: white space and format characters dropped."""
        return match_key(self.text, STRICT)

    @cached_property
    def loose(self) -> MatchKey:
        """The lenient match key without layout: what a reformatted text has in common with the original."""
        key = match_key(self.text, LENIENT)
        kinds = self.markup.kinds
        if not kinds.any():
            return key
        kept = kinds[key.offsets] == KEPT
        points = np.frombuffer(key.key.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)[kept]
        return MatchKey(LENIENT, self.text, points.tobytes().decode("utf-32-le", "surrogatepass"), key.offsets[kept])

    @cached_property
    def _caseless(self) -> str:
        return _caseless(self.text)

    def has_word(self, word: str) -> bool:
        """Whether a word, as :func:`caseless_words` gives it, is one of the text's."""
        text = self._caseless
        at = text.find(word)
        while at >= 0:
            end = at + len(word)
            # What ``_WORD`` takes for part of a word is what ``isalnum`` says.
            if not text[end : end + 1].isalnum() and not (at and text[at - 1].isalnum()):
                return True
            at = text.find(word, end)
        return False

    @cached_property
    def is_markdown(self) -> bool:
        """Plain text has no layout but white space."""
        return not self.path.lower().endswith(".txt")

    @cached_property
    def markup(self) -> Markup:
        """The layout of the whole text."""
        return markup(self.text) if self.is_markdown else Markup(np.zeros(len(self.text), dtype=np.uint8), [], [])

    def layout(self, start: int, end: int) -> tuple[int, Markup]:
        """Return the layout around a stretch, and where in the text it begins.

        Nothing but code blocks and comments reaches across blank lines, so where there are none, the lines up to
        the next blank ones are enough.
        """
        if "markup" in self.__dict__ or not self.is_markdown or self.fences or self.comments:
            return 0, self.markup
        first = max(0, self.text.rfind("\n\n", 0, start) + 1)
        last = self.text.find("\n\n", end)
        last = len(self.text) if last < 0 else last
        if (first, last) not in self._layouts:
            self._layouts[first, last] = markup(self.text[first:last])
        return first, self._layouts[first, last]

    @cached_property
    def fences(self) -> list[tuple[int, int]]:
        """Fenced code blocks."""
        return fences(self.text) if self.is_markdown and ("```" in self.text or "~~~" in self.text) else []

    @cached_property
    def comments(self) -> list[tuple[int, int]]:
        """HTML comments."""
        return comments(self.text) if self.is_markdown else []

    @cached_property
    def sections(self) -> Sequence[SectionRange]:
        """The sections as the caller knows them; empty where it knows none."""
        return self._sections_of(self.path, self.text) if self._sections_of else ()

    @cached_property
    def section_starts(self) -> list[int]:
        """Where each section begins."""
        return [start for start, _, _ in self.sections]

    @cached_property
    def parents(self) -> list[int]:
        """For each section the index of the one around it, -1 for none."""
        found: list[int] = []
        around: list[int] = []
        for index, (start, _, end) in enumerate(self.sections):
            while (around and self.sections[around[-1]][2] < end) or (around and self.sections[around[-1]][2] <= start):
                around.pop()
            found.append(around[-1] if around else -1)
            around.append(index)
        return found

    @cached_property
    def strikes(self) -> bool:
        """Whether anything in the text is struck out."""
        return any(mark in self.text for mark in ("~~", "<del", "<s>", "<strike"))

    def is_in_code(self, at: int) -> bool:
        """Whether a place lies in a fenced code block."""
        return _lies_in(self.fences, at)

    def is_in_comment(self, at: int) -> bool:
        """Whether a place is commented out."""
        return _lies_in(self.comments, at)

    def plain(self, start: int, end: int) -> str:
        """Return a stretch as it is read, white space kept."""
        at, layout = self.layout(start, end)
        return plain(self.text[at : at + len(layout.kinds)], start - at, end - at, layout.kinds)

    def reading(self, start: int, end: int) -> list[str]:
        """Return the tokens of a stretch as it is read."""
        return tokens(self.plain(start, end))


_WORD = re.compile(r"[^\W_]+")


def caseless_words(text: str) -> frozenset[str]:
    """Return the words of a text as the lenient key folds them; soft hyphens and the like do not part words."""
    return frozenset(_WORD.findall(_caseless(text)))


def _caseless(text: str) -> str:
    if not text.isascii():
        for char in set(text):
            if is_dropped(char) and not char.isspace():
                text = text.replace(char, "")
        text = unicodedata.normalize("NFKC", text)
    return text.casefold()


def _lies_in(ranges: Sequence[tuple[int, int]], at: int) -> bool:
    before = bisect_right(ranges, at, key=itemgetter(0)) - 1
    return before >= 0 and at < ranges[before][1]


def key_slice(key: MatchKey, start: int, end: int) -> str:
    """Return the part of a key that comes from ``text[start:end]``."""
    low, high = np.searchsorted(key.offsets, (start, end))
    return key.key[low:high]
