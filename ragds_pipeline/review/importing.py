"""A returned sheet becomes decisions, or a list of what is wrong with it. Nothing is half-imported."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.filters.code_filter import Documents, code_filter
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Decision, Draft, Keep, Quote, canonical_json, draft_id
from ragds_pipeline.review.interpret import RowDecision, interpret
from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline.review.sheet import Problem, Severity, place
from ragds_pipeline.review.sheet_in import read_sheet
from ragds_pipeline.storage.files import sha256_file


@dataclass(frozen=True, slots=True)
class SheetImport:
    """What a sheet came to. With any error there are no decisions."""

    name: str
    sha256: str
    decisions: tuple[Decision, ...]
    undecided: int
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> list[Problem]:
        """The problems that keep the sheet from being imported."""
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]


@dataclass(frozen=True, slots=True)
class ReviewState:
    """What a sheet is read against: the candidates of a revision and its documents."""

    candidates: Mapping[str, Candidate]
    rows: Mapping[str, ReviewRow]
    outlines: Mapping[str, Outline]
    documents: Documents


def import_sheet(path: Path, state: ReviewState, settings: FilterSettings, reviewer: str, now: str) -> SheetImport:
    """Read the sheet at ``path`` and return its decisions, made by ``reviewer`` at ``now`` (ISO 8601, UTC).

    A corrected item goes through the code filter here and now, so that the reviewer learns at once, with the line,
    that a quote was not copied from the document.
    """
    sheet = read_sheet(path, state.rows)
    read = interpret(sheet, state.rows)
    problems = list(read.problems)
    if read.importable:
        problems += _corrections(path.name, read.decisions, state, settings)
    failed = any(problem.severity is Severity.ERROR for problem in problems)
    decisions = () if failed else tuple(_decision(path.name, row, state, reviewer, now) for row in read.decisions)
    return SheetImport(path.name, sha256_file(path), decisions, read.undecided, tuple(problems))


def _corrections(
    name: str, decisions: Sequence[RowDecision], state: ReviewState, settings: FilterSettings
) -> list[Problem]:
    fixes = [row for row in decisions if row.corrected is not None]
    drafts = {
        corrected_draft(state.candidates[row.id], content(row.corrected)).id: row for row in fixes if row.corrected
    }
    given_up = {row.id for row in decisions if row.keep is not Keep.KEEP}
    others = [candidate for candidate in state.candidates.values() if candidate.id not in given_up]
    filtered = code_filter(
        [corrected_draft(state.candidates[row.id], content(row.corrected)) for row in fixes if row.corrected],
        state.outlines,
        state.documents,
        settings,
        known=others,
    )
    problems = []
    for dropped in filtered.drops:
        row = drafts[dropped.item_id]
        message = (
            f"{place(name, row.line)}: the correction of {row.id} does not pass: {dropped.reason} ({dropped.detail}). "
            "Copy evidence from the document exactly, or answer n to drop the item"
        )
        problems.append(Problem(row.line, "evidence", f"correction_{dropped.reason}", message))
    return problems


def content(row: ReviewRow) -> dict[str, object]:
    """Return what a correction consists of."""
    return {"question": row.question, "answer": row.answer, "evidence": list(row.evidence)}


def corrected_draft(candidate: Candidate, corrected: Mapping[str, object]) -> Draft:
    """Return the draft of a corrected item. Spans that the reviewer left alone keep their place."""
    places = {e.content: e for e in candidate.evidence}
    texts = corrected["evidence"]
    quotes = []
    for text in texts if isinstance(texts, list) else []:
        known = places.get(text)
        quotes.append(Quote(text, known.start_char, known.end_char) if known else Quote(text, -1, -1))
    question, answer = str(corrected["question"]), str(corrected["answer"])
    return Draft(
        id=draft_id("corrected", candidate.id, question, answer, [quote.text for quote in quotes]),
        document_path=candidate.document_path,
        question=question,
        answer=answer,
        type=candidate.type,
        difficulty=candidate.difficulty,
        hops=candidate.hops,
        language=candidate.language,
        source_version=candidate.source_version,
        quotes=tuple(quotes),
        window_start=min(e.start_char for e in candidate.evidence),
        window_end=max(e.end_char for e in candidate.evidence),
        origin="corrected",
        parent_id=candidate.id,
        round=candidate.round,
        request_key=candidate.request_key,
        model=candidate.model,
        prompt_version=candidate.prompt_version,
    )


def _decision(name: str, row: RowDecision, state: ReviewState, reviewer: str, now: str) -> Decision:
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


def correction_of(decision: Decision) -> dict[str, object]:
    """Return the correction that a ``fix`` holds."""
    return dict(json.loads(decision.corrected))
