"""Which of the KB's languages a document is written in: by its script where that decides, else by py3langid."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

SAMPLE_CHARS = 1_500
"""Enough for a sure answer between a handful of languages; more only costs time (6,000 made it the dearest step)."""

_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
    "el": re.compile(r"[\u0370-\u03ff]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
    "he": re.compile(r"[\u0590-\u05ff]"),
}
_MIN_SHARE = 0.08
"""Share of letters in a script that decides: Japanese documents hold plenty of Latin names, the reverse is rare."""

# Links, code and markup say nothing about the language of the prose.
_NOISE = re.compile(r"```.*?```|`[^`\n]*`|<[^>\n]*>|\]\([^)\n]*\)|https?://\S+|^---\n.*?\n---\n", re.S)


@cache
def _identifier(languages: tuple[str, ...]) -> Any:
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_modelpath(MODEL_DIR / MODEL_FILE)
    identifier.set_languages(list(languages))
    return identifier


def detect_language(text: str, languages: list[str]) -> str:
    """Return the likeliest of ``languages`` (ISO 639-1), or ``und`` where the text holds too few letters."""
    sample = _NOISE.sub(" ", text[: SAMPLE_CHARS * 3])[:SAMPLE_CHARS]
    letters = sum(map(str.isalpha, sample))
    if letters < 8:
        return languages[0] if len(languages) == 1 else "und"
    for code, script in _SCRIPTS.items():
        if code in languages and len(script.findall(sample)) > _MIN_SHARE * letters:
            return code
    spelled = tuple(code for code in languages if code not in _SCRIPTS)
    if len(spelled) < 2:
        return spelled[0] if spelled else "und"
    return str(_identifier(spelled).classify(sample)[0])
