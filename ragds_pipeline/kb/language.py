"""Which of the KB's languages a document is written in: by its script where that decides, else by py3langid.

A document in none of them is ``und``: a wrong label would have a model asked in the wrong language, and would hide
that a language is missing in ``kb.yaml``.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

SAMPLE_CHARS = 1_500
"""Enough for a sure answer; more only costs time (6,000 made it the dearest step)."""

_KANA = re.compile(r"[\u3040-\u30ff\uff66-\uff9f]")
_HAN = re.compile(r"[\u3005\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_SCRIPTS = {
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "el": re.compile(r"[\u0370-\u03ff]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
    "he": re.compile(r"[\u0590-\u05ff]"),
}
_MIN_SHARE = 0.08
"""Share of letters in a script that decides: Japanese documents hold plenty of Latin names, the reverse is rare."""
_MIN_HAN_SHARE = 0.3
"""The same for Japanese without any kana (titles, tables): a few kanji names in a text say nothing."""
_MIN_LETTERS = 8
_MIN_CJK_LETTERS = 2

_CHINESE_WORDS = re.compile(r"[這們麼妳您她嗎吧呢哪很]")
"""Everyday words of Chinese in traditional characters that Japanese does not use; the simplified ones are outside
the Japanese character set anyway."""
_CHINESE_SHARE = 0.02

_FOREIGN_MARGIN = 5.0
"""How much likelier (log, per root of the sample's bytes) another language must be than the KB's likeliest. Single
sentences of eight other languages came to 8 and more; English and Italian headings, names and commands to 0.8 at
most, and all 500 documents of two handbooks to 0."""

# Links, code and markup say nothing about the language of the prose.
_NOISE = re.compile(r"```.*?```|`[^`\n]*`|<[^>\n]*>|\]\([^)\n]*\)|https?://\S+|^---\n.*?\n---\n", re.S)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_modelpath(MODEL_DIR / MODEL_FILE)


def detect_language(text: str, languages: list[str]) -> str:
    """Return the likeliest of ``languages`` (ISO 639-1).

    ``und`` where the text is in another language, or holds too few letters to choose between several.
    """
    sample = _NOISE.sub(" ", text[: SAMPLE_CHARS * 3])[:SAMPLE_CHARS]
    letters = sum(map(str.isalpha, sample))
    cjk = len(_KANA.findall(sample)) + len(_HAN.findall(sample))
    if letters < _MIN_LETTERS and not (cjk >= _MIN_CJK_LETTERS and cjk * 2 >= letters):
        return languages[0] if len(languages) == 1 else "und"
    if (code := _east_asian(sample, letters, languages)) in languages:
        return code
    for code, script in _SCRIPTS.items():
        if code in languages and len(script.findall(sample)) > _MIN_SHARE * letters:
            return code
    spelled = [code for code in languages if code not in _SCRIPTS and code not in ("ja", "zh")]
    return _by_spelling(sample, spelled) if spelled else "und"


def _east_asian(sample: str, letters: int, languages: list[str]) -> str:
    """Return ``ja`` or ``zh`` where the characters decide, else an empty text."""
    if len(_KANA.findall(sample)) > _MIN_SHARE * letters:
        return "ja"
    han = _HAN.findall(sample)
    if len(han) <= _MIN_SHARE * letters:
        return ""
    if "ja" not in languages or _is_chinese(han):
        return "zh"
    return "ja" if len(han) > _MIN_HAN_SHARE * letters else ""


def _is_chinese(han: list[str]) -> bool:
    signs = sum(1 for char in han if _CHINESE_WORDS.match(char) or not _in_japanese_set(char))
    return signs > _CHINESE_SHARE * len(han)


def _in_japanese_set(char: str) -> bool:
    try:
        char.encode("cp932")  # JIS X 0208 and the kanji that Windows adds (髙, 﨑)
    except UnicodeEncodeError:
        return False
    return True


def _by_spelling(sample: str, languages: list[str]) -> str:
    ranked = [(code, score) for code, score in _identifier().rank(sample) if code != "zxx"]
    ours = next(((code, score) for code, score in ranked if code in languages), None)
    margin = math.inf if ours is None else (ranked[0][1] - ours[1]) / math.sqrt(len(sample.encode()) or 1)
    if ours is not None and margin <= _FOREIGN_MARGIN:
        return str(ours[0])
    # A language that the model does not know is what is left when it is none of those that it knows.
    unknown = [code for code in languages if code not in _identifier().labels]
    return unknown[0] if len(unknown) == 1 else "und"
