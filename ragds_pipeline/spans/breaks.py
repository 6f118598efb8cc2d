"""Where running text may be cut: after sentences, else at white space, else between characters.

What belongs here: rules about characters and words in any language. What does not: Markdown, blocks,
passages. Shared by ``kb.passages`` (cutting paragraphs that are too long) and ``spans.sentences`` (quotable
units).
"""

# Word lists read best as words.
# ruff: noqa: SIM905

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

# Abbreviations that are always followed by what they introduce, so that no sentence ends after them.
_TITLES = frozenset(
    "mr mrs ms dr prof st sr jr gen col capt lt rev hon messrs "
    "sig sigg dott dott.ssa avv ing arch geom rag on egr gent spett preg "
    "e.g i.e cf vs viz approx ca incl resp es p.es c.d cd cosid ss ecc.ti rif hr fr bzw z.b d.h".split()
)
# Abbreviations that stand before a number; "No." and "Art." may well end a sentence otherwise.
_BEFORE_NUMBER = frozenset(
    "no nos nr n nn num art artt fig figg p pp pag pagg sec sect cap ch chap par vol tab all app eq ref c co "
    "comma lett".split()
)
# Words after which "U.S." or "a.m." turns out to have ended a sentence.
_STARTERS = frozenset(
    "The This That These Those It He She We You They If When In On At For But And A An As There However "
    "Il Lo La I Gli Le Un Una Se Quando Per Questo Questa Nel Nella".split()
)

_CLOSING = "\"'”’»)\\]*_`~"
_WIDE_CLOSING = "」』）】〕》〉”’\"')\\]*_`~"
# Possessive, and begun at the first stop only: a leader of ten thousand dots must not cost its square.
_TERMINATOR = re.compile(
    rf"(?<![.!?…؟।])(?P<stop>[.!?…؟।]++)[{_CLOSING}]*+(?:\[\^?[\w-]+\])*(?=\s)"
    rf"|(?P<wide>[。！？｡]+|．(?![\w.．]))(?P<quote>[{_WIDE_CLOSING}]*)"
)
_OPENING = " \t\n\u00a0\"'“‘«([*_`>~¿¡"
_ROMAN_OR_NUMBER = re.compile(r"(?:\d|[IVXLCDM]+\b|[a-z]\))")
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_WORD = re.compile(r"\w+")
_GLUED = re.compile(r"[\"'“‘’«(\[*_`~>/]")
"""What may stand right before an abbreviation: brackets, emphasis, an elided article (``dell'art.``)."""


def sentence_ends(text: str, start: int, end: int) -> list[int]:
    """Return the offsets in ``(start, end)`` just after each sentence but the last, white space not included.

    Knows English and Italian abbreviations, initials, decimals, list numbers, URLs, ellipses and Japanese
    stops with closing brackets. A line break is no boundary. In doubt it does not cut: a unit of two
    sentences can still be quoted, half a sentence proves nothing.
    """
    ends: list[int] = []
    sentence_start = start
    for match in _TERMINATOR.finditer(text, start, end):
        after = match.end()
        following = _skip(text, after, end)
        if following >= end:
            break
        if inside_grapheme(text, skip_blank(text, after, end)):
            continue
        if match["wide"] is not None:
            # 「はい。」と答えた: the quoted sentence goes on in the one around it.
            if match["quote"] and text[after] in "とはがをにもの、，って":
                continue
        elif not _ends_sentence(text, sentence_start, match.start(), match["stop"], following, end):
            continue
        ends.append(after)
        sentence_start = after
    return ends


def _skip(text: str, position: int, end: int) -> int:
    while position < end and (text[position] in _OPENING or text[position].isspace()):
        position += 1
    return position


def _ends_sentence(text: str, sentence_start: int, stop: int, stops: str, following: int, end: int) -> bool:
    """Tell whether the stops at ``stop`` end a sentence; the next one would begin at ``following``."""
    if text[following].islower():
        return False
    if stops != ".":
        return True
    # A word is looked for in the last 40 characters only, which keeps the scan linear.
    before = text[max(sentence_start, stop - 40) : stop].split()
    if not before:
        return True
    word = _GLUED.split(before[-1])[-1]
    if word.isdigit() and len(word) <= 3 and not text[sentence_start : stop - len(word)].strip(_OPENING + "-+"):
        return False  # "1. First": a number that heads its sentence
    lowered = word.lower()
    if lowered in _TITLES:
        return False
    if lowered in _BEFORE_NUMBER and _ROMAN_OR_NUMBER.match(text, following, end):
        return False
    if len(word) == 1 and word.isupper():
        return False  # an initial
    if _ACRONYM.fullmatch(word):
        starter = _WORD.match(text, following, end)
        return starter is not None and starter[0] in _STARTERS
    return True


def cut_before(text: str, start: int, limit: int) -> int:
    """Return the best place to cut text that has no sentence end in ``(start, limit]``.

    After white space (clauses first) if there is some in the second half, else after a full-width comma or
    between two characters of a script written without spaces, else after any white space, else after
    punctuation, else inside a word; inside a grapheme only if that alone is longer than the room. White space
    at the place is passed over, so that the result may lie behind ``limit`` by that much.
    """
    middle = start + (limit - start) // 2
    return (
        _last(_CLAUSE, text, middle, limit)
        or _last(_BLANK, text, middle, limit)
        or _last(_WIDE_CLAUSE, text, middle, limit)
        or _last_where(_between_wide, text, middle, limit)
        or _last(_BLANK, text, start, middle)
        or _last_where(_after_punctuation, text, middle, limit)
        or _last_where(_between_graphemes, text, start, limit)
        or skip_blank(text, limit, len(text))
    )


_CLAUSE = re.compile(r"[,;:–—][\"'”’»)\]]*(?=\s)")
_BLANK = re.compile(r"(?<=\S)(?=\s)")
_WIDE_CLAUSE = re.compile(r"[、，；：][」』）】]*")
_NEVER_FIRST = frozenset("、。，．！？；：」』）】〕》〉ー々")


def _last(pattern: re.Pattern[str], text: str, start: int, limit: int) -> int:
    """Return the place after the last match that ends in ``(start, limit]`` and after blanks; else 0."""
    ends = [match.end() for match in pattern.finditer(text, start, limit + 1)]
    for end in reversed(ends):
        position = skip_blank(text, end, len(text))
        if start < end <= limit and not inside_grapheme(text, position):
            return position
    return 0


def _last_where(allowed: Callable[[str, int], bool], text: str, start: int, limit: int) -> int:
    """Return the last place in ``(start, limit]`` that is allowed and next to no blank; 0 if none is."""
    for place in range(limit, start, -1):
        if allowed(text, place) and not (text[place - 1].isspace() or text[place].isspace()):
            return place
    return 0


def _between_wide(text: str, position: int) -> bool:
    # Japanese typesetting begins no line with closing punctuation; neither does a passage.
    if not is_wide(text[position - 1]) or text[position] in _NEVER_FIRST:
        return False
    return _between_graphemes(text, position)


def _after_punctuation(text: str, position: int) -> bool:
    return unicodedata.category(text[position - 1])[0] in "PS" and _between_graphemes(text, position)


def _between_graphemes(text: str, position: int) -> bool:
    return not inside_grapheme(text, position)


def skip_blank(text: str, position: int, end: int) -> int:
    """Return the first offset from ``position`` on, and at most ``end``, that holds no white space."""
    while position < end and text[position].isspace():
        position += 1
    return position


def is_wide(character: str) -> bool:
    """Tell whether the script of ``character`` has no spaces between words (CJK, kana, Thai, Khmer ...)."""
    return character >= "\u0e00" and bool(_UNSPACED.match(character))


_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u3190-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffee"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff]"
)


def inside_grapheme(text: str, position: int) -> bool:
    """Tell whether a cut at ``position`` would tear apart what readers see as one character.

    An approximation of the extended grapheme clusters of Unicode TR 29 that errs to the side of not
    cutting: marks, joiners, variation selectors, skin tones, flags, Hangul jamo and CRLF.
    """
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if before in "\n\r" or after < "\u0300":
        return before == "\r" and after == "\n"
    if before == "\u200d" or after in "\u200c\u200d" or unicodedata.category(after)[0] == "M":
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f" or after in "\uff9e\uff9f":
        return True
    if _is_flag(before) and _is_flag(after):
        first = position - 1
        while first > 0 and _is_flag(text[first - 1]):
            first -= 1
        return (position - first) % 2 == 1
    return "\u1160" <= after <= "\u11ff" and ("\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3")


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
