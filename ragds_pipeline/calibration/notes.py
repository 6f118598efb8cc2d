"""Which judge a reviewer's note speaks of: only where it says so in so many words.

A note names what is wrong by what stands before its first colon (``evidence: the header row is missing``), or by being
nothing but such words (``ambiguous``). The table is closed: a note that begins otherwise names no judge, because a
wrong label is worse than none.
"""

from __future__ import annotations

import re
import unicodedata

_WORDS = {
    "ambiguity": "unclear|ambiguous|ambiguity|not clear|曖昧|あいまい|不明確|意味不明"
    "|ambigua|ambiguo|non chiara|poco chiara",
    "closed_book": "known|common knowledge|closed book|closed-book|常識|周知|risaputa|risaputo|cultura generale",
    "support": "answer|wrong answer|incomplete|incomplete answer|not supported|unsupported|evidence|span|spans"
    "|回答|答え|誤答|根拠|証拠|risposta|risposta sbagliata|incompleta|evidenza|prova|prove|passo|passi",
    "": "wording|typo|style|表現|文言|誤字|formulazione|refuso|stile",
    "class": "difficulty|type|class|wrong type|wrong difficulty|wrong class|難易度|種類|分類|difficoltà|tipo|classe",
}
_JUDGE_OF = {word: judge for judge, words in _WORDS.items() for word in words.split("|")}
_COLON = re.compile(r"[:：]")
_BETWEEN = re.compile(r"[,、，/+&・]|\band\b|\be\b|(?<=[぀-鿿])と(?=[぀-鿿])")


def named_in(note: str) -> frozenset[str]:
    """Return the names of the judges that ``note`` speaks of; empty where it names none beyond doubt."""
    return _named(note) - {""}


def is_wording(note: str) -> bool:
    """Return whether ``note`` says that nothing but the wording was wrong."""
    return _named(note) == {""}


def _named(note: str) -> frozenset[str]:
    head = _COLON.split(unicodedata.normalize("NFKC", note), maxsplit=1)[0]
    parts = [" ".join(part.casefold().split()).strip(".。!") for part in _BETWEEN.split(head)]
    if not all(part in _JUDGE_OF for part in parts):
        return frozenset()
    return frozenset(_JUDGE_OF[part] for part in parts)
