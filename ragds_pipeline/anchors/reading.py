"""How a stretch of text reads: the words and signs that are left when layout is taken away.

Two stretches with the same reading say the same. This is stricter than the lenient match key, which is made for
searching: case, superscripts, fractions and the gaps between words are part of a reading; what is folded is only the
form of a character (quotation marks, dashes, width, ligatures, a typographic ellipsis).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ragds_pipeline.anchors.markup import BREAK, KEPT
from ragds_pipeline.spans.match_key import LENIENT, fold, is_dropped

_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f\U00020000-\U0003ffff"
_TOKEN = re.compile(
    rf"(?:(?<![\w)\]])[-+](?=\d))?\d+(?:[.,:/]\d+)*"  # a number with its sign and separators
    rf"|[{_WIDE}][\u0300-\u036f\u3099\u309a]*"
    rf"|(?:(?![{_WIDE}\d])\w)+(?:(?![{_WIDE}])[\w\u0300-\u036f])*"
    r"|[^\w\s][\u0300-\u036f]*"
)

_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SAME_SIGN = frozenset("′″´−⁃〜…")


def plain(text: str, start: int, end: int, kinds: npt.NDArray[np.uint8] | None = None) -> str:
    """Return ``text[start:end]`` without layout, with the forms of characters folded; white space stays.

    ``kinds`` are those of ``markup(text)``; None where the text is not Markdown.
    """
    stretch = text[start:end]
    if kinds is not None and (kinds[start:end] != KEPT).any():
        marked = kinds[start:end]
        # Runs of one kind, not characters: most of a text is kept.
        edges = [0, *(np.flatnonzero(np.diff(marked)) + 1).tolist(), len(marked)]
        stretch = "".join(
            stretch[low:high] if marked[low] == KEPT else " " if marked[low] == BREAK else ""
            for low, high in pairwise(edges)
        )
    if stretch.isascii():
        return stretch
    return unicodedata.normalize("NFC", "".join(map(_form, stretch)))


def tokens(plain_text: str) -> list[str]:
    """Return the words, numbers, characters of scripts without spaces, and signs, in order."""
    return _TOKEN.findall(plain_text)


def reading(text: str, start: int, end: int, kinds: npt.NDArray[np.uint8] | None = None) -> list[str]:
    """Return the tokens of a stretch as it is read."""
    return tokens(plain(text, start, end, kinds))


@cache
def _form(char: str) -> str:
    """Return a character in the form that all its equals share."""
    if char.isspace():
        return " " if char != "\n" else char
    if is_dropped(char):
        return char if char in _BIDI else ""
    category = unicodedata.category(char)
    if category in ("Pi", "Pf", "Pd") or char in "„‚‹›«»" or char in _SAME_SIGN:
        return fold(char, LENIENT)
    decomposition = unicodedata.decomposition(char)
    if decomposition.startswith(("<wide>", "<narrow>")) or "\ufb00" <= char <= "\ufb06":
        return unicodedata.normalize("NFKC", char)
    return char
