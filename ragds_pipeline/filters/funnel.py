"""The funnel: what came into each stage, what it kept, what it dropped and why, and whether that adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ragds_pipeline.filters.judges import Judge
from ragds_pipeline.filters.judging import SPLIT
from ragds_pipeline.records import Drop, FunnelStep, ReasonCount, Verdict


def step(stage: str, came_in: int, kept: int, drops: Iterable[Drop] | Counter[str], note: str = "") -> FunnelStep:
    """Return one step of the funnel; ``drops`` are the dropped items or their counts by reason."""
    counts = drops if isinstance(drops, Counter) else Counter(drop.reason for drop in drops)
    reasons = tuple(ReasonCount(r, n) for r, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    return FunnelStep(stage, came_in, kept, sum(counts.values()), reasons, note)


def joined(each: FunnelStep, count: int) -> FunnelStep:
    """Return a step into which ``count`` items came from the last frozen set, not from the step before."""
    return replace(each, joined=count, note=f"{count} came over from the last frozen set" if count else each.note)


def judge_steps(judges: Sequence[Judge], verdicts: Sequence[Verdict], drops: Sequence[Drop]) -> list[FunnelStep]:
    """Return a step for each judge that was asked: what it saw, let through, and dropped."""
    steps = []
    for judge in judges:
        seen = [verdict for verdict in verdicts if verdict.stage == judge.name]
        split = sum(verdict.reason == SPLIT for verdict in seen)
        note = f"{split} split, for people" if split else ""
        passed = sum(verdict.passed for verdict in seen)
        steps.append(step(judge.name, len(seen), passed, [d for d in drops if d.stage == judge.name], note))
    return steps


def faults(steps: Sequence[FunnelStep]) -> list[str]:
    """Return what does not add up, inside the steps and from each to the next, in words."""
    found = [fault for each in steps for fault in each.faults()]
    for before, after in pairwise(steps):
        if before.kept + after.joined != after.came_in:
            more = f" and {after.joined} joined" if after.joined else ""
            found.append(f"{before.stage} kept {before.kept}{more}, but {after.came_in} came into {after.stage}")
    return found


def as_markdown(steps: Sequence[FunnelStep]) -> str:
    """Return the funnel as a Markdown table."""
    lines = ["| stage | in | kept | dropped | why |", "|---|--:|--:|--:|---|"]
    for each in steps:
        why = ", ".join(f"{r.reason} {r.count}" for r in each.reasons)
        why = f"{why} ({each.note})" if why and each.note else why or each.note
        lines.append(f"| {each.stage} | {each.came_in} | {each.kept} | {each.dropped} | {why} |")
    return "\n".join(lines)
