"""Reading an XLSX that came back: the one place that knows how openpyxl types cells.

An XLSX is a ZIP of XML files from somebody else's machine. Before openpyxl sees it, the size it would unpack
to is limited and any document type declaration is refused: OOXML has none, and entity expansion ("billion
laughs") as well as external entities need one. That makes the ``defusedxml`` package unnecessary here.
"""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Iterator
from typing import Any

import openpyxl

from ragds_pipeline.review.table import Table, TableRow, UnreadableSheet

MAX_UNPACKED_BYTES = 256 * 1024 * 1024
"""About eight thousand full cells; a sheet for people is a hundredth of that."""

MAX_ENTRIES = 2_000

_AS_XLSX = "Save it as XLSX or as CSV UTF-8 and import that."


def looks_like_zip(data: bytes) -> bool:
    """Tell whether ``data`` begins like a ZIP, and so like an XLSX."""
    return data.startswith(b"PK\x03\x04")


def read_xlsx_tables(data: bytes) -> list[Table]:
    """Return the non-empty worksheets of a workbook, in order.

    Raises:
        UnreadableSheet: It is no XLSX, is damaged, or unpacks to more than is allowed.
    """
    _check_archive(data)
    try:
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=False)
    except Exception as error:  # openpyxl raises whatever its parsers do: KeyError, ValueError, ParseError ...
        raise UnreadableSheet("damaged_xlsx", 0, f"the workbook cannot be read ({error}). {_AS_XLSX}") from error
    try:
        tables = [Table("xlsx", tuple(_rows(sheet))) for sheet in workbook.worksheets]
    except Exception as error:
        raise UnreadableSheet("damaged_xlsx", 0, f"a worksheet cannot be read ({error}). {_AS_XLSX}") from error
    finally:
        workbook.close()
    return [table for table in tables if table.rows]


def _check_archive(data: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            names = {entry.filename for entry in entries}
            if "xl/workbook.xml" not in names:
                kind = "an OpenDocument file" if "content.xml" in names else "a ZIP but no XLSX workbook"
                raise UnreadableSheet("not_a_sheet", 0, f"this is {kind}. {_AS_XLSX}")
            # The declared size can be trusted as a limit: zipfile stops reading an entry there.
            unpacked = sum(entry.file_size for entry in entries)
            if unpacked > MAX_UNPACKED_BYTES or len(entries) > MAX_ENTRIES:
                raise UnreadableSheet(
                    "too_large", 0,
                    f"the workbook unpacks to {unpacked:,} bytes in {len(entries):,} parts; allowed are "
                    f"{MAX_UNPACKED_BYTES:,} in {MAX_ENTRIES:,}. Copy the rows to a new workbook.",
                )  # fmt: skip
            for entry in entries:
                if entry.filename.endswith((".xml", ".rels")):
                    _refuse_doctype(archive.read(entry), entry.filename)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise UnreadableSheet("damaged_xlsx", 0, f"the file is damaged ({error}). {_AS_XLSX}") from error


def _refuse_doctype(part: bytes, name: str) -> None:
    # Without NUL bytes, UTF-16 cannot hide it.
    if b"<!DOCTYPE" in part or b"<!DOCTYPE" in part.replace(b"\0", b""):
        raise UnreadableSheet(
            "unsafe_xlsx", 0,
            f"the part {name} declares a document type, which no spreadsheet program writes. "
            "Do not open the file; ask for a new copy.",
        )  # fmt: skip


def _rows(sheet: Any) -> Iterator[TableRow]:
    sheet.reset_dimensions()  # the stated dimensions may be too small, or a million rows too large
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        texts = tuple(_text(cell.value) for cell in cells)
        if any(text.strip() for text in texts):
            flaws = {index: flaw for index, cell in enumerate(cells) if (flaw := _flaw(cell))}
            yield TableRow(number, texts, flaws)


_TRUTH = {"=TRUE()": "TRUE", "=FALSE()": "FALSE"}
"""How LibreOffice saves a truth value in XLSX: as a formula, though nobody typed one."""


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and value.upper() in _TRUTH:
        return _TRUTH[value.upper()]
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _flaw(cell: Any) -> str:
    if cell.data_type == "f" and str(cell.value).upper() not in _TRUTH:
        return "holds a formula. Type the text itself"
    if cell.data_type == "e":
        return "holds an error value. Type the text itself"
    if isinstance(cell.value, datetime.date | datetime.time | datetime.timedelta):
        return "was turned into a date or time. Format the cell as text and type the text again"
    return ""
