"""The plan of a later revision: what comes over counts, and only what is new or changed is asked about.

Each document that is new or has changed is filled up to the share that the plan gives it now, from its new or changed
passages, and with no more questions than so much text carries. A document that has not changed is settled: what was
made of it before stands, and nothing is asked. So the set grows with the KB, and the rest costs no call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragds_pipeline.candidates.apportion import largest_remainder
from ragds_pipeline.records import Candidate, DocumentChange, PlanBasis, PlanRow

Kind = tuple[str, str, str]
"""Document, difficulty and type."""


def open_plan(plan: Sequence[PlanRow], candidates: Sequence[Candidate]) -> list[PlanRow]:
    """Return the plan less what is there: rows with at least one question missing."""
    there = Counter((c.document_path, c.difficulty, c.type) for c in candidates)
    rows = [replace(r, planned=r.planned - there[(r.document_path, r.difficulty, r.type)]) for r in plan]
    return [row for row in rows if row.planned > 0]


def is_first(changes: Sequence[DocumentChange]) -> bool:
    """Return whether there is no frozen set before this revision, so that the whole KB is asked about."""
    return all(change.status == "first" for change in changes)


def fresh_starts(changes: Sequence[DocumentChange]) -> dict[str, tuple[int, ...]] | None:
    """Return the passages that may be asked about, by document, as ``load_outlines`` takes them; None for all."""
    return None if is_first(changes) else {change.document_path: change.fresh for change in changes}


def grown(setting: int, characters: int, before: PlanBasis | None) -> PlanBasis:
    """Return how many questions a KB of ``characters`` gets, for the ``setting`` of ragds.yaml.

    As many more than ``before`` as the KB has grown since, and never fewer than set. Another setting starts anew.
    """
    if before is None or before.setting != setting or not before.characters:
        return PlanBasis(setting, setting, characters)
    return PlanBasis(setting, max(setting, round(before.questions * characters / before.characters)), characters)


def plan_revision(
    target: Sequence[PlanRow],
    carried: Sequence[Candidate],
    changes: Sequence[DocumentChange],
    chars_per_question: int,
) -> list[PlanRow]:
    """Return the plan of a revision: for each document and kind what came over plus what is asked for now.

    ``target`` is the plan as it would be for a first revision of this KB. In every row ``planned`` is at least what
    ``carried`` holds of its kind, so that planned = delivered + missing goes on holding.
    """
    if is_first(changes):
        return list(target)
    there = Counter((c.document_path, c.difficulty, c.type) for c in carried)
    rows: dict[Kind, PlanRow] = {
        (c.document_path, c.difficulty, c.type): PlanRow(
            c.document_path, c.language, c.difficulty, c.hops, c.type, there[c.document_path, c.difficulty, c.type]
        )
        for c in carried
    }
    space = {change.document_path: room(change, chars_per_question) for change in changes}
    wanted: dict[str, dict[PlanRow, int]] = {}
    for row in target:
        short = row.planned - there[row.document_path, row.difficulty, row.type]
        if short > 0 and space.get(row.document_path, 0):
            wanted.setdefault(row.document_path, {})[row] = short
    for path, short_of in wanted.items():
        for row, asked in _within(space[path], short_of).items():
            kind = (path, row.difficulty, row.type)
            if asked:
                rows[kind] = replace(row, planned=there[kind] + asked)
    return sorted(rows.values(), key=lambda row: (row.document_path, row.difficulty, row.type))


def room(change: DocumentChange, chars_per_question: int) -> int:
    """Return how many questions the new text of a document carries; a short change carries one."""
    return max(1, change.fresh_characters // chars_per_question) if change.fresh else 0


def _within(most: int, wanted: Mapping[PlanRow, int]) -> dict[PlanRow, int]:
    if sum(wanted.values()) <= most:
        return dict(wanted)
    shares: dict[int, float] = {at: float(count) for at, count in enumerate(wanted.values())}
    counts = largest_remainder(most, shares)
    return {row: counts[at] for at, row in enumerate(wanted)}


def questions_by_document(candidates: Sequence[Candidate]) -> dict[str, list[str]]:
    """Return the questions of ``candidates`` by document: a request is told of them, so that none is asked again."""
    found: dict[str, list[str]] = {}
    for candidate in candidates:
        found.setdefault(candidate.document_path, []).append(candidate.question)
    return found
