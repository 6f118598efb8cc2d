"""What two questions are compared by: their words, their numbers, their negations.

What belongs here: reading one question, and telling whether two alike ones ask for different things. What
does not: finding the pairs worth comparing (``duplicates``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cached_property

# Punctuation that carries meaning and so stays part of its word: C#, 20%, Q&A, @name. Symbols ($, +, <) stay
# anyway.
_MEANINGFUL_PUNCTUATION = frozenset("#%&@")
_MEANINGLESS_SYMBOLS = frozenset("`´¨|")

_MINUS = re.compile(r"(?<![^\s(])[-–](?=\d)")
_NOT_CONTRACTED = re.compile(r"n['’]t\b")

_IDEOGRAPHS = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNIT = re.compile(rf"[\u3040-\u309f]|[\u30a0-\u30ff{_IDEOGRAPHS}]|[^\s\u3040-\u30ff{_IDEOGRAPHS}]+")
_BESIDE_CJK = re.compile(rf"(?<=[\u3040-\u30ff{_IDEOGRAPHS}]) | (?=[\u3040-\u30ff{_IDEOGRAPHS}])")
_HIRAGANA = re.compile(r"[\u3040-\u309f]")

_NUMBER_WORDS = (
    "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand "
    "million billion half once twice first second third fourth fifth sixth seventh eighth ninth tenth "
    "due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento mille mila milione milioni "
    "miliardo miliardi primo prima secondo seconda terzo terza quarto quarta quinto quinta"
)
_NUMBER = re.compile(rf"\d+|[〇零一二三四五六七八九十百千万億兆]|\b(?:{_NUMBER_WORDS.replace(' ', '|')})\b")

_NEGATION = re.compile(
    r"\b(?:not|no|non|never|without|neither|nor|none|cannot|né|senza|mai|nessun[oa]?|ne|pas|nicht|kein\w*|sin)\b"
    r"|ない|なかっ|なく|なけれ|ません|[無不未非]"
)

# Words that may take each other's place without changing what is asked. Prepositions and modals are not among
# them.
_INTERCHANGEABLE_WORDS = (
    "a an the is are was were be been do does did has have had what which that this these those "
    "il lo la i gli le l un uno una è sono ha hanno quale quali qual cosa che"
)
_INTERCHANGEABLE = frozenset(_INTERCHANGEABLE_WORDS.split())


class QuestionForm:
    """One question, reduced to what counts when it is compared."""

    __slots__ = ("__dict__", "bag", "words")

    def __init__(self, question: str) -> None:
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", question).casefold())
        text = _NOT_CONTRACTED.sub(" not", _MINUS.sub("\u2212", text))
        self.words = _BESIDE_CJK.sub("", " ".join(text.translate(_SPACED).split()))
        """Case, width, punctuation and white space folded away; words in their order."""
        self.bag = " ".join(sorted(self.words.split(" ")))
        """The same words sorted, so that moving one costs nothing."""

    @cached_property
    def numbers(self) -> list[str]:
        """Digits and number words in their order, so that "3.5" is not "5.3"."""
        return _NUMBER.findall(self.words)

    @cached_property
    def negations(self) -> int:
        """How many words or endings negate."""
        return len(_NEGATION.findall(self.words))

    @cached_property
    def units(self) -> Counter[str]:
        """Words, and single characters where a script writes no blanks between words."""
        return Counter(_UNIT.findall(self.words))


def says_something_else(one: QuestionForm, other: QuestionForm) -> bool:
    """Whether two questions that look alike differ in a number, a negation or a word that was replaced."""
    return (
        one.numbers != other.numbers
        or one.negations != other.negations
        or _replaced(one.units, other.units)
        or _exchanged(one.words.split(), other.words.split())
    )


def _replaced(one: Counter[str], other: Counter[str]) -> bool:
    """Whether each question has a content word that the other lacks."""
    mine, yours = list((one - other).elements()), list((other - one).elements())
    # A single hiragana is a particle or an ending (は / が); two on both sides can be から / まで.
    kana = [sum(_HIRAGANA.match(unit) is not None for unit in side) for side in (mine, yours)]
    if min(kana) > 1:
        return True
    mine, yours = _without_hiragana(mine), _without_hiragana(yours)
    for replaceable in (_is_interchangeable, _inflects):
        for word in list(mine):
            match = next((candidate for candidate in yours if replaceable(word, candidate)), None)
            if match is not None:
                mine.remove(word)
                yours.remove(match)
    return bool(mine and yours)


def _without_hiragana(units: list[str]) -> list[str]:
    return [unit for unit in units if not _HIRAGANA.match(unit)]


def _is_interchangeable(one: str, other: str) -> bool:
    return one in _INTERCHANGEABLE and other in _INTERCHANGEABLE


def _inflects(one: str, other: str) -> bool:
    """Whether the longer word is the shorter with one or two letters added: employee / employees, not Mario /
    Maria."""
    short, long = sorted((one, other), key=len)
    ending = long[len(short) :]
    return len(short) >= 4 and len(ending) <= 2 and long.startswith(short) and ending.isalpha()


def _exchanged(one: list[str], other: list[str]) -> bool:
    """Whether the only difference is that two words, not next to each other, stand in each other's place."""
    if len(one) != len(other):
        return False
    places = [at for at, (mine, yours) in enumerate(zip(one, other, strict=True)) if mine != yours]
    if len(places) != 2 or places[1] - places[0] == 1:
        return False
    left, right = places
    return one[left] == other[right] and one[right] == other[left]


class _Spacing(dict[int, str]):
    """A table for ``str.translate``: what separates words becomes a blank. Learns each code point when it
    meets it."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        separates = (
            unicodedata.category(char)[0] in "PZC" and char not in _MEANINGFUL_PUNCTUATION
        ) or char in _MEANINGLESS_SYMBOLS
        self[code] = " " if separates else char
        return self[code]


_SPACED = _Spacing()
