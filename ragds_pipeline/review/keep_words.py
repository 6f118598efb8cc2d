"""What people write into the ``keep`` column, in English, Japanese and Italian.

The table is closed on purpose: a word that is not in it is a doubtful value and goes back to its writer. So
does a Latin ``x`` or ``o``: it is a tick for some and a cross or a zero for others.
"""

from __future__ import annotations

import unicodedata

from ragds_pipeline.records import Keep

_WORDS = {
    Keep.KEEP: "y yes ok okay keep accept accepted true 1"
    " はい ハイ 可 採用 残す マル 丸 ○ 〇 ◯ ⭕ ◎ ✓ ✔ ☑ ✅"
    " s si sì vero tieni tenere mantieni accetta va_bene",
    Keep.DROP: "n no drop reject rejected discard false 0 ng"
    " いいえ イイエ 不可 否 不採用 削除 却下 バツ × ✕ ✖ ✗ ✘ ❌"
    " falso scarta scartare elimina rifiuta",
    Keep.FIX: "fix fixed 修正 修正済 corretto correggi corretta",
}
_MEANING = {word.replace("_", " "): keep for keep, words in _WORDS.items() for word in words.split()}


def parse_keep(cell: str) -> Keep | None:
    """Return what ``cell`` says, or None where it is empty.

    Case, width, white space, a final full stop or exclamation mark and the emoji form do not matter.

    Raises:
        ValueError: The value is none that is known.
    """
    word = unicodedata.normalize("NFKC", cell).casefold().replace("\ufe0f", "")
    word = unicodedata.normalize("NFC", " ".join(word.split())).lstrip("'").rstrip(".。!").strip()
    if not word:
        if cell.strip().strip("'"):
            raise ValueError(cell)
        return None
    try:
        return _MEANING[word]
    except KeyError:
        raise ValueError(cell) from None
