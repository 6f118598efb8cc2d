"""What became of the questions without an answer from one frozen set to the next.

It adds up as the main set's changelog does. A question is known by its root: one that was found to be answered in part,
or was corrected, has another candidate id and is the same question.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from ragds_pipeline.golden.changelog import told
from ragds_pipeline.records import ChangelogRow, Drop, GoldenItem, RevalidatedItem
from ragds_pipeline.records_no_answer import NO_ANSWER, NoAnswerCandidate


def frozen_first(
    candidates: Sequence[NoAnswerCandidate], came_over: Sequence[RevalidatedItem]
) -> list[NoAnswerCandidate]:
    """Return the candidates with those of frozen items first, so that of two alike the frozen one stays."""
    frozen = {(i.document_path, i.question) for i in came_over if i.member == NO_ANSWER}
    return sorted(candidates, key=lambda c: (c.document_path, c.question) not in frozen)


def asked_again_drops(drops: Sequence[Drop], drafts: Collection[str]) -> list[Drop]:
    """Return those of the filters' drops that stand for one of ``drafts`` (ids of what was asked again)."""
    return [drop for drop in drops if drop.item_id in drafts or _draft(drop).get("id") in drafts]


def _draft(drop: Drop) -> dict[str, Any]:
    """Return the draft in a drop's payload, or nothing where it holds none."""
    payload = json.loads(drop.payload) if drop.payload.startswith("{") else {}
    draft = payload.get("draft", payload)
    return draft if isinstance(draft, dict) else {}


def no_answer_changelog(
    came_over: Sequence[RevalidatedItem],
    now: Sequence[GoldenItem],
    drops: Sequence[Drop],
    candidates: Sequence[NoAnswerCandidate],
) -> list[ChangelogRow]:
    """Return a row for each item of the no_answer set before and for each new one, in the order of ids.

    Args:
        came_over: All re-validated items, of both sets.
        now: The items to be frozen.
        drops: What was let go of them: what was asked again by the filters, then by review and freezing.
        candidates: The questions of this revision, as asked for and as reviewers changed them.
    """
    before = [item for item in came_over if item.member == NO_ANSWER]
    roots = {(c.document_path, c.question): c.root_id for c in candidates}
    by_root = {roots.get((d.document_path, d.question), (d.document_path, d.question)): d for d in drops}
    gone = {}
    for item in before:
        asked = (item.document_path, item.question)
        if drop := by_root.get(roots.get(asked, asked)):
            gone[item.id] = drop
    return told(before, now, gone, {item.id: _path(item, candidates) for item in now})


def _path(item: GoldenItem, candidates: Sequence[NoAnswerCandidate]) -> str:
    """Return the document that an item is of; a changed refusal gives it an id of its own."""
    mine = (c for c in candidates if c.id == item.provenance.candidate_id or c.question == item.question)
    return next((c.document_path for c in mine), "")
