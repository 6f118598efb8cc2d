"""What a returned sheet decides, judged against what was sent out.

The whole file counts or nothing of it: one error, and there are no decisions. What is doubtful is never
guessed; it is listed with its line, for the reviewer to put right in the same file.

============================================  ==========================================================
``keep`` says y, nothing edited               KEEP
``keep`` says y (or fix), something edited    FIX, with the corrected row; it goes through the filters again
``keep`` says fix, nothing edited             error: the correction is missing
``keep`` says n                               DROP; an edit beside it is ignored, with a warning
``keep`` empty, nothing edited                undecided; a note beside it is not kept, with a warning
``keep`` empty, something edited              error: an edit without a decision
============================================  ==========================================================
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragds_pipeline.records import Keep
from ragds_pipeline.review.cells import from_cell, holds_marker, is_shortened, same_cell, survives
from ragds_pipeline.review.keep_words import parse_keep
from ragds_pipeline.review.rows import ReviewRow, join_spans, split_spans
from ragds_pipeline.review.sheet import Problem, Severity, Sheet, SheetRow, place, quoted

_CORRECTABLE = ("question", "answer", "evidence")
# What a spreadsheet leaves where it took a text for a formula, in English, Italian and some other languages.
_SPREADSHEET_ERROR = re.compile(r"#(?:[A-Z]{3,8}|N/[AD]|DIV/0)[!?]?|Err:\d{3}")


@dataclass(frozen=True, slots=True)
class RowDecision:
    """What one reviewer decided on one candidate."""

    id: str
    keep: Keep
    note: str
    line: int
    corrected: ReviewRow | None = None
    """For FIX, the row as the reviewer wants it. It still has the id of the row it corrects."""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """Everything a sheet says. ``decisions`` is empty unless the whole sheet is importable."""

    decisions: tuple[RowDecision, ...]
    undecided: int
    """Rows on the sheet whose ``keep`` is empty."""
    problems: tuple[Problem, ...]
    """Those of the file first, then those of the rows in their order."""
    understood: int
    """How many decisions could be read, importable or not: for "12 decisions, 1 error; nothing imported"."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that stop the import."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that do not."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.WARNING)

    @property
    def importable(self) -> bool:
        """True where no error stands in the way."""
        return not self.errors


def interpret(sheet: Sheet, expected: Mapping[str, ReviewRow]) -> Interpretation:
    """Return the decisions on ``sheet``.

    Args:
        sheet: What :func:`ragds_pipeline.review.sheet_in.read_sheet` returned.
        expected: The rows as they were sent out, by id. Only these can be decided on.
    """
    judge = _Judge(sheet, expected)
    decided: dict[str, list[RowDecision]] = {}
    for row in sheet.rows:
        if decision := judge.decide(row):
            decided.setdefault(row.id, []).append(decision)
    judge.tell_of_other_passages()
    understood = [decision for same_id in decided.values() if (decision := judge.agree(same_id))]
    problems = (*sheet.problems, *sorted(judge.problems, key=lambda problem: problem.line))
    blocked = any(problem.severity is Severity.ERROR for problem in problems)
    return Interpretation(
        decisions=() if blocked else tuple(understood),
        undecided=len(judge.undecided - decided.keys()),
        problems=problems,
        understood=len(understood),
    )


@dataclass
class _Judge:
    """Judges the rows one by one and collects what it finds wrong with them."""

    sheet: Sheet
    expected: Mapping[str, ReviewRow]
    problems: list[Problem] = field(default_factory=list)
    undecided: set[str] = field(default_factory=set)
    recut: list[SheetRow] = field(default_factory=list)
    """Rows whose ``chunk_id`` is not that of now."""

    def decide(self, row: SheetRow) -> RowDecision | None:
        """Return the decision on ``row``, or None where there is none or it is doubtful."""
        sent = self._sent(row)
        if sent is None or not self._type_unchanged(row, sent):
            return None
        if row.chunk_id is not None and not same_cell(row.chunk_id, sent.chunk_id, self.sheet.encoding):
            self.recut.append(row)
        try:
            keep = parse_keep(row.keep_raw)
        except ValueError:
            what = "is not a known value; y keeps, n drops, empty leaves it open"
            self._report(row, "keep", "doubtful_keep", f"{quoted(row.keep_raw)} {what}.")
            return None
        edited = [column for column in _CORRECTABLE if self._is_edited(row, sent, column)]
        if keep is None:
            self._leave_open(row, edited)
            return None
        if keep is Keep.DROP:
            if edited:
                what = "n drops the row, so this edit is ignored; write y to correct instead"
                self._report(row, edited[0], "edit_ignored", f"{what}.", Severity.WARNING)
            return RowDecision(row.id, Keep.DROP, row.note, row.line)
        if edited:
            corrected = self._corrected(row, sent, edited)
            return RowDecision(row.id, Keep.FIX, row.note, row.line, corrected) if corrected else None
        if keep is Keep.FIX:
            what = "asks for a correction, but nothing was edited; edit a text, or write y or n"
            self._report(row, "keep", "fix_without_edit", f"{quoted(row.keep_raw)} {what}.")
            return None
        return RowDecision(row.id, Keep.KEEP, row.note, row.line)

    def agree(self, decisions: Sequence[RowDecision]) -> RowDecision | None:
        """Return the one decision that all rows of an id make, with all notes, or None where they differ."""
        first = decisions[0]
        if any((other.keep, other.corrected) != (first.keep, first.corrected) for other in decisions):
            said = ", ".join(f"{decision.keep} in line {decision.line}" for decision in decisions)
            self._add(
                first.line, "keep", "contradiction",
                f"{first.id} is decided in different ways: {said}. Leave one of these rows only.",
            )  # fmt: skip
            return None
        notes = dict.fromkeys(decision.note for decision in decisions if decision.note)
        return replace(first, note="\n".join(notes))

    def _sent(self, row: SheetRow) -> ReviewRow | None:
        if not row.id:
            self._report(row, "id", "missing_id", "the row has no id. Restore it from the sheet as sent.")
            return None
        if row.id not in self.expected:
            what = "was not sent out for review. Restore it, or delete the row"
            self._report(row, "id", "unknown_id", f"{quoted(row.id)} {what}.")
        return self.expected.get(row.id)

    def tell_of_other_passages(self) -> None:
        """Warn, once, of passage numbers that differ. They say nothing on what was reviewed: the id leaves them out,
        and passages are cut anew when their size is changed."""
        if self.recut:
            first = self.recut[0]
            what = f"{quoted(first.chunk_id or '')} is {quoted(self.expected[first.id].chunk_id)} now"
            more = f", and so in {len(self.recut) - 1} more rows" if len(self.recut) > 1 else ""
            text = f"{what}{more}; the passages were cut anew or the cell was changed. It is not read back."
            self._report(first, "chunk_id", "chunk_id_differs", text, Severity.WARNING)

    def _type_unchanged(self, row: SheetRow, sent: ReviewRow) -> bool:
        if row.type is None or same_cell(row.type, sent.type, self.sheet.encoding):
            return True
        what = f"must not be changed; it was {quoted(sent.type)}. Restore it; wishes go into the note"
        self._report(row, "type", "locked_cell_edited", f"{quoted(row.type)} {what}.")
        return False

    def _is_edited(self, row: SheetRow, sent: ReviewRow, column: str) -> bool:
        cell = row.cell(column)
        return cell is not None and not same_cell(cell, _sent_text(sent, column), self.sheet.encoding)

    def _leave_open(self, row: SheetRow, edited: Sequence[str]) -> None:
        if edited:
            what = f"{quoted(row.cell(edited[0]) or '')} was edited, but keep is empty"
            self._report(
                row,
                edited[0],
                "edit_undecided",
                f"{what}. Write y to keep it with this edit, or n to drop it.",
            )
            return
        self.undecided.add(row.id)
        if row.note:
            what = f"{quoted(row.note)} stands beside an empty keep and is not kept"
            self._report(row, "note", "note_undecided", f"{what}. Write y or n.", Severity.WARNING)

    def _corrected(self, row: SheetRow, sent: ReviewRow, edited: Sequence[str]) -> ReviewRow | None:
        """Return the row with the edited texts, or None where one of them cannot be trusted."""
        texts = {column: _received_text(row.cell(column) or "") for column in edited}
        doubts = [(column, doubt) for column in edited if (doubt := self._doubt(row, sent, column, texts[column]))]
        for column, (code, text) in doubts:
            self._report(row, column, code, text)
        if doubts:
            return None
        return ReviewRow(
            id=sent.id,
            chunk_id=sent.chunk_id,
            type=sent.type,
            question=texts.get("question", sent.question),
            answer=texts.get("answer", sent.answer),
            evidence=_corrected_spans(texts["evidence"], sent) if "evidence" in texts else sent.evidence,
            context=sent.context,
        )

    def _doubt(self, row: SheetRow, sent: ReviewRow, column: str, text: str) -> tuple[str, str] | None:
        """Return code and message where the edited cell cannot be what the reviewer means."""
        cell = row.cell(column) or ""
        before = _sent_text(sent, column)
        if not text:
            return "emptied", "the cell was emptied. To drop the item write n; to correct it write the text."
        if _SPREADSHEET_ERROR.fullmatch(text):
            return (
                "spreadsheet_error",
                f"{quoted(text)} is an error of the spreadsheet. Type the text itself.",
            )
        if is_shortened(before) and holds_marker(cell):
            return "edited_shortened", (
                "the cell shows only the beginning of a long text, so an edit in it cannot be read. "
                "Replace all of it, marker included, or restore it."
            )
        if not survives(before, self.sheet.encoding):
            return "lost_characters", (
                f"the cell was edited, and saving as {self.sheet.encoding} replaced characters that this "
                "cannot hold. Save the sheet as CSV UTF-8 or XLSX and import that."
            )
        return None

    def _report(self, row: SheetRow, column: str, code: str, text: str, severity: Severity = Severity.ERROR) -> None:
        self._add(row.line, column, code, text, severity, row.id if row.id in self.expected else "")

    def _add(
        self, line: int, column: str, code: str, text: str, severity: Severity = Severity.ERROR, row: str = ""
    ) -> None:
        message = f"{place(self.sheet.name, line, column, row)}: {text}"
        self.problems.append(Problem(line, column, code, message, severity))


def _sent_text(sent: ReviewRow, column: str) -> str:
    texts = {"question": sent.question, "answer": sent.answer, "evidence": join_spans(sent.evidence)}
    return texts[column]


def _received_text(cell: str) -> str:
    """Return an edited cell as the pipeline has its texts: NFC, LF, nothing blank around it."""
    return unicodedata.normalize("NFC", from_cell(cell)).strip()


def _corrected_spans(text: str, sent: ReviewRow) -> tuple[str, ...]:
    """Return the spans of an edited evidence cell; a span that was left alone stays exactly what it was.

    Each span that was sent is taken once, so that two that look alike both stay.
    """
    left = list(sent.evidence)
    spans = []
    for span in (span.strip() for span in split_spans(text)):
        old = next((old for old in left if same_cell(span, old)), None)
        if old is not None:
            left.remove(old)
        spans.append(span if old is None else old)
    return tuple(span for span in spans if span)
