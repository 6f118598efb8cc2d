"""Tests of ``review.interpret``: what a sheet decides, and what is listed instead of guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from ragds_pipeline.records import Keep
from ragds_pipeline.review.interpret import Interpretation
from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline.review.sheet_in import interpret, read_sheet
from ragds_pipeline.review.sheet_out import write_csv
from ragds_pipeline_tests.review.sheets import by_id, filled, read_cells, row, save_csv

ROWS = (row("c-1"), row("c-2", evidence=("first  span", "[...]")), row("c-3"))


def returned(
    tmp_path: Path,
    changes: Mapping[int, Mapping[str, str]],
    rows: tuple[ReviewRow, ...] = ROWS,
    again: tuple[Mapping[str, str], ...] = (),
    encoding: str = "utf-8-sig",
) -> Interpretation:
    """Send ``rows``, change cells, append copies of the first row changed by ``again``, and interpret."""
    path = tmp_path / "review.csv"
    write_csv(rows, path)
    table = read_cells(path)
    for copy in again:
        table += filled([table[0], table[1]], {1: copy})[1:]
    save_csv(path, filled(table, changes), encoding)
    return interpret(read_sheet(path, by_id(*rows)), by_id(*rows))


def only_problem(result: Interpretation) -> tuple[int, str, str]:
    """Return line, column and code of the one problem, after a check that nothing would be imported."""
    [problem] = result.problems
    assert not result.importable and result.decisions == ()
    where = rf"review\.csv, line {problem.line}(, row \S+)?, column {problem.column}: "
    assert re.match(where, problem.message)
    return problem.line, problem.column, problem.code


def test_keep_drop_and_undecided(tmp_path: Path) -> None:
    result = returned(tmp_path, {1: {"keep": "はい", "note": " good "}, 2: {"keep": "n"}})
    assert result.importable and result.undecided == 1
    keep, drop = result.decisions
    assert (keep.id, keep.keep, keep.note, keep.line, keep.corrected) == ("c-1", Keep.KEEP, "good", 2, None)
    assert (drop.id, drop.keep, drop.line) == ("c-2", Keep.DROP, 3)


def test_an_edit_with_y_is_a_correction(tmp_path: Path) -> None:
    result = returned(tmp_path, {1: {"keep": "y", "question": "'=How many\r\ndays?", "answer": "cafe\u0301 "}})
    [decision] = result.decisions
    assert decision.keep is Keep.FIX
    assert decision.corrected == row("c-1", question="=How many\ndays?", answer="café")


def test_spans_left_alone_stay_exactly_as_they_were(tmp_path: Path) -> None:
    cell = "\nfirst  span \n[…]\nnew span\n\n[...]\n\n\\[...]\n"
    [decision] = returned(tmp_path, {2: {"keep": "sì", "evidence": cell}}).decisions
    assert decision.corrected and decision.corrected.evidence == ("first  span", "new span", "[...]")


def test_fix_may_be_said_with_an_edit_only(tmp_path: Path) -> None:
    assert returned(tmp_path, {1: {"keep": "fix", "answer": "31"}}).decisions[0].keep is Keep.FIX
    assert only_problem(returned(tmp_path, {1: {"keep": "fix"}})) == (2, "keep", "fix_without_edit")


def test_drop_wins_over_an_edit_with_a_warning(tmp_path: Path) -> None:
    result = returned(tmp_path, {1: {"keep": "n", "answer": "31"}})
    assert result.decisions[0].keep is Keep.DROP and result.decisions[0].corrected is None
    assert [problem.code for problem in result.warnings] == ["edit_ignored"] and result.importable


def test_a_note_without_a_decision_is_a_warning(tmp_path: Path) -> None:
    result = returned(tmp_path, {1: {"note": "ask Anna"}})
    assert [problem.code for problem in result.warnings] == ["note_undecided"] and result.importable
    assert result.undecided == 3


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ({"keep": "maybe"}, (2, "keep", "doubtful_keep")),
        ({"answer": "31"}, (2, "answer", "edit_undecided")),
        ({"keep": "y", "id": "c-9"}, (2, "id", "unknown_id")),
        ({"keep": "y", "id": ""}, (2, "id", "missing_id")),
        ({"keep": "y", "type": "procedure"}, (2, "type", "locked_cell_edited")),
        ({"keep": "y", "question": " "}, (2, "question", "emptied")),
        ({"keep": "y", "answer": "#NAME?"}, (2, "answer", "spreadsheet_error")),
        ({"keep": "y", "answer": "#NOME?"}, (2, "answer", "spreadsheet_error")),
    ],
)
def test_what_is_doubtful_is_listed(cells: Mapping[str, str], problem: tuple[int, str, str], tmp_path: Path) -> None:
    result = returned(tmp_path, {1: cells, 2: {"keep": "y"}})
    assert only_problem(result) == problem
    assert result.understood == 1  # and yet nothing of it is imported


def test_a_message_names_file_line_row_column_value_and_remedy(tmp_path: Path) -> None:
    [problem] = returned(tmp_path, {2: {"keep": "maybe"}}).problems
    assert problem.message == (
        f"review.csv, line 3, row {ROWS[1].id}, column keep: 'maybe' is not a known value; "
        "y keeps, n drops, empty leaves it open."
    )


def test_the_same_decision_twice_counts_once_with_both_notes(tmp_path: Path) -> None:
    again = ({"keep": "yes", "note": "b"}, {"keep": "", "note": ""})
    result = returned(tmp_path, {1: {"keep": "y", "note": "a"}}, again=again)
    [decision] = result.decisions
    assert (decision.line, decision.note) == (2, "a\nb")
    assert result.undecided == 2  # c-2 and c-3: the third row of c-1 leaves nothing open


@pytest.mark.parametrize("other", [{"keep": "n"}, {"keep": "y", "answer": "31"}])
def test_contradictory_decisions_are_a_problem(other: Mapping[str, str], tmp_path: Path) -> None:
    result = returned(tmp_path, {1: {"keep": "y"}, 2: {"keep": "y"}}, again=(other,))
    assert only_problem(result) == (2, "keep", "contradiction")
    assert "keep in line 2, " in result.problems[0].message  # c-2 takes three lines, for its two spans
    assert " in line 7." in result.problems[0].message
    assert result.understood == 1


def test_a_shortened_cell_can_be_left_or_replaced_but_not_edited(tmp_path: Path) -> None:
    rows = (row("c-1", answer="long " * 10_000),)
    assert returned(tmp_path, {1: {"keep": "y"}}, rows).decisions[0].keep is Keep.KEEP
    shown = read_cells(tmp_path / "review.csv")[1][4]
    edited = returned(tmp_path, {1: {"keep": "y", "answer": "very " + shown}}, rows)
    assert only_problem(edited) == (2, "answer", "edited_shortened")
    [decision] = returned(tmp_path, {1: {"keep": "y", "answer": "short"}}, rows).decisions
    assert decision.corrected and decision.corrected.answer == "short"


def test_an_edit_of_a_cell_that_lost_characters_is_a_problem(tmp_path: Path) -> None:
    rows = (row("c-1", question="perché?", answer="持株比例 30"),)
    assert returned(tmp_path, {1: {"keep": "sì"}}, rows, encoding="cp1252").decisions[0].keep is Keep.KEEP
    result = returned(tmp_path, {1: {"keep": "sì", "answer": "持株比例 31"}}, rows, encoding="cp1252")
    assert only_problem(result) == (2, "answer", "lost_characters")


def test_passages_cut_anew_are_one_warning_and_no_obstacle(tmp_path: Path) -> None:
    cells = {number: {"keep": "y", "chunk_id": f"rules#{number + 5}"} for number in (1, 2, 3)}
    result = returned(tmp_path, cells)
    assert result.importable and len(result.decisions) == 3
    (problem,) = result.warnings
    assert (problem.line, problem.column, problem.code) == (2, "chunk_id", "chunk_id_differs")
    assert "'rules#6' is 'rules#1' now, and so in 2 more rows" in problem.message


def test_spans_that_look_alike_both_stay_as_they_were(tmp_path: Path) -> None:
    rows = (row("c-1", evidence=("ask first ", "ask first", "wait")),)
    [decision] = returned(tmp_path, {1: {"keep": "y", "evidence": "ask first\n[...]\nask first"}}, rows).decisions
    assert decision.corrected and decision.corrected.evidence == ("ask first ", "ask first")
