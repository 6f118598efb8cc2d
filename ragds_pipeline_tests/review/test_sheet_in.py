"""Tests of ``review.sheet_in``: a sheet is read whatever a program did to the file."""

from __future__ import annotations

import codecs
import datetime
import io
import zipfile
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragds_pipeline.review import sheet_xlsx
from ragds_pipeline.review.rows import COLUMNS, ReviewRow
from ragds_pipeline.review.sheet_in import interpret, read_sheet
from ragds_pipeline.review.sheet_out import write_csv, write_xlsx
from ragds_pipeline_tests.review.sheets import NASTY, TEXTS, by_id, filled, read_cells, row, save_csv

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp932", "cp1252")
NASTY_ROWS = [row(f"c-{n}", question=text, answer=text, evidence=(text, "b")) for n, text in enumerate(NASTY)]
ROWS_OF_ANY_TEXT = st.lists(
    st.builds(
        ReviewRow, id=st.uuids().map(str), chunk_id=TEXTS, type=TEXTS, question=TEXTS, answer=TEXTS,
        evidence=st.lists(TEXTS, max_size=3).map(tuple), context=TEXTS,
    ),
    max_size=3, unique_by=lambda one: one.id,
)  # fmt: skip


def assert_all_undecided(path: Path, *rows: ReviewRow) -> None:
    result = interpret(read_sheet(path, by_id(*rows)), by_id(*rows))
    assert (result.problems, result.decisions, result.undecided) == ((), (), len(rows))


@settings(deadline=None, max_examples=60)
@given(ROWS_OF_ANY_TEXT)
def test_csv_comes_back_unedited(tmp_path_factory: pytest.TempPathFactory, rows: list[ReviewRow]) -> None:
    path = tmp_path_factory.mktemp("sheet") / "s.csv"
    write_csv(rows, path)
    assert_all_undecided(path, *rows)


@settings(deadline=None, max_examples=40)
@given(ROWS_OF_ANY_TEXT)
def test_xlsx_comes_back_unedited(tmp_path_factory: pytest.TempPathFactory, rows: list[ReviewRow]) -> None:
    path = tmp_path_factory.mktemp("sheet") / "s.xlsx"
    write_xlsx(rows, path)
    assert_all_undecided(path, *rows)


@settings(deadline=None, max_examples=100)
@given(ROWS_OF_ANY_TEXT, st.sampled_from(ENCODINGS), st.sampled_from(",;\t"), st.sampled_from(["\n", "\r\n"]))
def test_csv_saved_in_any_way_comes_back_unedited(
    tmp_path_factory: pytest.TempPathFactory, rows: list[ReviewRow], encoding: str, delimiter: str, end: str
) -> None:
    path = tmp_path_factory.mktemp("sheet") / "s.csv"
    write_csv(rows, path)
    save_csv(path, read_cells(path), encoding, delimiter, end)
    assert_all_undecided(path, *rows)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_nasty_texts_come_back_unedited_however_saved(encoding: str, delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    write_csv(NASTY_ROWS, path)
    cells = [[cell.replace("\n", "\r\n") for cell in line] for line in read_cells(path)]
    save_csv(path, cells, encoding, delimiter)
    assert_all_undecided(path, *NASTY_ROWS)


def test_expected_rows_settle_cp1252_against_cp932(tmp_path: Path) -> None:
    rows = (row("c-1", question="ﾆﾎﾝｺﾞ"), row("c-2", question="ﾌﾞﾝｼｮ"))  # half-width only: no full-width kana
    path = save_csv(tmp_path / "s.csv", [COLUMNS, *([r.id, "rules#1", "fact", r.question] for r in rows)], "cp932")
    assert read_sheet(path, by_id(*rows)).encoding == "cp932"
    assert read_sheet(path).encoding == "cp1252"


@pytest.mark.parametrize(
    ("keep", "encoding"),
    [("sì", "cp1252"), ("はい", "cp932"), ("○", "cp932"), ("×", "cp932"), ("×", "cp1252")],
)
def test_keep_alone_settles_the_encoding(keep: str, encoding: str, tmp_path: Path) -> None:
    path = save_csv(tmp_path / "s.csv", [("id", "keep"), ("c-1", keep)], encoding)
    assert read_sheet(path).rows[0].keep_raw == keep


def test_columns_in_any_order_case_and_number(tmp_path: Path) -> None:
    table = [
        ("mine", " Keep ", "NOTE", "ID", "Ｑuestion"),
        ("", "y", "fine", "c-1", "How many days?"),
        ("x",),
    ]
    sheet = read_sheet(save_csv(tmp_path / "s.csv", table, "utf-8-sig", ";"))
    [read] = sheet.rows
    assert (read.id, read.keep_raw, read.note, read.question, read.answer) == (
        "c-1",
        "y",
        "fine",
        "How many days?",
        None,
    )
    assert {problem.code for problem in sheet.problems} == {"missing_column"}
    assert not interpret(sheet, by_id(row())).errors


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    text = 'sep=;\r\n\r\nid;keep;note\r\nc-1;y;"a\r\nb\r\nc"\r\n;;\r\n\r\nc-2;n;"d\ne"\r\nc-3;;\r\n'
    (tmp_path / "s.csv").write_bytes(text.encode())
    sheet = read_sheet(tmp_path / "s.csv")
    assert [(one.id, one.line) for one in sheet.rows] == [("c-1", 4), ("c-2", 9), ("c-3", 11)]


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"", "empty", 0),
        (b"\r\n\r\n", "empty", 0),
        (b"question,answer\r\na,b\r\n", "missing_column", 1),
        (b"id,keep,keep\r\nc-1,y,n\r\n", "duplicate_column", 1),
        (b'id,keep\r\nc-1,y\r\nc-2,"n\r\nc-3,y\r\n', "broken_quotes", 3),
        (b"id,keep\r\nc-1,y,surplus\r\n", "surplus_cells", 2),
        (b"id,keep\r\nc-1,y\r\nc-2,\x81\x20\xff\r\n", "undecodable", 3),
        (codecs.BOM_UTF8 + b"id,keep\r\nc-1,\xe8\r\n", "undecodable", 2),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "not_a_sheet", 0),
        (b"PK\x03\x04 and then nothing", "damaged_xlsx", 0),
    ],
)
def test_a_file_that_cannot_be_trusted_is_a_problem(data: bytes, code: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_bytes(data)
    sheet = read_sheet(tmp_path / "s.csv", by_id(row()))
    assert (code, line) in {(problem.code, problem.line) for problem in sheet.problems}
    assert all(problem.message.startswith("s.csv") for problem in sheet.problems)
    assert not interpret(sheet, by_id(row())).importable


def save_xlsx(path: Path, table: list[list[object]]) -> Path:
    workbook = openpyxl.Workbook()
    for cells in table:
        workbook.active.append(cells)
    workbook.save(path)
    return path


def test_xlsx_cells_of_any_type(tmp_path: Path) -> None:
    table: list[list[object]] = [
        ["id", "keep", "answer"],
        ["c-1", True, 42],
        [],
        ["c-2", 0, 1.5],
        ["c-3", 1.0, None],
    ]
    sheet = read_sheet(save_xlsx(tmp_path / "s.xlsx", table))
    read = [(one.line, one.id, one.keep_raw, one.answer) for one in sheet.rows]
    assert read == [(2, "c-1", "TRUE", "42"), (4, "c-2", "0", "1.5"), (5, "c-3", "1", "")]


@pytest.mark.parametrize("value", ["=A1", datetime.datetime(2026, 1, 2), datetime.time(1, 2), "#N/A"])
def test_xlsx_cells_that_are_no_text_are_problems(value: object, tmp_path: Path) -> None:
    path = save_xlsx(tmp_path / "s.xlsx", [["id", "keep", "answer", "mine"], ["c-1", "y", value, "=A1"]])
    problems = [problem for problem in read_sheet(path).problems if problem.code != "missing_column"]
    assert [(problem.line, problem.column, problem.code) for problem in problems] == [(2, "answer", "not_text")]


def test_xlsx_sheet_may_be_the_second_one(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["my own notes"])
    workbook.create_sheet("review").append(["id", "keep"])
    workbook["review"].append(["c-1", "y"])
    workbook.save(tmp_path / "s.xlsx")
    assert [one.id for one in read_sheet(tmp_path / "s.xlsx").rows] == ["c-1"]


def repacked(path: Path, part: str, change: bytes) -> None:
    """Replace one part of a workbook."""
    with zipfile.ZipFile(path) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in {**parts, part: change}.items():
            target.writestr(name, content)
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xlsx_with_entities_is_refused(encoding: str, tmp_path: Path) -> None:
    write_xlsx([row()], tmp_path / "s.xlsx")
    evil = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><worksheet>&e;</worksheet>'
    repacked(tmp_path / "s.xlsx", "xl/worksheets/sheet1.xml", evil.encode(encoding))
    assert [problem.code for problem in read_sheet(tmp_path / "s.xlsx").problems] == ["unsafe_xlsx"]


def test_xlsx_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_xlsx([row()], tmp_path / "s.xlsx")
    repacked(tmp_path / "s.xlsx", "xl/media/bomb.bin", b"\0" * 2_000_000)
    monkeypatch.setattr(sheet_xlsx, "MAX_UNPACKED_BYTES", 1_000_000)
    assert [problem.code for problem in read_sheet(tmp_path / "s.xlsx").problems] == ["too_large"]


def test_xlsx_with_a_broken_part_is_a_problem(tmp_path: Path) -> None:
    write_xlsx([row()], tmp_path / "s.xlsx")
    repacked(tmp_path / "s.xlsx", "xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row>")
    assert [problem.code for problem in read_sheet(tmp_path / "s.xlsx").problems] == ["damaged_xlsx"]


def test_edits_survive_reordering(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    rows = (row("c-1"), row("c-2"))
    write_csv(rows, path)
    cells = filled(read_cells(path), {1: {"keep": "ja"}, 2: {"keep": "はい", "answer": "31日"}})
    save_csv(path, [list(reversed(line)) for line in (cells[0], cells[2])], "cp932")
    [decision] = interpret(read_sheet(path, by_id(*rows)), by_id(*rows)).decisions
    assert decision.corrected and decision.corrected.answer == "31日"
