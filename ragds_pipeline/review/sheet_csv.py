"""Reading a CSV that came back: which encoding and which delimiter a spreadsheet program saved it with.

A byte order mark settles the encoding, else valid UTF-8 does; what is left was saved in the code page of a
Japanese (cp932) or a Western (cp1252) Windows, and the bytes alone often allow both.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable

from ragds_pipeline.review.cells import LEGACY_ENCODINGS
from ragds_pipeline.review.rows import COLUMNS
from ragds_pipeline.review.table import Table, TableRow, UnreadableSheet

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "utf-32"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
)
_DELIMITERS = (",", ";", "\t")
_SAVE_AGAIN = "Save the sheet as CSV UTF-8 or as XLSX and import that."


def decodings(data: bytes) -> list[tuple[str, str]]:
    """Return the possible texts of ``data`` as (encoding, text), the likeliest first.

    There are several only where cp1252 or cp932 is possible.

    Raises:
        UnreadableSheet: No encoding fits.
    """
    for mark, codec, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return [(name, _decode(data, codec))]
    if data[1:2] == b"\0" or data[:1] == b"\0":  # the header begins with ASCII, and this is its other half
        return [("utf-16", _decode(data, "utf-16-le" if data[1:2] == b"\0" else "utf-16-be"))]
    if data.isascii():  # any of them, where all that was not ASCII has become question marks
        return [(encoding, data.decode("ascii")) for encoding in ("utf-8", *LEGACY_ENCODINGS)]
    try:
        return [("utf-8", data.decode("utf-8"))]
    except UnicodeDecodeError as error:
        not_utf8 = error
    legacy = []
    for encoding in LEGACY_ENCODINGS:
        try:
            legacy.append((encoding, data.decode(encoding)))
        except UnicodeDecodeError:
            continue
    if not legacy:
        raise _undecodable(data, not_utf8)
    return sorted(legacy, key=lambda decoding: decoding[0] != _likelier(dict(legacy)))


def parse_csv(text: str, encoding: str) -> Table:
    """Return the table in ``text``, with the delimiter under which the header holds the most known columns.

    Raises:
        UnreadableSheet: The quoting is broken.
    """
    text, skipped = _without_separator_line(text)
    delimiter = max(_DELIMITERS, key=lambda candidate: _known_columns(text, candidate))
    return Table(encoding, tuple(_rows(text, delimiter, skipped)))


def _decode(data: bytes, codec: str) -> str:
    try:
        return data.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _undecodable(data, error) from error


def _undecodable(data: bytes, error: UnicodeDecodeError) -> UnreadableSheet:
    line = data.count(b"\n", 0, error.start) + 1
    return UnreadableSheet(
        "undecodable",
        line,
        f"byte 0x{data[error.start]:02x} is neither UTF-8, UTF-16, cp932 nor cp1252. {_SAVE_AGAIN}",
    )


def _likelier(legacy: dict[str, str]) -> str:
    """Choose cp932 where it yields kana: no Japanese sheet is without, and accented letters give none.

    Half-width kana do not count: many a letter or sign of cp1252 is one of those in cp932.
    """
    return "cp932" if re.search(r"[\u3041-\u3096\u30a1-\u30fa]", legacy.get("cp932", "")) else "cp1252"


def _without_separator_line(text: str) -> tuple[str, int]:
    """Drop a first line ``sep=;``, by which some programs state the delimiter: the header tells it too."""
    found = re.match(r'\s*"?sep=.?"?[^\S\n]*(?:\r\n|\r|\n)', text)
    return (text[found.end() :], len(re.findall(r"\r\n|\r|\n", found[0]))) if found else (text, 0)


def _known_columns(text: str, delimiter: str) -> int:
    header = text.lstrip("\r\n\ufeff").splitlines()[:1]
    return sum(name.strip(' "\t').casefold() in COLUMNS for line in header for name in line.split(delimiter))


def _rows(text: str, delimiter: str, skipped: int) -> Iterable[TableRow]:
    # Strict: otherwise one missing quote swallows the rest of the sheet without a word.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = skipped + 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield TableRow(line, tuple(cells))
            line = skipped + reader.line_num + 1
    except csv.Error as error:
        raise UnreadableSheet(
            "broken_quotes",
            line,
            f"the quotes of the row that starts here do not fit ({error}). {_SAVE_AGAIN}",
        ) from error
