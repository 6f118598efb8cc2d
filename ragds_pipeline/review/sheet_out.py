"""Writing the review sheet, as CSV for any program and as XLSX with a drop-down and locked columns.

Both writers give the same bytes for the same rows and put the file in place by a rename, so a sheet is never
seen half-written. Which rows still need a decision is the caller's to say.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.styles import Alignment, Font, Protection
from openpyxl.worksheet.datavalidation import DataValidation

from ragds_pipeline.review.cells import to_cell
from ragds_pipeline.review.rows import COLUMNS, EDITABLE, FOR_READING, ReviewRow, join_spans
from ragds_pipeline.storage.files import write_bytes

SHEET_TITLE = "review"
GUIDE_TITLE = "How to review"

GUIDE = (
    "How to review",
    "Write y (keep) or n (drop) into keep. To correct, edit question, answer or evidence and write y. Leave keep empty "
    "where you cannot decide yet: the row stays open and comes back. In note, say why, for whoever reads it later.",
    "1. Is it a question someone in the job would ask, and clear to somebody who has not read the document? (Which "
    "site, which form, which case?)",
    "2. Is the answer right and complete, exceptions in other documents included?",
    "3. Are the spans right: copied from the text, enough to prove the answer, none needless? A line [...] parts two.",
    "4. Does the difficulty fit? The questions here are easy ones: one place in one document answers them.",
    "The context shows the place in the document; the evidence stands between ⟦ and ⟧. Where judges is filled, Claude "
    "was of two minds: both reasons stand there, and you decide.",
    "To say what is wrong, begin the note on an n with unclear: / answer: / evidence: / difficulty: / known: (known: "
    "it can be answered without the document). Such notes also measure Claude's judges.",
    "",
    "レビューの手順",
    "keep 列に y(採用)または n(不採用)を入力します。直すときは question・answer・evidence を書き換えて y とします。"
    "まだ決められない行は keep を空欄のままにしてください(次回また出ます)。note には理由を書きます。",
    "1. 実際にその仕事をする人が尋ねそうな質問か。文書を読んでいない人にも意味が一つに決まるか"
    "(どの事業所・様式・場合か)。",
    "2. 回答は正しく、漏れがないか。他の文書にある例外も考慮すること。",
    "3. 根拠は正しいか。本文のとおりで、回答を裏付けるのに足り、余分がないか。[...] だけの行は根拠と根拠の区切り。",
    "4. 難易度は合っているか。ここにあるのは易しい質問で、一つの文書の一か所で答えられるもの。",
    "context 列は文書中の場所で、⟦ と ⟧ の間が根拠です。judges 列に記入があれば Claude の判断が割れています。"
    "両方の理由を読んで決めてください。",
    "n の理由は note の初めに 曖昧: / 回答: / 根拠: / 難易度: / 常識:(文書なしで答えられる)のどれかで示してください。"
    "Claude の判定の精度を測るのにも使います。",
    "",
    "Come fare la revisione",
    "In keep scrivere y (tenere) o n (scartare). Per correggere, modificare question, answer o evidence e scrivere y. "
    "Se non si può ancora decidere, lasciare keep vuoto: la riga resta aperta e ritorna. In note scrivere il perché.",
    "1. È una domanda che farebbe davvero chi svolge questo lavoro, e chiara per chi non ha letto il documento? (Quale "
    "sede, quale modulo, quale caso?)",
    "2. La risposta è giusta e completa, anche rispetto alle eccezioni in altri documenti?",
    "3. I passi sono giusti: copiati dal testo, sufficienti a provare la risposta, nessuno superfluo? Una riga [...] "
    "separa due passi.",
    "4. La difficoltà è adeguata? Qui le domande sono facili: risponde un solo punto di un solo documento.",
    "La colonna context mostra il punto del documento; l'evidenza sta fra ⟦ e ⟧. Se judges è compilata, Claude è "
    "diviso: vi stanno le due ragioni, decide Lei.",
    "Per dire che cosa non va, cominciare la nota di una n con ambigua: / risposta: / evidenza: / difficoltà: / "
    "risaputa: (risaputa: si risponde anche senza il documento). Queste note misurano anche i giudici di Claude.",
)

_WIDTHS = {
    "id": 10, "chunk_id": 16, "type": 11, "question": 42, "answer": 48,
    "evidence": 56, "keep": 7, "note": 28, "context": 70, "judges": 50, "golden_id": 9, "old evidence": 44,
    "changes": 44,
}  # fmt: skip
_LINE_POINTS = 15
_MAX_LINES = 20
# Older Excel shows a cell formatted as text as ##### from here on; longer texts are safe without the format.
_TEXT_FORMAT_LIMIT = 255
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_CORE_TIME = b"1980-01-01T00:00:00Z"


def write_csv(rows: Iterable[ReviewRow], path: Path, columns: Sequence[str] = COLUMNS) -> None:
    """Write ``columns`` of ``rows`` to ``path`` as CSV: utf-8-sig, so that Excel opens it; commas, quotes, CRLF."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        cells = _texts(row)
        writer.writerow([to_cell(cells[column]) for column in columns])
    write_bytes(path, text.getvalue().encode("utf-8-sig"))


def write_xlsx(
    rows: Iterable[ReviewRow], path: Path, guide: Sequence[str] = GUIDE, columns: Sequence[str] = COLUMNS
) -> None:
    """Write ``columns`` of ``rows`` to ``path`` as XLSX, with ``guide`` on a sheet of its own.

    ``keep`` has a drop-down, texts are wrapped, the header and the id stay in view, and all columns but
    question, answer, evidence, keep and note are locked; the lock has no password.
    """
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = SHEET_TITLE
    sheet.append(list(columns))
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    count = 0
    for count, row in enumerate(rows, start=1):
        _fill_row(sheet, count + 1, _texts(row), columns)
    _lay_out(sheet, count + 1, columns)
    _add_guide(workbook.create_sheet(GUIDE_TITLE), guide)
    buffer = io.BytesIO()
    workbook.save(buffer)
    write_bytes(path, _without_clock(buffer.getvalue()))


def _texts(row: ReviewRow) -> dict[str, str]:
    return {
        "id": row.id,
        "chunk_id": row.chunk_id,
        "type": row.type,
        "question": row.question,
        "answer": row.answer,
        "evidence": join_spans(row.evidence),
        "keep": "",
        "note": "",
        "context": row.context,
        "golden_id": row.golden_id,
        "old evidence": row.old_evidence,
        "changes": row.changes,
        "judges": row.judges,
    }


def _fill_row(sheet: Any, number: int, texts: Mapping[str, str], columns: Sequence[str]) -> None:
    for index, column in enumerate(columns, start=1):
        cell = sheet.cell(number, index)
        text = to_cell(texts[column], typed=True)
        if text:
            cell.value = text
            cell.data_type = "s"  # openpyxl would make ``#N/A`` an error value
        cell.number_format = "@" if len(text) <= _TEXT_FORMAT_LIMIT else "General"
        cell.alignment = Alignment(wrap_text=True, vertical="top")
        cell.protection = Protection(locked=column not in EDITABLE)
    # Without a height, programs fit the row to its longest cell, the context: one row would fill a screen.
    lines = max(_lines(texts[column], _WIDTHS[column]) for column in columns if column not in FOR_READING)
    sheet.row_dimensions[number].height = _LINE_POINTS * min(lines, _MAX_LINES)


def _lines(text: str, width: int) -> int:
    """Estimate the lines that ``text`` takes in a column of ``width``; East Asian characters count twice."""
    lines = 0
    for line in text[: width * _MAX_LINES].split("\n"):
        cells = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)
        lines += max(1, -(-cells // width))
    return lines


def _lay_out(sheet: Any, last_row: int, columns: Sequence[str]) -> None:
    for index, column in enumerate(columns, start=1):
        sheet.column_dimensions[openpyxl.utils.get_column_letter(index)].width = _WIDTHS[column]
    sheet.freeze_panes = "E2"  # the question stays in view while one reads the context
    sheet.protection.sheet = True
    # On a protected sheet False means "not locked": people may still widen columns and filter.
    sheet.protection.formatColumns = False
    sheet.protection.formatRows = False
    sheet.protection.autoFilter = False
    sheet.auto_filter.ref = f"A1:{openpyxl.utils.get_column_letter(len(columns))}{last_row}"
    if last_row > 1:
        letter = openpyxl.utils.get_column_letter(list(columns).index("keep") + 1)
        # A warning, not a stop: the import also understands はい, sì, ○ and more.
        choice = DataValidation(
            type="list", formula1='"y,n"', allow_blank=True, showErrorMessage=True, errorStyle="warning",
            errorTitle="keep", error="y = keep, n = drop. Use this value all the same?",
        )  # fmt: skip
        choice.add(f"{letter}2:{letter}{last_row}")
        sheet.add_data_validation(choice)


def _add_guide(sheet: Any, guide: Sequence[str]) -> None:
    sheet.column_dimensions["A"].width = 110
    for number, line in enumerate(guide, start=1):
        cell = sheet.cell(number, 1, line or None)
        cell.alignment = Alignment(wrap_text=True, vertical="top")
        if number == 1 or not guide[number - 2]:
            cell.font = Font(bold=True)
    sheet.protection.sheet = True


def _without_clock(archive: bytes) -> bytes:
    """Return the workbook with all times fixed: those of the ZIP entries and those in its properties."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(buffer, "w") as target:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "docProps/core.xml":
                content = re.sub(rb"(<dcterms:\w+[^>]*>)[^<]*", rb"\g<1>" + _CORE_TIME, content)
            fixed = zipfile.ZipInfo(entry.filename, _ZIP_TIME)
            fixed.create_system = 3  # the default differs between Windows and the rest
            fixed.external_attr = 0o600 << 16
            target.writestr(fixed, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
