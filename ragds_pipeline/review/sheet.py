"""What was read from a returned sheet: rows as text, and problems. No judgement yet (``interpret``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An error stops the import of the whole file; a warning is shown and does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a returned sheet that a person should look at."""

    line: int
    """The physical line of the CSV on which the row starts, or the row number of the XLSX; 0 for the file."""
    column: str
    """Name of the column, or empty where it concerns the row or the file."""
    code: str
    message: str
    """Names file, line, column and value, and says what to do."""
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row as it came back. A field is None where the sheet no longer has that column."""

    line: int
    id: str
    keep_raw: str
    note: str
    chunk_id: str | None = None
    type: str | None = None
    question: str | None = None
    answer: str | None = None
    evidence: str | None = None

    def cell(self, column: str) -> str | None:
        """Return the cell of one of the columns that are compared with what was sent."""
        cells = {
            "chunk_id": self.chunk_id,
            "type": self.type,
            "question": self.question,
            "answer": self.answer,
            "evidence": self.evidence,
        }
        return cells[column]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A returned file: its rows that hold anything, in order, and what was wrong with it as a file."""

    name: str
    """Name of the file without its folder, for messages and for ``Decision.source``."""
    encoding: str
    """``utf-8``, ``utf-16``, ``cp932`` or ``cp1252`` for CSV; ``xlsx``; empty where it could not be read."""
    rows: tuple[SheetRow, ...]
    problems: tuple[Problem, ...]


def place(name: str, line: int, column: str = "", row: str = "") -> str:
    """Return where something stands, as every message begins: ``review.csv, line 14, row c-1f0c, column keep``.

    The id of the row is for those who open a CSV in a spreadsheet program: it numbers rows, and cells with line breaks
    take several lines of the file.
    """
    parts = [name]
    if line:
        parts.append(f"line {line}")
    if row:
        parts.append(f"row {row}")
    if column:
        parts.append(f"column {column}")
    return ", ".join(parts)


def quoted(value: str) -> str:
    """Return ``value`` for a message, escaped and not longer than one can take in."""
    return repr(value if len(value) <= 60 else value[:57] + "...")
