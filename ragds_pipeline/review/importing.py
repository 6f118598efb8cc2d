"""Returned sheets become decisions, or a list of what is wrong with them. No sheet is half-imported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.filters.code_filter import Documents
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Decision, Drop, Keep, canonical_json
from ragds_pipeline.review.contradictions import across_sheets, against_log, line_of
from ragds_pipeline.review.corrections import content
from ragds_pipeline.review.interpret import RowDecision, interpret
from ragds_pipeline.review.resolve import Resolved, resolve
from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline.review.sheet import Problem, Severity, place
from ragds_pipeline.review.sheet_in import read_sheet
from ragds_pipeline.storage.files import sha256_file

NO_REVIEWER = (
    "nobody is named who decided: set review.reviewer in ragds.yaml, or name the reviewer for this import "
    "(ragds import --reviewer NAME; in the Dagster UI the run config `reviewer` of review_decisions)"
)


@dataclass(frozen=True, slots=True)
class SheetImport:
    """What a sheet came to. With any error there are no decisions."""

    name: str
    sha256: str
    decisions: tuple[Decision, ...]
    undecided: int
    problems: tuple[Problem, ...]
    before: bool = False
    """True where the sheet was imported earlier: it is not read again, for it may not fit the candidates of now."""

    @property
    def errors(self) -> list[Problem]:
        """The problems that keep the sheet from being imported."""
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]


@dataclass(frozen=True, slots=True)
class ReviewState:
    """What sheets are read against: the candidates of a revision, its documents, and the decisions made before."""

    candidates: Mapping[str, Candidate]
    rows: Mapping[str, ReviewRow]
    """What may stand on a sheet: the candidates, and what judges dropped and people audit."""
    outlines: Mapping[str, Outline]
    documents: Documents
    settings: FilterSettings
    decisions: Mapping[str, Decision]
    """The decisions that count, by candidate id, in the order in which they were made."""

    @property
    def audited(self) -> Collection[str]:
        """Ids of the rows that are no candidates: a judge dropped them, and people audit it."""
        return self.rows.keys() - self.candidates.keys()

    def resolved(self, decisions: Mapping[str, Decision]) -> Resolved:
        """Return what ``decisions`` come to."""
        candidates = list(self.candidates.values())
        return resolve(candidates, decisions, self.outlines, self.documents, self.settings)


class Failing(Protocol):
    """What decisions come to, as far as an import asks."""

    @property
    def failed(self) -> Mapping[str, Drop]:
        """Why a correction does not pass, by the id of what it corrects."""


class SheetState(Protocol):
    """What an import needs to know: the rows as sent, the decisions made before, and what decisions come to."""

    @property
    def rows(self) -> Mapping[str, ReviewRow]:
        """The rows by id; only these can be decided on."""

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The decisions that count, by candidate id, in the order in which they were made."""

    @property
    def audited(self) -> Collection[str]:
        """Ids of the rows that are on the sheet only so that people audit what a judge dropped."""

    def resolved(self, decisions: Mapping[str, Decision]) -> Failing:
        """Return what ``decisions`` come to."""


def import_sheets(
    paths: Sequence[Path], state: SheetState, imported: Collection[str], reviewer: str, now: str
) -> list[SheetImport]:
    """Read the sheets at ``paths`` and return their decisions, made by ``reviewer`` at ``now`` (ISO 8601, UTC).

    ``imported`` holds the SHA-256 (or its beginning) of sheets imported before. A corrected item goes through the code
    filter here and now, so that the reviewer learns at once, with the line, that a quote was not copied from the
    document.
    """
    sheets = [_read(path, state, imported, reviewer, now) for path in paths]
    sheets = [_with(sheet, problems) for sheet, problems in zip(sheets, across_sheets(sheets), strict=True)]
    decisions = dict(state.decisions)
    done = []
    for sheet in sheets:
        if sheet.decisions:
            after = decisions | {}
            for decision in sheet.decisions:
                after.pop(decision.candidate_id, None)
                after[decision.candidate_id] = decision
            problems = against_log(sheet, decisions) + _corrections(sheet, state, decisions, after)
            sheet = _with(sheet, problems)
            decisions = decisions if sheet.errors else after
        done.append(sheet)
    return done


def _read(path: Path, state: SheetState, imported: Collection[str], reviewer: str, now: str) -> SheetImport:
    try:
        sha256 = sha256_file(path)
        if any(sha256.startswith(known) for known in imported):
            return SheetImport(path.name, sha256, (), 0, (), before=True)
        sheet = read_sheet(path, state.rows)
    except OSError as error:
        message = f"{place(path.name, 0)}: {path} cannot be read ({error.strerror or error})"
        return SheetImport(path.name, "", (), 0, (Problem(0, "", "unreadable", message),))
    read = interpret(sheet, state.rows)
    problems = read.problems
    if not reviewer.strip():
        problems = (Problem(0, "", "no_reviewer", f"{place(path.name, 0)}: {NO_REVIEWER}"), *problems)
    problems = (*problems, *_corrected_audits(path.name, read.decisions, state))
    decisions = tuple(_decision(path.name, row, state, reviewer.strip(), now) for row in read.decisions)
    return _with(SheetImport(path.name, sha256, decisions, read.undecided, ()), problems)


def _corrected_audits(name: str, decisions: Sequence[RowDecision], state: SheetState) -> list[Problem]:
    """Say, once, that corrections of audited items do not enter the golden set: the reviewer could not know."""
    rows = [row for row in decisions if row.keep is Keep.FIX and row.id in state.audited]
    if not rows:
        return []
    message = (
        f"{place(name, rows[0].line)}: {', '.join(row.id for row in rows)}: dropped by a judge and on the sheet to "
        "audit it. The correction counts for that and is kept, but the item does not enter the golden set"
    )
    return [Problem(rows[0].line, "", "audited_correction", message, Severity.WARNING)]


def _with(sheet: SheetImport, problems: Sequence[Problem]) -> SheetImport:
    """Return ``sheet`` with further problems; an error takes all its decisions."""
    found = replace(sheet, problems=(*sheet.problems, *problems))
    return replace(found, decisions=()) if found.errors else found


def _corrections(
    sheet: SheetImport, state: SheetState, before: Mapping[str, Decision], after: Mapping[str, Decision]
) -> list[Problem]:
    """Judge all decisions as they would stand with those of the sheet: its own corrections, and earlier ones."""
    if not any(decision.keep == Keep.FIX for decision in after.values()):
        return []
    failed = state.resolved(after).failed
    own = {decision.candidate_id: decision for decision in sheet.decisions}
    problems = []
    for id_, cause in failed.items():
        if (decision := own.get(id_)) is not None:
            line = line_of(decision)
            message = (
                f"{place(sheet.name, line)}: the correction of {id_} does not pass: {cause.reason} ({cause.detail}). "
                "Copy evidence from the document exactly, or answer n to drop the item"
            )
            problems.append(Problem(line, "evidence", f"correction_{cause.reason}", message))
    others = failed.keys() - own.keys()
    for id_ in sorted(others - state.resolved(before).failed.keys()) if others else []:
        message = (
            f"{place(sheet.name, 0)}: with this sheet the earlier correction of {id_} ({before[id_].source}) does not "
            f"pass any more: {failed[id_].reason} ({failed[id_].detail}). It goes back on the review sheet"
        )
        problems.append(Problem(0, "", "earlier_correction_fails", message, Severity.WARNING))
    return problems


def _decision(name: str, row: RowDecision, state: SheetState, reviewer: str, now: str) -> Decision:
    shown = state.rows[row.id]
    seen = {
        "chunk_id": shown.chunk_id, "type": shown.type, "question": shown.question, "answer": shown.answer,
        "evidence": list(shown.evidence),
    }  # fmt: skip
    return Decision(
        candidate_id=row.id,
        keep=str(row.keep),
        note=row.note,
        reviewer=reviewer,
        decided_at=now,
        source=f"{name}:{row.line}",
        seen=canonical_json(seen),
        corrected=canonical_json(content(row.corrected)) if row.corrected else "",
    )
