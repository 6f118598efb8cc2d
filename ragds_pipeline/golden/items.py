"""From accepted candidates to golden items: an id that stays, a side that stays, both reference forms at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from ragds_pipeline.config import GoldenSettings
from ragds_pipeline.filters.code_filter import STAGE as CODE_STAGE
from ragds_pipeline.filters.duplicates import THRESHOLD
from ragds_pipeline.filters.funnel import step
from ragds_pipeline.golden.registry import (
    MAIN_PREFIX,
    Known,
    Registered,
    evidence_keys,
    golden_id,
    next_number,
    root_of,
)
from ragds_pipeline.golden.split import assign, intervals, leaks, near_pairs
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
    RevalidatedItem,
    Verdict,
)

STAGE = "freeze"

REASONS = {
    "split_conflict": "it shares evidence, or nearly the same words, with questions on both sides of the split, or is "
    "frozen on one side and was corrected into the other",
}
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
    verdicts: Sequence[Verdict] = (),
    duplicate_score: float = THRESHOLD,
    came_over: Sequence[RevalidatedItem] = (),
    prefix: str = MAIN_PREFIX,
) -> Prepared:
    """Return the golden items of a revision, ordered by id. ``prefix`` is how their ids begin.

    ``register`` are the ids given so far. New ids are given in the order of documents and offsets. The same
    arguments give the same items. ``duplicate_score`` is that of the filters: questions at least as alike as that
    stand on one side of the split. ``came_over`` are the items of the last frozen set: what was known of where they
    come from goes with them.
    """
    known = Known(register)
    entries = claims([candidate for candidate, _ in accepted], known)
    order = _precedence([candidate for candidate, _ in accepted], entries)
    said: dict[str, list[str]] = {}
    for verdict in verdicts:
        said.setdefault(verdict.candidate_id, []).append(f"{verdict.stage}:{verdict.reason}")
    splits, conflicts = _sides(order, entries, known, settings, duplicate_score)
    drops = [_conflict(c, conflicts[c.id]) for c, _ in accepted if c.id in conflicts]
    earlier = {item.now_candidate_id: item for item in came_over if item.provenance}
    number = next_number(register, prefix)
    keys_of = known.keys_of()
    items: list[GoldenItem] = []
    given: list[GivenId] = []
    for candidate, decision in sorted(accepted, key=lambda a: _position(a[0])):
        if candidate.id in conflicts:
            continue
        entry = entries.get(candidate.id)
        keys = evidence_keys(candidate)
        if entry is None or entry.candidate_id != candidate.id or not keys_of[entry.id].issuperset(keys):
            id_ = entry.id if entry else golden_id(number, prefix)
            first = entry.first_frozen_in if entry else source_version
            number += entry is None
            entry = Registered(id_, candidate.id, splits[candidate.id], first, root_of(candidate), keys)
            given.append(GivenId(id_, candidate.id, entry.split, first, len(register), entry.root_id, keys))
        provenance = _provenance(candidate, decision, entry, said.get(candidate.id, ()), earlier)
        items.append(_item(candidate, entry, source_version, provenance))
    items.sort(key=lambda item: (len(item.id), item.id))
    return Prepared(items, given, drops, step(STAGE, len(accepted), len(items), drops))


def claims(candidates: Sequence[Candidate], known: Known) -> dict[str, Registered]:
    """Return the register's entry of each candidate that was frozen before, by candidate id.

    The very candidate that was frozen comes first, then one that has the same root; no golden id goes to two.
    """
    found: dict[str, Registered] = {}
    taken: set[str] = set()
    for by_id, own in ((known.by_candidate(), True), (known.by_root(), False)):
        for candidate in candidates:
            entry = by_id.get(candidate.id if own else root_of(candidate))
            if entry is not None and candidate.id not in found and entry.id not in taken:
                found[candidate.id] = entry
                taken.add(entry.id)
    return found


def _position(candidate: Candidate) -> tuple[str, int, str]:
    start = candidate.evidence[0].start_char if candidate.evidence else 0
    return candidate.document_path, start, candidate.id


def _precedence(candidates: Sequence[Candidate], entries: Mapping[str, Registered]) -> list[Candidate]:
    """Return what was frozen as it is first, then corrections of what was frozen, then what is new."""

    def rank(candidate: Candidate) -> tuple[int, int, str]:
        entry = entries.get(candidate.id)
        if entry is None:
            return 2, 0, ""
        return int(entry.candidate_id != candidate.id), len(entry.id), entry.id

    return sorted(candidates, key=rank)


def _sides(
    order: Sequence[Candidate],
    entries: Mapping[str, Registered],
    known: Known,
    settings: GoldenSettings,
    score: float,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return splits and conflicts as :func:`assign` does, without a question asked alike on both sides.

    Which pairs of like questions are found depends on all that are compared, so what is left after the conflicts is
    looked at again, as the check before freezing does.
    """
    fixed = {id_: entry.split for id_, entry in entries.items()}
    sides_of = known.sides_of()
    bound: dict[str, dict[str, str]] = {}
    for candidate in order:
        entry = entries.get(candidate.id)
        if entry is None or entry.candidate_id != candidate.id:
            held = (sides_of.get(key, {}) for key in evidence_keys(candidate))
            bound[candidate.id] = {side: id_ for sides in held for side, id_ in sides.items()}
    links: set[tuple[int, int]] = set(near_pairs([candidate.question for candidate in order], score))
    while True:
        splits, conflicts = assign(order, fixed, settings.held_out_share, settings.split_seed, links, bound)
        left = [at for at, candidate in enumerate(order) if candidate.id not in conflicts]
        sides = [splits[order[at].id] for at in left]
        again = leaks(sides, [intervals(order[at]) for at in left], [order[at].question for at in left], score)
        if not again.by_question:
            return splits, conflicts
        links |= {(left[one], left[other]) for one, other in again.by_question}


def _item(candidate: Candidate, entry: Registered, source_version: str, provenance: Provenance) -> GoldenItem:
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
        evidence=candidate.evidence[0].content if candidate.evidence else "",
        provenance=provenance,
    )


def _provenance(
    candidate: Candidate,
    decision: Decision,
    entry: Registered,
    verdicts: Sequence[str],
    earlier: Mapping[str, RevalidatedItem],
) -> Provenance:
    decided = f"{decision.keep} by {decision.reviewer or 'reviewer'}, {decision.source}"
    before = earlier.get(candidate.id) or earlier.get(candidate.parent_id)
    if before is None:
        return Provenance(
            candidate_id=candidate.id,
            models=(candidate.model,) if candidate.model else (),
            prompt_versions=(candidate.prompt_version,) if candidate.prompt_version else (),
            verdicts=(f"{CODE_STAGE}:ok", *verdicts),
            decision=decided,
            first_frozen_in=entry.first_frozen_in,
        )
    known = TypeAdapter(Provenance).validate_json(before.provenance)
    stands = decision.source == before.baseline
    return replace(known, candidate_id=candidate.id, decision=known.decision if stands else decided)


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
