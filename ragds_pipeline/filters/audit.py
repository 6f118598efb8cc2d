"""The audit: a few of the candidates that a judge dropped go on the review sheet all the same.

People otherwise see only what the judges let through, and nobody would learn of the good items that were dropped. The
choice depends on the candidate's id and a seed alone, so it is the same in every run, and an item once on the sheet
stays there until it is decided.

What people say of it measures the judge. The item itself does not enter the golden set: the plan was met without it,
and which items are audited must not decide what is in the set. Should it pass the judges in a later run (another
rubric, another model), the decision applies like any other, for it is kept by the candidate's id.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from ragds_pipeline.config import ReviewSettings
from ragds_pipeline.filters.judges import AMBIGUITY, CLASS, SUPPORT
from ragds_pipeline.records import Candidate, Drop, sha256_text
from ragds_pipeline.storage.schemas import from_json

AUDITED = {judge.name: judge.reason for judge in (AMBIGUITY, SUPPORT, CLASS)}
"""Stages and reasons that are audited. Not the closed book: whether a model knows the answer without the document
cannot be told by reading the item, so a person's y or n would say nothing of it. Nor replies without a verdict."""


def auditable(drops: Iterable[Drop], kept: Collection[str] = ()) -> list[Candidate]:
    """Return every dropped candidate that may be audited, each once, those in ``kept`` (by id) left out."""
    wanted = (d for d in drops if AUDITED.get(d.stage) == d.reason and d.item_id not in kept)
    return list(dropped_candidates(wanted).values())


def dropped_candidates(drops: Iterable[Drop]) -> dict[str, Candidate]:
    """Return the candidates that judges dropped, whole as they were, by id; other drops are passed over."""
    found: dict[str, Candidate] = {}
    for drop in drops:
        if drop.item_id.startswith("c-") and drop.payload and drop.item_id not in found:
            found[drop.item_id] = from_json(Candidate, json.loads(drop.payload))
    return found


def audited(drops: Iterable[Drop], settings: ReviewSettings, kept: Collection[str] = ()) -> list[Candidate]:
    """Return the dropped candidates that go on the sheet, in the order of the drops."""
    return [c for c in auditable(drops, kept) if drawn(c.id, settings.audit_share, settings.audit_seed)]


def drawn(candidate_id: str, share: float, seed: int) -> bool:
    """Return whether a candidate is in a sample of ``share``; one that is stays in every larger sample."""
    return int(sha256_text(f"{seed}:{candidate_id}")[:13], 16) < share * 16**13
