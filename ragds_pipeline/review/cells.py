r"""Making a text safe to stand in a spreadsheet cell, and reading it back.

Three things are done to a text, in this order; all but the last can be undone exactly:

1. **Escape** what a file cannot hold or a program would alter: control characters (``\x0b`` is then shown as
   those four characters), lone surrogates (``\ud83d``), and the ``_x000D_`` form that XLSX itself gives a
   meaning to. A backslash is escaped only where it would be mistaken for one of ours, so ``C:\temp`` stays.
2. **Guard** with an apostrophe what a spreadsheet would run as a formula or turn into a number or a date.
3. **Shorten** what is longer than a cell can be, with a marker that says so.

What does not belong here: files, columns, decisions.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

CELL_LIMIT = 32_767
"""The most that Excel keeps in one cell, in UTF-16 units: an emoji counts as two."""

LEGACY_ENCODINGS = ("cp1252", "cp932")
"""The code pages in which Western and Japanese Windows save a CSV that is not asked to be UTF-8."""

GUARD = "'"
"""Every spreadsheet program knows it as "this is text". See OWASP, *CSV Injection*."""

LINE_LIMIT = 16_000
"""The most that is left on one line of a cell that has several: LibreOffice puts one more line break
after 16,367 units there (measured with 7.4), and tears apart an emoji that stands on the edge."""

_ROOM_FOR_MARKER = 200
_MARKER = "\n[cut here: {count} more characters are not shown. Leave this cell as it is, or replace all of it]"
_MARKER_FORM = re.compile(r"\[cut here: \d+ more characters are not shown")

# Exactly the escapes that are ever written: C0 and C1 controls but tab and line feed, delete, backslash,
# underscore, "x", surrogates, U+FFFE, U+FFFF. ``\x41`` or ``\u00e9`` in a text on programming stays itself.
_ESCAPE_FORM = r"x(?:0[0-8b-f]|1[0-9a-f]|5[cf]|7[8f]|[89][0-9a-f])|u(?:d[89a-f][0-9a-f]{2}|fff[ef])"
_ESCAPE = re.compile(rf"\\(?:{_ESCAPE_FORM})")
# XLSX reads ``_x0041_`` as "A", and openpyxl deletes every ``x005F_``: both are broken up.
_TO_ESCAPE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
    r"|_(?=x[0-9A-Fa-f]{4}_)|x(?=005F_)"
    rf"|\\(?={_ESCAPE_FORM})"
)

_FORMULA_START = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")

# A whole cell of these is taken for a number, date, time, amount, truth value or error by some program in
# some locale. One guard too many costs an apostrophe; one missing costs the text (``1-2`` becomes 2 January).
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|gen|mag|giu|lug|ago|set|ott|dic"
_VALUE_LIKE = re.compile(
    rf"(?=.*\d)(?:[\d\s.,:/()%$€£¥+-]|e(?=[+-]?\d)|[ap]\.?m\b|[年月日時分秒]|明治|大正|昭和|平成|令和|(?:{_MONTHS})[a-z]*+)+"
    r"|true|false|vero|falso|真|偽|#.+[!?]|#n/[ad]",
    re.IGNORECASE,
)
_VALUE_LIKE_LENGTH = 40

# Windows and the JIS standard disagree on seven characters of cp932; a save may exchange one for the other.
_CP932_TWINS = dict(zip("〜−‖—¢£¬", "～－∥―￠￡￢", strict=True))


def to_cell(text: str, *, typed: bool = False) -> str:
    """Return ``text`` as it can stand in a cell.

    Args:
        text: Any text at all.
        typed: True where the file says that the cell is text (XLSX), so that ``0012`` needs no guard;
            formulas are guarded all the same, since the reviewer may save the sheet as CSV.
    """
    return _shorten(_full_cell(text, typed))


def from_cell(cell: str) -> str:
    """Return the text of a cell that was not shortened: the inverse of :func:`to_cell`, typed or not.

    Line ends come back as LF, since a carriage return of the text itself was escaped on the way out.
    """
    text = _line_feeds(cell)
    if text.startswith(GUARD) and _needs_guard(text[1:], typed=False):
        text = text[1:]
    return _ESCAPE.sub(lambda found: chr(int(found[0][2:], 16)), text)


def is_shortened(text: str) -> bool:
    """Tell whether ``text`` is too long for one cell, so that :func:`to_cell` shortens it."""
    return not _fits(_full_cell(text, typed=False))


def holds_marker(cell: str) -> bool:
    """Tell whether the marker of a shortened cell stands in ``cell``."""
    return _MARKER_FORM.search(cell) is not None


def same_cell(received: str, text: str, encoding: str = "utf-8") -> bool:
    """Tell whether ``received`` is the cell that ``text`` was sent as, as far as spreadsheets leave it alone.

    Not counted as a difference: line ends, white space at either end and at line ends, NFC or NFD, the guard
    (a program may take it for its own), and, where the file came back in a legacy ``encoding``, characters
    that it cannot hold and that were saved as something else. All else is an edit, curly quotes included.
    """
    got = _canonical(received)
    cells = {to_cell(text), to_cell(text, typed=True)}
    if any(_canonical(cell) == got for cell in cells):
        return True
    if encoding not in LEGACY_ENCODINGS:
        return False
    # Only ASCII white space is trimmed here: a no-break space at the end may have become a question mark.
    as_received = _trimmed(received, re.ASCII)
    trimmed = {_trimmed(cell, re.ASCII) for cell in cells}
    forms = trimmed | {unicodedata.normalize("NFC", cell) for cell in trimmed}
    return any(_as_saved(form, encoding, marks).fullmatch(as_received) for form in forms for marks in (1, 2))


def survives(text: str, encoding: str) -> bool:
    """Tell whether a sheet in ``encoding`` (as in ``Sheet.encoding``) can hold the cell of ``text`` without loss."""
    if encoding not in LEGACY_ENCODINGS:
        return True  # XLSX and the Unicode encodings hold every cell; "xlsx" is no codec
    cell = to_cell(text)
    return cell.encode(encoding, "replace").decode(encoding) == cell


def utf16_length(text: str) -> int:
    """Return the length of ``text`` as Excel counts it."""
    return len(text) + sum(character > "\uffff" for character in text)


def _full_cell(text: str, typed: bool) -> str:
    escaped = _TO_ESCAPE.sub(_escape, text)
    return GUARD + escaped if _needs_guard(escaped, typed) else escaped


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _needs_guard(text: str, typed: bool) -> bool:
    """Decide by what stands behind any apostrophes: ``'tis`` needs no guard, ``'=1`` gets a second one."""
    body = text.lstrip(GUARD)
    if _FORMULA_START.match(body):
        return True
    return _looks_like_value(body) and not (typed and body == text)


def _looks_like_value(text: str) -> bool:
    if len(text) > _VALUE_LIKE_LENGTH:
        return False
    return _VALUE_LIKE.fullmatch(unicodedata.normalize("NFKC", text)) is not None


def _fits(cell: str) -> bool:
    lines = cell.split("\n")
    return utf16_length(cell) <= CELL_LIMIT and (
        len(lines) == 1 or all(utf16_length(line) <= LINE_LIMIT for line in lines)
    )


def _shorten(cell: str) -> str:
    if _fits(cell):
        return cell
    kept = _first_units(cell, CELL_LIMIT - _ROOM_FOR_MARKER)
    start = 0
    for line in kept.split("\n"):
        if utf16_length(line) > LINE_LIMIT:
            kept = kept[:start] + _first_units(line, LINE_LIMIT)
            break
        start += len(line) + 1
    return kept + _MARKER.format(count=len(cell) - len(kept))


def _first_units(text: str, count: int) -> str:
    """Return as much of ``text`` as fits into ``count`` UTF-16 units, no character torn apart."""
    return text.encode("utf-16-le")[: 2 * count].decode("utf-16-le", "ignore")


def _line_feeds(text: str) -> str:
    return re.sub(r"\r+\n|\r", "\n", text)


def _trimmed(cell: str, white_space: re.RegexFlag = re.UNICODE) -> str:
    text = re.sub(r"[^\S\n]+$", "", _line_feeds(cell), flags=re.MULTILINE | white_space)
    return re.sub(rf"\A[\s{GUARD}]+|\s+\Z", "", text, flags=white_space)


def _canonical(cell: str) -> str:
    return unicodedata.normalize("NFC", _trimmed(cell))


def _as_saved(cell: str, encoding: str, marks_for_astral: int) -> re.Pattern[str]:
    """Return what ``cell`` may look like after a save in ``encoding``.

    Programs differ, and one program differs from character to character: a question mark, of which some write
    two for an emoji, or the nearest character there is (``=`` for the full-width one, ``e`` for ``é``).
    """
    return re.compile("".join(_saved_forms(character, encoding, marks_for_astral) for character in cell))


@lru_cache(maxsize=65_536)  # a sheet of 500 long Japanese rows saved as cp1252: 9 s without
def _saved_forms(character: str, encoding: str, marks_for_astral: int) -> str:
    saved = character.encode(encoding, "ignore").decode(encoding)
    if saved == character:
        return re.escape(character)
    nearest = unicodedata.normalize("NFKD", character).encode(encoding, "ignore").decode(encoding)
    twin = _CP932_TWINS.get(character, "") if encoding == "cp932" else ""
    line_break = "\n" if character in "\u2028\u2029" else ""
    marks = "?" * (marks_for_astral if character > "\uffff" else 1)
    forms = "|".join(re.escape(form) for form in (saved, twin, nearest, line_break, marks) if form)
    return f"(?>{forms})"  # atomic: a cell of ten thousand emoji must not backtrack
