"""A correction made in any kind of file becomes a FIX: the main path of a reviewer."""

from __future__ import annotations

import csv
from pathlib import Path

import openpyxl
import pytest

from ragds_pipeline.records import Keep
from ragds_pipeline.review.interpret import interpret
from ragds_pipeline.review.rows import COLUMNS, ReviewRow
from ragds_pipeline.review.sheet_in import read_sheet
from ragds_pipeline.review.sheet_out import write_csv, write_xlsx

ROW = ReviewRow(
    "c-1", "a#1", "fact", "How much is paid? 上限は？", "EUR 43 a head", ("Paid is EUR 43.", "Tips not."), ""
)
EDITS = {
    "question": "How much is paid a head?",
    "answer": "EUR 43 a head, tip included",
    "evidence": "Paid is EUR 43.\n[...]\nTips are not paid.",
}


@pytest.mark.parametrize("column", EDITS)
def test_a_correction_in_the_xlsx(tmp_path: Path, column: str) -> None:
    path = tmp_path / "review.xlsx"
    write_xlsx([ROW], path)
    book = openpyxl.load_workbook(path)
    sheet = book["review"]
    sheet.cell(2, COLUMNS.index(column) + 1).value = EDITS[column]
    sheet.cell(2, COLUMNS.index("keep") + 1).value = "y"
    book.save(path)
    _is_a_fix(path, column)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "utf-16", "cp932"])
@pytest.mark.parametrize("column", EDITS)
def test_a_correction_in_a_csv(tmp_path: Path, column: str, encoding: str) -> None:
    path = tmp_path / "review.csv"
    write_csv([ROW], path)
    rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    rows[1][COLUMNS.index(column)] = EDITS[column]
    rows[1][COLUMNS.index("keep")] = "y"
    with path.open("w", encoding=encoding, errors="replace", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    _is_a_fix(path, column)


@pytest.mark.parametrize(("value", "keep"), [("=TRUE()", Keep.KEEP), ("=FALSE()", Keep.DROP), (True, Keep.KEEP)])
def test_truth_values_as_spreadsheet_programs_save_them(tmp_path: Path, value: object, keep: Keep) -> None:
    path = tmp_path / "review.xlsx"
    write_xlsx([ROW], path)
    book = openpyxl.load_workbook(path)
    book["review"].cell(2, COLUMNS.index("keep") + 1).value = value
    book.save(path)
    found = interpret(read_sheet(path, {"c-1": ROW}), {"c-1": ROW})
    assert found.importable, found.problems
    assert found.decisions[0].keep is keep


def _is_a_fix(path: Path, column: str) -> None:
    found = interpret(read_sheet(path, {"c-1": ROW}), {"c-1": ROW})
    assert found.importable, found.problems
    (decision,) = found.decisions
    assert decision.keep is Keep.FIX and decision.corrected is not None
    corrected = {
        "question": decision.corrected.question,
        "answer": decision.corrected.answer,
        "evidence": "\n[...]\n".join(decision.corrected.evidence),
    }
    assert corrected[column] == EDITS[column]
