"""Tests of ``review.sheet_out``: what the two files look like to a spreadsheet program."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import openpyxl
import pytest

from ragds_pipeline.review.rows import COLUMNS, ReviewRow
from ragds_pipeline.review.sheet_out import GUIDE_TITLE, write_csv, write_xlsx
from ragds_pipeline_tests.review.sheets import NASTY, read_cells, row

ROWS = [row(f"c-{number}", question=text, answer=text, evidence=(text,)) for number, text in enumerate(NASTY)]
Writer = Callable[[Sequence[ReviewRow], Path], None]
WRITERS = pytest.mark.parametrize(("write", "name"), [(write_csv, "s.csv"), (write_xlsx, "s.xlsx")])


@WRITERS
def test_same_rows_give_the_same_bytes(write: Writer, name: str, tmp_path: Path) -> None:
    write(ROWS, tmp_path / "a" / name)
    time.sleep(2.1)  # openpyxl stamps its properties to the second, a ZIP its entries to two
    write(ROWS, tmp_path / "b" / name)
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@WRITERS
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    write: Writer, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    write(ROWS[:1], path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write(ROWS, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_csv_begins_with_a_byte_order_mark_and_the_header(tmp_path: Path) -> None:
    write_csv([row("1-2")], tmp_path / "s.csv")
    data = (tmp_path / "s.csv").read_bytes()
    assert data.startswith(b'\xef\xbb\xbf"id","chunk_id","type",') and data.endswith(b"\r\n")
    assert read_cells(tmp_path / "s.csv")[1][0] == "'1-2"


def test_xlsx_layout(tmp_path: Path) -> None:
    write_xlsx(ROWS, tmp_path / "s.xlsx")
    workbook = openpyxl.load_workbook(tmp_path / "s.xlsx")
    sheet = workbook.worksheets[0]
    assert [cell.value for cell in sheet[1]] == list(COLUMNS)
    assert sheet.freeze_panes == "E2"
    assert sheet.protection.sheet and sheet.protection.password is None
    [choice] = sheet.data_validations.dataValidation
    assert (choice.formula1, str(choice.sqref)) == ('"y,n"', f"G2:G{len(ROWS) + 1}")
    locked = [column for column, cell in zip(COLUMNS, sheet[2], strict=True) if cell.protection.locked]
    assert locked == ["id", "chunk_id", "type", "context", "judges"]
    assert all(cell.alignment.wrap_text for cell in sheet[2])
    assert all(cell.data_type in "sn" for cells in sheet.iter_rows() for cell in cells)
    assert all(cell.value is None for cells in sheet["G2":"H99"] for cell in cells)
    assert max(dimension.height or 0 for dimension in sheet.row_dimensions.values()) <= 300


def test_xlsx_says_how_to_review_in_three_languages(tmp_path: Path) -> None:
    write_xlsx([], tmp_path / "s.xlsx")
    workbook = openpyxl.load_workbook(tmp_path / "s.xlsx")
    assert workbook.sheetnames == ["review", GUIDE_TITLE]
    guide = "\n".join(str(cell.value or "") for [cell] in workbook[GUIDE_TITLE].iter_rows())
    assert "someone in the job" in guide and "仕事" in guide and "svolge questo lavoro" in guide
