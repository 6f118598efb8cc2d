"""Tests of ``review.keep_words``."""

from __future__ import annotations

import pytest

from ragds_pipeline.records import Keep
from ragds_pipeline.review.keep_words import parse_keep

YES = "y Y yes YES ｙ Ｙｅｓ はい ﾊｲ ○ 〇 ◯ ✓ ✔️ ok OK ＯＫ sì SÌ si s vero VERO 1 １ TRUE true yes. はい。 '1"
NO = "n N no NO ｎ いいえ × ✕ ✗ ❌ 0 ０ FALSE falso no! NG 不採用"


@pytest.mark.parametrize("cell", [*YES.split(), " y ", "si\u0300", "\u3000○\n"])
def test_keep(cell: str) -> None:
    assert parse_keep(cell) is Keep.KEEP


@pytest.mark.parametrize("cell", NO.split())
def test_drop(cell: str) -> None:
    assert parse_keep(cell) is Keep.DROP


@pytest.mark.parametrize("cell", ["", " ", "\u3000", "\r\n", "'"])
def test_empty_is_undecided(cell: str) -> None:
    assert parse_keep(cell) is None


def test_fix() -> None:
    assert parse_keep("Fix") is parse_keep("修正") is Keep.FIX


@pytest.mark.parametrize("cell", ["maybe", "x", "X", "o", "?", "2", "y/n", "yes no", "-", ".", "多分", "=1"])
def test_doubtful(cell: str) -> None:
    with pytest.raises(ValueError):
        parse_keep(cell)
