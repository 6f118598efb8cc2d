"""The code filter: from drafts to candidates, with a reason for everything that does not pass.

In this order, cheapest and surest first: evidence located and fit, answer not given away, no duplicate question, not
beyond the plan. For every call: drafts in = candidates + drops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.filters.duplicates import first_occurrences
from ragds_pipeline.filters.evidence import REASONS as EVIDENCE_REASONS
from ragds_pipeline.filters.evidence import Unfit, locate_evidence, with_alternatives
from ragds_pipeline.filters.giveaway import REASON as GIVEAWAY
from ragds_pipeline.filters.giveaway import gives_itself_away
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Draft, Drop, Evidence, candidate_id, canonical_json
from ragds_pipeline.spans.locate import Locator
from ragds_pipeline.spans.occurrences import find_everywhere
from ragds_pipeline.storage.schemas import as_json

STAGE = "code"

REASONS = {
    **EVIDENCE_REASONS,
    GIVEAWAY: "the answer can be read off the question",
    "duplicate_question": "an earlier question asks the same in the same words",
    "near_duplicate_question": "an earlier question asks the same in nearly the same words",
    "beyond_plan": "the plan asks for fewer questions of this document and type",
}
"""Every reason for which the code filter drops a draft."""

Kind = tuple[str, str, str]
"""Document, difficulty and type: what the plan counts by."""

Documents = Callable[[], Iterable[tuple[str, str]]]
"""Yields (path, normalised text) of every document of the KB; called once for all drafts."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filter let through and what it did not."""

    candidates: list[Candidate]
    drops: list[Drop]


def code_filter(
    drafts: Sequence[Draft],
    outlines: Mapping[str, Outline],
    documents: Documents,
    settings: FilterSettings,
    known: Sequence[Candidate] = (),
    room: Mapping[Kind, int] | None = None,
) -> Filtered:
    """Filter ``drafts`` in their order.

    ``known`` are candidates kept before: their questions count for duplicates, and are never dropped. ``room`` says how
    many candidates of each (document, difficulty, type) are still wanted; None for as many as come.
    """
    drops: list[Drop] = []
    located: list[tuple[Draft, list[Evidence]]] = []
    locators: dict[str, Locator] = {}
    for draft in drafts:
        outline = outlines.get(draft.document_path)
        try:
            if outline is None or (outline.document.confidential and draft.origin == "generated"):
                raise Unfit("evidence_confidential", f"{draft.document_path} is not a document that may be shown")
            locator = locators.setdefault(draft.document_path, Locator(outline.text))
            evidence = locate_evidence(draft, outline, locator, settings.evidence)
            if gives_itself_away(draft.question, draft.answer, settings.answer_overlap):
                raise Unfit(GIVEAWAY, f"the answer {draft.answer[:80]!r} stands in the question")
        except Unfit as error:
            drops.append(drop(draft, error.reason, error.detail))
            continue
        located.append((draft, evidence))
    complete = _with_places(located, documents, settings.evidence.max_occurrences, drops)
    unique = _without_duplicates(complete, known, settings.duplicate_score, drops)
    kept = _within_plan(unique, room, drops)
    order = {draft.id: at for at, draft in enumerate(drafts)}
    drops.sort(key=lambda d: order[d.item_id])
    return Filtered([_candidate(draft, evidence) for draft, evidence in kept], drops)


Located = list[tuple[Draft, list[Evidence]]]


def _with_places(located: Located, documents: Documents, max_occurrences: int, drops: list[Drop]) -> Located:
    """Add every other place where the evidence stands; drop what stands everywhere."""
    contents = list(dict.fromkeys(e.content for _, evidence in located for e in evidence))
    if not contents:
        return []
    # Lengths were judged when the quotes were located; a lenient match may stand in fewer characters than its quote.
    everywhere = dict(zip(contents, find_everywhere(contents, documents(), min_key_chars=1), strict=True))
    needed = {place.document_path for places in everywhere.values() for place in places}
    texts = {path: text for path, text in documents() if path in needed}
    complete: Located = []
    for draft, evidence in located:
        full = [with_alternatives(e, everywhere[e.content], texts) for e in evidence]
        most = max(full, key=lambda e: len(e.alternatives))
        if (places := len(most.alternatives) + 1) > max_occurrences:
            detail = f"{most.content[:60]!r} stands in {places} places, {max_occurrences} allowed"
            drops.append(drop(draft, "evidence_everywhere", detail))
        else:
            complete.append((draft, full))
    return complete


def _without_duplicates(items: Located, known: Sequence[Candidate], score: float, drops: list[Drop]) -> Located:
    questions = [candidate.question for candidate in known] + [draft.question for draft, _ in items]
    first = len(known)
    dropped = first_occurrences(questions, frozenset(range(first)), threshold=score)
    unique: Located = []
    for at, (draft, evidence) in enumerate(items, start=first):
        if (kept := dropped.get(at)) is None:
            unique.append((draft, evidence))
            continue
        same = questions[kept].split() == draft.question.split()
        reason = "duplicate_question" if same else "near_duplicate_question"
        earlier = known[kept].id if kept < first else items[kept - first][0].id
        drops.append(drop(draft, reason, f"like {earlier}: {questions[kept][:120]!r}"))
    return unique


def _within_plan(items: Located, room: Mapping[Kind, int] | None, drops: list[Drop]) -> Located:
    if room is None:
        return items
    taken: Counter[Kind] = Counter()
    kept: Located = []
    for draft, evidence in items:
        kind = (draft.document_path, draft.difficulty, draft.type)
        if taken[kind] < room.get(kind, 0):
            taken[kind] += 1
            kept.append((draft, evidence))
        else:
            detail = f"{room.get(kind, 0)} of type {draft.type} wanted from {draft.document_path}"
            drops.append(drop(draft, "beyond_plan", detail))
    return kept


def _candidate(draft: Draft, evidence: list[Evidence]) -> Candidate:
    contents = [e.content for e in evidence]
    return Candidate(
        id=candidate_id(draft.document_path, draft.type, draft.question, draft.answer, contents),
        draft_id=draft.id,
        document_path=draft.document_path,
        chunk_id=evidence[0].chunk_id,
        question=draft.question,
        answer=draft.answer,
        type=draft.type,
        difficulty=draft.difficulty,
        hops=draft.hops,
        language=draft.language,
        source_version=draft.source_version,
        evidence=tuple(evidence),
        origin=draft.origin,
        parent_id=draft.parent_id,
        round=draft.round,
        request_key=draft.request_key,
        model=draft.model,
        prompt_version=draft.prompt_version,
        root_id=draft.root_id,
    )


def drop(draft: Draft, reason: str, detail: str, stage: str = STAGE) -> Drop:
    """Return the record of a dropped draft."""
    return Drop(
        stage=stage,
        reason=reason,
        detail=detail,
        document_path=draft.document_path,
        item_id=draft.id,
        question=draft.question,
        type=draft.type,
        language=draft.language,
        round=draft.round,
        payload=canonical_json(as_json(draft)),
        difficulty=draft.difficulty,
    )
