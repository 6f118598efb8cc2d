"""The no_answer set's part of the story of one id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ragds_pipeline.filters.no_answer_check import place_of
from ragds_pipeline.filters.whole_kb import NO
from ragds_pipeline.records import Decision, Drop, GoldenItem, RevalidatedItem, Verdict
from ragds_pipeline.records_no_answer import KbAnswer, NoAnswerCandidate, NoAnswerDraft

Rows = Callable[[tuple[str, ...], type[Any]], Iterator[Any]]
"""Returns the records in tables of the revision; a table that has not been made has none."""

DRAFTS = ("no_answer_to_ask", "no_answer_drafts", "no_answer_proposals", "no_answer_top_up_drafts")
CANDIDATES = ("no_answer_candidates", "no_answer_corrected")
DROPS = (
    "no_answer_draft_drops", "no_answer_code_drops", "no_answer_drops", "no_answer_correction_drops",
    "no_answer_golden_drops",
)  # fmt: skip
ANSWERS = ("no_answer_answers", "no_answer_correction_answers")


def no_answer_story(rows: Rows, id_: str) -> list[str]:
    """Return what the tables of the no_answer set say of a draft, candidate or item, in the order it happened."""
    items: dict[str, GoldenItem] = {item.id: item for item in rows(("no_answer_items",), GoldenItem)}
    held: dict[str, RevalidatedItem] = {item.id: item for item in rows(("revalidated_items",), RevalidatedItem)}
    wanted = items[id_].provenance.candidate_id if id_ in items else held[id_].now_candidate_id if id_ in held else id_
    candidates: list[NoAnswerCandidate] = list(rows(CANDIDATES, NoAnswerCandidate))
    dropped: list[Drop] = list(rows(DROPS, Drop))
    drafts: list[NoAnswerDraft] = list(rows(DRAFTS, NoAnswerDraft))
    # What is asked again has no candidate where a document answers it: it is known by what it asks.
    asks = {(i.document_path, i.question) for i in held.values() if wanted == i.now_candidate_id}
    again = {d.id for d in drafts if (d.document_path, d.question) in asks}
    ids = _same({wanted, *again}, candidates, dropped)
    lines = [
        f"{d.id}, round {d.round}, {d.origin} of {d.document_path}: {d.question} ({d.model or 'no model'})\n"
        f"  missing: {d.missing}"
        for d in drafts
        if d.id in ids or d.source_id == wanted
    ]
    lines += [
        f"{c.id}: {c.question}\n  refusal: {c.answer}\n  nearest: {', '.join(p.chunk_id for p in c.nearest)}\n"
        f"  asked of {c.documents_asked} of {c.documents_askable} documents"
        for c in candidates
        if c.id in ids
    ]
    lines += [
        f"{v.stage}: {v.reason}. {v.detail} ({v.model}, {v.prompt_version})"
        for v in rows(("no_answer_verdicts",), Verdict)
        if v.candidate_id in ids
    ]
    lines += [
        f"{a.document_path} says {a.answered}: {place_of(a)}"
        for a in rows(ANSWERS, KbAnswer)
        if a.draft_id in ids and a.answered != NO
    ]
    lines += [f"dropped by {d.stage}: {d.reason}. {d.detail}" for d in dropped if d.item_id in ids]
    decisions = [d for d in rows(("review_decisions",), Decision) if d.candidate_id in ids]
    lines += [f"review: {d.keep} by {d.reviewer}, {d.source}. {d.note}".rstrip() for d in decisions]
    lines += [
        f"no_answer set: {item.id}, {item.split}, first frozen in {item.provenance.first_frozen_in}"
        for item in items.values()
        if item.provenance.candidate_id in ids
    ]
    return lines


def _same(wanted: set[str], candidates: list[NoAnswerCandidate], drops: list[Drop]) -> set[str]:
    """Return all ids of the question: draft, candidate, what a reviewer made of it, and what was dropped."""
    ids = set(wanted)
    for _ in range(2):  # a corrected candidate leads to its original, and that to its draft
        for c in candidates:
            if ids & {c.id, c.draft_id, *([c.parent_id] if c.parent_id else [])}:
                ids |= {c.id, c.draft_id, *([c.parent_id] if c.parent_id else [])}
    for drop in drops:
        if drop.item_id and (drop.item_id in ids or any(f'"{id_}"' in drop.payload for id_ in ids)):
            ids.add(drop.item_id)
    return ids
