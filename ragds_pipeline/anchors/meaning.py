"""What an edit changes of the meaning, as far as code can tell: numbers, dates, units, negation, names ...

``90 days`` and ``30 days`` are 97 % alike and say different things, so likeness alone decides nothing. Any edit that
shows in the reading goes to a person anyway; what is found here tells that person where to look, and is the guard where
text around a span changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from difflib import SequenceMatcher

from ragds_pipeline.anchors.word_lists import (
    CURRENCY,
    KINDS_OF,
    NAME,
    NEGATION,
    NOT_NAMES,
    NUMBER,
    PERCENT,
    STRIKE,
    UNSPACED,
)

_KANJI_DIGITS = {
    char: value for value, chars in enumerate(("〇零", "一壱", "二弐", "三参", *"四五六七八九")) for char in chars
}
_KANJI_SMALL = {"十": 10, "百": 100, "千": 1_000, "拾": 10}
_KANJI_LARGE = {"万": 10**4, "億": 10**8, "兆": 10**12}
_KANJI = "".join([*_KANJI_DIGITS, *_KANJI_SMALL, *_KANJI_LARGE])

_FACT = re.compile(
    rf"(?P<digits>(?:(?<![\w)\]])[-+−])?\d+(?:[.,:/'’]\d+)*(?:[{_KANJI}]+\d*)*)"
    rf"|(?P<kanji>[{_KANJI}]+)"
    r"|(?P<strike>~~|</?(?:del|s|strike)\b[^>]*>)"
    r"|(?P<other>[²³¹¼-¾\u09f4-\u09f9\u2070-\u209f\u2150-\u218f\u2460-\u24ff\u2776-\u2793\u3220-\u3247])"
    r"|(?P<word>(?:(?![\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])[^\W\d_])+(?:['’]t\b)?)"
    r"|(?P<katakana>[\u30a1-\u30fa\u30fc]{3,})"
    r"|(?P<wide>[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+)"
    r"|(?P<sign>[^\w\s])"
)

Fact = tuple[str, str, str]
"""Kind, value that equal facts share, and how it was written."""


def meaning_changes(old: str, new: str) -> tuple[str, ...]:
    """Say what touches the meaning: ``changed number 90 -> 30``, ``added negation not``, ``removed name Anna``.

    Args:
        old: the text as it was, layout taken away (``reading.plain``).
        new: the text as it is.

    Returns:
        The changes by kind, in the order of the text; empty where no fact of any kind changed. Two facts that
        changed places are a change.
    """
    before, after = _by_kind(old), _by_kind(new)
    found: list[str] = []
    for kind in dict.fromkeys([*before, *after]):
        found += _changes(kind, before.get(kind, []), after.get(kind, []))
    return tuple(found)


def changed_kinds(changes: tuple[str, ...]) -> frozenset[str]:
    """Return the kinds named in the result of :func:`meaning_changes`."""
    return frozenset(change.split(" ", 2)[1] for change in changes)


def _by_kind(text: str) -> dict[str, list[tuple[str, str]]]:
    kinds: dict[str, list[tuple[str, str]]] = {}
    for kind, value, written in facts(text):
        kinds.setdefault(kind, []).append((value, written))
    return kinds


def _changes(kind: str, before: list[tuple[str, str]], after: list[tuple[str, str]]) -> Iterator[str]:
    old, new = [value for value, _ in before], [value for value, _ in after]
    if old == new:  # spares the matcher, which takes its time to find that out
        return
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        gone = " ".join(written for _, written in before[i1:i2])
        come = " ".join(written for _, written in after[j1:j2])
        if gone and come:
            yield f"changed {kind} {gone} -> {come}"
        else:
            yield f"removed {kind} {gone}" if gone else f"added {kind} {come}"


def facts(text: str) -> Iterator[Fact]:
    """Yield the facts of a text in order."""
    for match in _FACT.finditer(text):
        group, written = match.lastgroup, match[0]
        if group in ("digits", "kanji"):
            yield NUMBER, number_value(written), written
        elif group == "strike":
            yield STRIKE, "~~", written
        elif group == "other":
            yield NUMBER, written, written
        elif group == "word":
            yield from _word(written)
        elif group == "katakana":
            yield NAME, written, written
            yield from _unspaced(written)
        elif group == "wide":
            yield from _unspaced(written)
        elif group == "sign":
            yield from _sign(written)


def _word(written: str) -> Iterator[Fact]:
    lowered = written.casefold()
    if lowered.endswith(("'t", "’t")):
        yield NEGATION, "n't", written
    for kind in KINDS_OF.get(lowered, ()):
        # RFC 8174: MUST in capitals says something else than must.
        yield kind, written if len(written) > 1 and written.isupper() else lowered, written
    if any(char.isupper() for char in written) and lowered not in NOT_NAMES and lowered not in KINDS_OF:
        yield NAME, written, written


def _unspaced(written: str) -> Iterator[Fact]:
    for match in UNSPACED.finditer(written):
        yield match.lastgroup or NEGATION, match[0], match[0]


def _sign(written: str) -> Iterator[Fact]:
    category = unicodedata.category(written)
    if category == "Sc":
        yield CURRENCY, written, written
    elif written in "%％‰":
        yield PERCENT, "%" if written != "‰" else "‰", written
    elif written in "<>≤≥=≠±":
        yield "limit", written, written


def number_value(written: str) -> str:
    """Return what equal numbers share: ``９０``, ``90``, ``九十`` and ``९०`` are 90; separators stay as they are.

    ``1,000`` and ``1.000`` are one number in different countries and two in one, so they are kept apart.
    """
    digits = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in written)
    sign = "-" if digits[:1] in "-−" else ""
    digits = digits.lstrip("-+−")
    if not any(char in _KANJI for char in digits):
        return sign + digits
    return sign + _kanji_value(digits)


def _kanji_value(written: str) -> str:
    """The value of ``三十``, ``二〇二六``, ``1万5千`` ...; the text itself where it is no number."""
    total = section = current = 0
    for token in re.findall(r"\d+(?:[.,]\d+)*|.", written):
        plain = token.replace(",", "")
        if plain.isdecimal():
            current = int(plain)
        elif token in _KANJI_DIGITS:
            current = current * 10 + _KANJI_DIGITS[token]
        elif token in _KANJI_SMALL:
            section += (current or 1) * _KANJI_SMALL[token]
            current = 0
        elif token in _KANJI_LARGE:
            total += (section + current or 1) * _KANJI_LARGE[token]
            section = current = 0
        else:
            return written
    return str(total + section + current)
