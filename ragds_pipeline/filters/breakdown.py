"""The funnel in parts: what became of the items of each document, type and language, in each stage, and why.

A stage here is a list of what it kept and a list of what it dropped; the totals come from there and from elsewhere (the
requests, the verdicts), and the two are compared. What does not belong here: pictures and Markdown (``funnel_report``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ragds_pipeline.filters.funnel import judge_steps, step
from ragds_pipeline.filters.judges import Judge
from ragds_pipeline.records import AskedRow, Candidate, Draft, Drop, FunnelCell, FunnelStep, Verdict

KEPT = "kept"
"""The fate of what a stage let through."""

By = Literal["document", "type", "language", "reason"]

EXAMPLES = 3
"""Examples of each reason in each stage."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What items are counted by."""

    document_path: str
    type: str
    language: str

    @classmethod
    def of(cls, item: Draft | Candidate | Drop) -> Kind:
        """Return the kind of an item."""
        return cls(item.document_path, item.type, item.language)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its totals, and of which kinds it kept and dropped how many."""

    step: FunnelStep
    kept: Mapping[Kind, int]
    drops: Sequence[Drop]


def filter_stages(
    asked: Sequence[AskedRow],
    drafts: Sequence[Draft],
    drops: Sequence[Drop],
    judges: Sequence[Judge],
    verdicts: Sequence[Verdict],
    candidates: Sequence[Candidate],
) -> list[Stage]:
    """Return the stages from questions asked for to candidates for review, all rounds together.

    ``drops`` are those of all filters, ``candidates`` those that passed them.
    """
    by_stage: dict[str, list[Drop]] = {}
    for drop in drops:
        by_stage.setdefault(drop.stage, []).append(drop)
    unread, by_code = by_stage.get("generate", []), by_stage.get("code", [])
    made = Counter(Kind.of(draft) for draft in drafts)
    judged = judge_steps(judges, verdicts, drops)
    to_judge = judged[0].came_in if judged else len(candidates)
    came_in = sum(max(row.asked, row.drafts + row.drops) for row in asked)
    after_code = Counter(made)
    after_code.subtract(Kind.of(drop) for drop in by_code)
    stages = [
        Stage(step("generate", came_in, len(drafts), unread, _rounds(asked)), made, unread),
        Stage(step("code", len(drafts), to_judge, by_code), after_code, by_code),
    ]
    kinds = {drop.item_id: Kind.of(drop) for drop in drops} | {c.id: Kind.of(c) for c in candidates}
    for each in judged:
        passed = [v.candidate_id for v in verdicts if v.stage == each.stage and v.passed]
        kept = Counter(kinds[id_] for id_ in passed if id_ in kinds)
        stages.append(Stage(each, kept, by_stage.get(each.stage, [])))
    return stages


def stage_of(found: FunnelStep, kept: Iterable[Candidate], drops: Sequence[Drop]) -> Stage:
    """Return a stage whose kept candidates are at hand."""
    return Stage(found, Counter(Kind.of(candidate) for candidate in kept), drops)


def cells(stages: Sequence[Stage]) -> list[FunnelCell]:
    """Return the counts of all stages, in their order; kinds of which there are none are left out."""
    found = []
    for stage in stages:
        counts: Counter[tuple[Kind, str]] = Counter({(kind, KEPT): n for kind, n in stage.kept.items()})
        counts.update((Kind.of(drop), drop.reason) for drop in stage.drops)
        for (kind, fate), count in sorted(counts.items(), key=lambda item: (*_order(item[0][0]), item[0][1])):
            if count:
                cell = FunnelCell(stage.step.stage, kind.document_path, kind.type, kind.language, fate, count)
                found.append(cell)
    return found


def _order(kind: Kind) -> tuple[str, str, str]:
    return kind.document_path, kind.type, kind.language


def faults(steps: Sequence[FunnelStep], found: Sequence[FunnelCell]) -> list[str]:
    """Return where the parts do not add up to the whole, in words."""
    wrong = []
    kept: Counter[str] = Counter()
    dropped: Counter[tuple[str, str]] = Counter()
    for cell in found:
        if cell.count < 0:
            kind = f"{cell.document_path} / {cell.type} / {cell.language}"
            wrong.append(f"{cell.stage}: {-cell.count} more of {kind} were dropped than came in")
        if cell.fate == KEPT:
            kept[cell.stage] += cell.count
        else:
            dropped[cell.stage, cell.fate] += cell.count
    for each in steps:
        if kept[each.stage] != each.kept:
            wrong.append(f"{each.stage}: {each.kept} kept, but its parts add up to {kept[each.stage]}")
        reasons = {reason.reason: reason.count for reason in each.reasons}
        parts = {reason: count for (stage, reason), count in dropped.items() if stage == each.stage}
        if reasons != parts:
            wrong.append(f"{each.stage}: dropped {reasons}, but its parts add up to {parts}")
    if strange := sorted({cell.stage for cell in found} - {each.stage for each in steps}):
        wrong.append(f"parts of stages that are none: {', '.join(strange)}")
    return wrong


@dataclass(frozen=True, slots=True)
class Part:
    """The way of the items of one document, type or language through all stages."""

    name: str
    came_in: int
    """Into the first stage."""
    kept: tuple[int, ...]
    """By each stage, in their order."""
    reasons: tuple[tuple[str, int], ...]
    """Of all drops, most frequent first."""


def parts(found: Sequence[FunnelCell], stages: Sequence[str], by: By) -> list[Part]:
    """Return the parts of the funnel by one of document, type or language, by name; their sums are the whole."""
    attribute = "document_path" if by == "document" else by
    groups: dict[str, list[FunnelCell]] = {}
    for cell in found:
        groups.setdefault(getattr(cell, attribute), []).append(cell)
    result = []
    for name in sorted(groups):
        kept, reasons, came_in = Counter[str](), Counter[str](), 0
        for cell in groups[name]:
            came_in += cell.count if cell.stage == stages[0] else 0
            (kept if cell.fate == KEPT else reasons)[cell.stage if cell.fate == KEPT else cell.fate] += cell.count
        told = tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        result.append(Part(name, came_in, tuple(kept[stage] for stage in stages), told))
    return result


@dataclass(frozen=True, slots=True)
class Reason:
    """Everything that one stage dropped for one reason."""

    stage: str
    reason: str
    count: int
    examples: tuple[Drop, ...]


def by_reason(stages: Sequence[Stage]) -> list[Reason]:
    """Return what was dropped by stage and reason, in the order of the funnel, with a few examples of each."""
    found = []
    for stage in stages:
        for counted in stage.step.reasons:
            own = [drop for drop in stage.drops if drop.reason == counted.reason]
            # What has a question and an id can be looked into; one that could not be read says less.
            shown = sorted(own, key=lambda drop: (not drop.item_id, not drop.question))[:EXAMPLES]
            found.append(Reason(stage.step.stage, counted.reason, counted.count, tuple(shown)))
    return found


def _rounds(asked: Sequence[AskedRow]) -> str:
    rounds = 1 + max((row.round for row in asked), default=0)
    return f"{rounds} round{'s' if rounds > 1 else ''}"
