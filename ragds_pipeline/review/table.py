"""A returned file as a plain table: cells as text with their lines, before any column is known by name.

``sheet_csv`` and ``sheet_xlsx`` make it, ``sheet_in`` finds the columns in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class UnreadableSheet(Exception):
    """The file cannot be read as a table at all."""

    def __init__(self, code: str, line: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.line = line
        self.message = message
        """What is wrong and what to do, without the file's name and line."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row that holds anything."""

    line: int
    cells: tuple[str, ...]
    flaws: Mapping[int, str] = field(default_factory=dict)
    """For a cell that is not plain text, by its position: what it is and what to do."""


@dataclass(frozen=True, slots=True)
class Table:
    """All rows that hold anything, the header first."""

    encoding: str
    rows: tuple[TableRow, ...]
