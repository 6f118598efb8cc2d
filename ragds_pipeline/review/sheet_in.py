"""Reading a returned sheet, whatever a spreadsheet program did to it, and what it decides.

:func:`read_sheet` finds the rows and columns; :func:`interpret` judges them against what was sent out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from ragds_pipeline.review.cells import from_cell, same_cell
from ragds_pipeline.review.interpret import Interpretation, RowDecision, interpret
from ragds_pipeline.review.rows import COLUMNS, FOR_READING, ReviewRow, join_spans
from ragds_pipeline.review.sheet import Problem, Severity, Sheet, SheetRow, place, quoted
from ragds_pipeline.review.sheet_csv import decodings, parse_csv
from ragds_pipeline.review.sheet_xlsx import looks_like_zip, read_xlsx_tables
from ragds_pipeline.review.table import Table, TableRow, UnreadableSheet

__all__ = [
    "Interpretation",
    "Problem",
    "RowDecision",
    "Severity",
    "Sheet",
    "SheetRow",
    "interpret",
    "read_sheet",
]

_READ_BACK = tuple(column for column in COLUMNS if column not in FOR_READING)
_NEEDED = ("id", "keep")
_OLE_MARK = b"\xd0\xcf\x11\xe0"


def read_sheet(path: Path, expected: Mapping[str, ReviewRow] | None = None) -> Sheet:
    """Read a review sheet that came back, as CSV or XLSX; the content decides which, not the file's name.

    Args:
        path: The file. That it can be opened is the caller's concern: OSError passes through.
        expected: The rows as they were sent, by id. Where the bytes of a CSV can be read as cp1252 and as
            cp932, the reading that gives back more of these wins.

    Returns:
        The rows that hold anything. What is wrong with the file is in ``problems``, never an exception.
    """
    data = path.read_bytes()
    try:
        table = _choose(_tables(data), expected or {})
    except UnreadableSheet as error:
        message = f"{place(path.name, error.line)}: {error.message}"
        return Sheet(path.name, "", (), (Problem(error.line, "", error.code, message),))
    return _to_sheet(path.name, table)


def _tables(data: bytes) -> list[Table]:
    """Return every way to read ``data`` as a table, the likeliest first."""
    if looks_like_zip(data):
        return read_xlsx_tables(data)
    if data.startswith(_OLE_MARK):
        raise UnreadableSheet(
            "not_a_sheet", 0,
            "this is an old XLS or a workbook with a password. Save it as XLSX without one, or as CSV UTF-8.",
        )  # fmt: skip
    tables = []
    broken = None
    for encoding, text in decodings(data):
        try:
            tables.append(parse_csv(text, encoding))
        except UnreadableSheet as error:  # the wrong one of two encodings may swallow a quote
            broken = broken or error
    if broken and not tables:
        raise broken
    return [table for table in tables if table.rows]


def _choose(tables: list[Table], expected: Mapping[str, ReviewRow]) -> Table:
    """Return the table with the needed columns that holds most of what was sent; the first in a draw."""
    if not tables:
        raise UnreadableSheet("empty", 0, "the file holds nothing. Export the sheet again.")
    return max(tables, key=lambda table: (_has_needed_columns(table), _cells_as_sent(table, expected)))


def _has_needed_columns(table: Table) -> bool:
    return set(_NEEDED) <= set(_positions(table.rows[0]))


def _cells_as_sent(table: Table, expected: Mapping[str, ReviewRow]) -> int:
    count = 0
    for row in _sheet_rows(table):
        sent = expected.get(row.id)
        if sent is None:
            continue
        pairs = (
            (row.chunk_id, sent.chunk_id),
            (row.type, sent.type),
            (row.question, sent.question),
            (row.answer, sent.answer),
            (row.evidence, join_spans(sent.evidence)),
        )
        count += sum(cell is not None and same_cell(cell, text, table.encoding) for cell, text in pairs)
    return count


def _to_sheet(name: str, table: Table) -> Sheet:
    header = table.rows[0]
    positions = _positions(header)
    problems = list(_header_problems(name, header))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return Sheet(name, table.encoding, (), tuple(problems))
    for row in table.rows[1:]:
        problems.extend(_row_problems(name, row, positions, len(header.cells)))
    return Sheet(name, table.encoding, tuple(_sheet_rows(table)), tuple(problems))


def _column_name(cell: str) -> str:
    return unicodedata.normalize("NFKC", cell).strip("\ufeff'\" \t\r\n").casefold()


def _positions(header: TableRow) -> dict[str, int]:
    """Return the position of each known column, the first where it stands twice."""
    positions: dict[str, int] = {}
    for index, cell in enumerate(header.cells):
        name = _column_name(cell)
        if name in _READ_BACK:
            positions.setdefault(name, index)
    return positions


def _header_problems(name: str, header: TableRow) -> Iterable[Problem]:
    names = [_column_name(cell) for cell in header.cells]
    for column in _READ_BACK:
        where = place(name, header.line, column)
        if names.count(column) > 1:
            text = f"{where}: this column stands {names.count(column)} times. Delete all but one."
            yield Problem(header.line, column, "duplicate_column", text)
        elif column not in names and column in _NEEDED:
            text = f"{where}: this column is missing; the header holds {quoted(', '.join(names))}. Put it back."
            yield Problem(header.line, column, "missing_column", text)
        elif column not in names:
            text = f"{where}: this column is missing, so changes in it go unseen. Put it back if there were any."
            yield Problem(header.line, column, "missing_column", text, Severity.WARNING)


def _row_problems(name: str, row: TableRow, positions: Mapping[str, int], width: int) -> Iterable[Problem]:
    if surplus := [cell for cell in row.cells[width:] if cell.strip()]:
        text = (
            f"{place(name, row.line)}: the row has more cells than the header, from {quoted(surplus[0])} on. "
            "A text with the delimiter in it has lost its quotes: put the row right or export it again."
        )
        yield Problem(row.line, "", "surplus_cells", text)
    for column, index in positions.items():
        if flaw := row.flaws.get(index):
            text = f"{place(name, row.line, column)}: the cell {quoted(row.cells[index])} {flaw}."
            yield Problem(row.line, column, "not_text", text)


def _sheet_rows(table: Table) -> Iterable[SheetRow]:
    """Yield the rows that hold anything in a known column; what stands beside them is the reviewer's own."""
    positions = _positions(table.rows[0])
    for row in table.rows[1:]:
        cells = {column: row.cells[index] if index < len(row.cells) else "" for column, index in positions.items()}
        if any(cell.strip() for cell in cells.values()):
            yield SheetRow(
                line=row.line,
                id=from_cell(cells.get("id", "")).strip(),
                keep_raw=cells.get("keep", ""),
                note=from_cell(cells.get("note", "")).strip(),
                chunk_id=cells.get("chunk_id"),
                type=cells.get("type"),
                question=cells.get("question"),
                answer=cells.get("answer"),
                evidence=cells.get("evidence"),
            )
