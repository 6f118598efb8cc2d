"""From accepted candidates to golden items: an id that stays, a side that stays, both reference forms at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragds_pipeline.config import GoldenSettings
from ragds_pipeline.filters.code_filter import STAGE as CODE_STAGE
from ragds_pipeline.filters.funnel import step
from ragds_pipeline.golden.registry import Registered, golden_id, next_number
from ragds_pipeline.golden.split import assign
from ragds_pipeline.records import (
    Candidate,
    Decision,
    Drop,
    Evidence,
    FunnelStep,
    GivenId,
    GoldenItem,
    GoldenPassage,
    Provenance,
)

STAGE = "freeze"

REASONS = {"split_conflict": "it shares evidence with both sides of the split"}
"""Every reason for which an accepted candidate is not frozen."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Items ready to be frozen, with what is new in the register."""

    items: list[GoldenItem]
    given: list[GivenId]
    drops: list[Drop]
    step: FunnelStep


def prepare(
    accepted: Sequence[tuple[Candidate, Decision]],
    register: Sequence[Registered],
    source_version: str,
    settings: GoldenSettings,
) -> Prepared:
    """Return the golden items of a revision, ordered by id.

    ``register`` are the ids given so far. New ids are given in the order of documents and offsets. The same
    arguments give the same items.
    """
    registered = {entry.candidate_id: entry for entry in register}
    known = {c.id: entry for c, _ in accepted if (entry := _entry(c, registered)) is not None}
    fixed = {candidate: entry.split for candidate, entry in known.items()}
    candidates = [candidate for candidate, _ in accepted]
    splits, conflicts = assign(candidates, fixed, settings.held_out_share, settings.split_seed)
    drops = [_conflict(c, conflicts[c.id]) for c in candidates if c.id in conflicts]
    number = next_number(register)
    items: list[GoldenItem] = []
    given: list[GivenId] = []
    order = sorted(accepted, key=lambda a: (a[0].document_path, a[0].evidence[0].start_char, a[0].id))
    for candidate, decision in order:
        if candidate.id in conflicts:
            continue
        entry = known.get(candidate.id)
        if entry is None or entry.candidate_id != candidate.id:
            id_ = entry.id if entry else golden_id(number)
            first = entry.first_frozen_in if entry else source_version
            number += entry is None
            entry = Registered(id_, candidate.id, splits[candidate.id], first)
            given.append(GivenId(id_, candidate.id, splits[candidate.id], first, len(register)))
        items.append(_item(candidate, decision, entry, source_version))
    items.sort(key=lambda item: (len(item.id), item.id))
    return Prepared(items, given, drops, step(STAGE, len(accepted), len(items), drops))


def _entry(candidate: Candidate, registered: Mapping[str, Registered]) -> Registered | None:
    return registered.get(candidate.id) or registered.get(candidate.parent_id)


def _item(candidate: Candidate, decision: Decision, entry: Registered, source_version: str) -> GoldenItem:
    who = decision.reviewer or "reviewer"
    return GoldenItem(
        id=entry.id,
        question=candidate.question,
        answer=candidate.answer,
        type=candidate.type,
        difficulty=candidate.difficulty,
        hops=candidate.hops,
        language=candidate.language,
        split=entry.split,
        source_version=source_version,
        passages=tuple(_passage(evidence) for evidence in candidate.evidence),
        chunk_id=candidate.chunk_id,
        evidence=candidate.evidence[0].content,
        provenance=Provenance(
            candidate_id=candidate.id,
            models=(candidate.model,) if candidate.model else (),
            prompt_versions=(candidate.prompt_version,) if candidate.prompt_version else (),
            verdicts=(f"{CODE_STAGE}:ok",),
            decision=f"{decision.keep} by {who}, {decision.source}",
            first_frozen_in=entry.first_frozen_in,
        ),
    )


def _passage(evidence: Evidence) -> GoldenPassage:
    return GoldenPassage(
        document_path=evidence.document_path,
        start_char=evidence.start_char,
        end_char=evidence.end_char,
        content=evidence.content,
        required=evidence.required,
        alternatives=evidence.alternatives,
        prefix=evidence.prefix,
        suffix=evidence.suffix,
        chunk_id=evidence.chunk_id,
    )


def _conflict(candidate: Candidate, detail: str) -> Drop:
    return Drop(
        stage=STAGE,
        reason="split_conflict",
        detail=detail,
        document_path=candidate.document_path,
        item_id=candidate.id,
        question=candidate.question,
        type=candidate.type,
        language=candidate.language,
        round=candidate.round,
        payload="",
    )
