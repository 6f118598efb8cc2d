"""Rows, texts and ways to save a sheet that the tests of the review sheet share."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hypothesis import strategies as st

from ragds_pipeline.review.rows import COLUMNS, ReviewRow

FORMULAS = (
    "=1+1", "+1", "-1", "- item\n- item", "@SUM(A1)", "\t=1", "\r=1", " =1", "=cmd|' /C calc'!A0",
    "＝1+1", "－1", "＋1", "＠x", "　＝1", "'=1", "''=1",
)  # fmt: skip
VALUES = (
    "0012", "1-2", "3/4", "5%", "€ 5,00", "12:30", "TRUE", "vero", "1e5", "2026-10-01", "5 March 2026",
    "10月1日", "#N/A", "#REF!", "１２", "½", "'0012",
)  # fmt: skip
CHARACTERS = (
    "\x0b \x00\x1f\x7f", "\x85 c1", "\ud83d", "\ud83d\ude00", "\ufffe\uffff", "_x0041_", "_x005F_", "x005F_",
    "_x005F_x005F_", "\\x0b", "\\\\x5c", "C:\\temp\\x0b", "🚀👨‍👩‍👧", "e\u0301 è", "zw\u200b\ufeff",
    "\u2028ls\u2029", "nbsp\xa0", "日本語〜のテキスト。", "perché no?", "curly “q” ‘s’",
)  # fmt: skip
LAYOUTS = (
    "a\nb\n\nc", "a\r\nb\rc", "tab\tin", '`a,"b"\nc;d`', "  lead and trail  ", "\n\nx\n\n", " ",
    "'tis", "'", "''", "| Pro | $20 |", "[...]", "\\[...]",
)  # fmt: skip
LONG = ("a" * 40_000, "🚀" * 20_000, "x\n" + "y" * 17_000, "=" + "z" * 32_766)

NASTY = FORMULAS + VALUES + CHARACTERS + LAYOUTS + LONG
"""Every kind of text that some spreadsheet, file format or library is known to damage."""

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=60)
"""Any code points at all, lone surrogates included."""

TEXTS = st.one_of(
    ANY_TEXT,
    st.sampled_from(NASTY),
    st.text(
        st.sampled_from(
            "=+-@'\\x05Fcb_ud83[.]… \t\r\n12/é日🚀\x0b\"",
        ),
        max_size=20,
    ),
)


def row(id_: str = "c-1", **fields: object) -> ReviewRow:
    """Return a row with plain texts in all fields that are not given."""
    values: dict[str, object] = {
        "chunk_id": "rules#1", "type": "fact", "question": "How many days?", "answer": "30 days",
        "evidence": ("within 30 days",), "context": "Claims are made within 30 days.", **fields,
    }  # fmt: skip
    return ReviewRow(id=id_, **values)  # type: ignore[arg-type]


def by_id(*rows: ReviewRow) -> dict[str, ReviewRow]:
    """Return ``rows`` as they are handed to the reader."""
    return {one.id: one for one in rows}


def read_cells(path: Path) -> list[list[str]]:
    """Return the cells of a CSV as written by us, header included."""
    return list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def save_csv(
    path: Path,
    table: Iterable[Sequence[str]],
    encoding: str = "utf-8",
    delimiter: str = ",",
    end: str = "\r\n",
) -> Path:
    """Save ``table`` as spreadsheet programs do, with question marks for what the encoding cannot hold."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(table)
    path.write_bytes(text.getvalue().encode(encoding, "replace"))
    return path


def filled(table: Sequence[Sequence[str]], changes: Mapping[int, Mapping[str, str]]) -> list[list[str]]:
    """Return ``table`` with cells changed: row number (1 is the first below the header) to column to text."""
    result = [list(cells) for cells in table]
    for number, cells in changes.items():
        for column, text in cells.items():
            result[number][COLUMNS.index(column)] = text
    return result
