"""What a reviewer is told of split votes: both reasons, beside the row, never read back."""

from __future__ import annotations

import csv
from pathlib import Path

import openpyxl
import pytest

from ragds_pipeline.records import Keep, Verdict
from ragds_pipeline.review.queue import judges_say
from ragds_pipeline.review.rows import COLUMNS
from ragds_pipeline.review.sheet_in import interpret, read_sheet
from ragds_pipeline.review.sheet_out import write_csv, write_xlsx
from ragds_pipeline_tests.review.sheets import by_id, filled, read_cells, row, save_csv

SPLIT = Verdict(
    "c-1", "support", True, "split_votes", "correct: =it stands there / incorrect: the header is missing",
    votes=("incorrect", "correct", "correct"),
)  # fmt: skip


def test_both_sides_are_shown_with_the_question_and_the_count() -> None:
    said = judges_say([SPLIT, Verdict("c-2", "class", True, "ok", "correct: fine", votes=("correct",))])
    assert said == {
        "c-1": "Does the evidence prove the answer, wholly?\n2× yes: =it stands there\n1× no: the header is missing"
    }


def test_two_split_judges_are_both_shown() -> None:
    other = Verdict("c-1", "class", True, "split_votes", "correct: a / incorrect: b", votes=("incorrect", "correct"))
    assert judges_say([SPLIT, other])["c-1"].count("yes: ") == 2


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)"])
def test_no_reason_becomes_a_formula(tmp_path: Path, text: str) -> None:
    rows = [row(judges=text)]
    write_csv(rows, tmp_path / "s.csv")
    write_xlsx(rows, tmp_path / "s.xlsx")
    at = COLUMNS.index("judges")
    assert read_cells(tmp_path / "s.csv")[1][at].startswith("'")
    cell = openpyxl.load_workbook(tmp_path / "s.xlsx").worksheets[0].cell(2, at + 1)
    assert cell.data_type == "s" and str(cell.value).startswith("'") and cell.protection.locked


def test_what_stands_there_is_no_note_and_no_edit(tmp_path: Path) -> None:
    sent = row(judges="1× yes: a\n1× no: b")
    write_csv([sent], tmp_path / "s.csv")
    table = filled(read_cells(tmp_path / "s.csv"), {1: {"keep": "y", "judges": "scribbled over"}})
    (decision,) = interpret(read_sheet(save_csv(tmp_path / "back.csv", table)), by_id(sent)).decisions
    assert (decision.keep, decision.note) == (Keep.KEEP, "")


def test_a_sheet_from_before_the_column_is_read(tmp_path: Path) -> None:
    sent = row(judges="1× yes: a\n1× no: b")
    old = [column for column in COLUMNS if column != "judges"]
    path = tmp_path / "old.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(old)
        writer.writerow([sent.id, sent.chunk_id, sent.type, sent.question, sent.answer, sent.evidence[0], "n", "x", ""])
    read = interpret(read_sheet(path, by_id(sent)), by_id(sent))
    assert not read.problems and [d.keep for d in read.decisions] == [Keep.DROP]
