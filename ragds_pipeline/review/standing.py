"""Decisions that go on applying to what came over from the last frozen set.

A frozen item whose evidence still stands was kept by somebody, though perhaps under another candidate id: a correction
is decided on by the id of what it corrects. Such items count as kept unless somebody decides otherwise now. So do
frozen questions without an answer, also those asked again: what is found against one gives it another id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ragds_pipeline.records import Decision, Keep, Outcome, RevalidatedItem
from ragds_pipeline.records_no_answer import NO_ANSWER

FROZEN = "golden_set"


def standing(items: Sequence[RevalidatedItem]) -> dict[str, Decision]:
    """Return a ``keep`` for each frozen item that came over by itself, by candidate id; ``source`` is the baseline."""
    found = {}
    for item in items:
        stands = item.outcome in (Outcome.CARRIED, Outcome.REANCHORED, Outcome.ASKED_AGAIN)
        if item.member in (FROZEN, NO_ANSWER) and stands:
            who = str(json.loads(item.provenance)["decision"])
            found[item.now_candidate_id] = Decision(
                candidate_id=item.now_candidate_id,
                keep=Keep.KEEP,
                note="",
                reviewer=who.partition(" by ")[2].partition(", ")[0],
                decided_at="",
                source=item.baseline,
                seen="",
                corrected="",
            )
    return found


def with_standing(latest: Mapping[str, Decision], items: Sequence[RevalidatedItem]) -> dict[str, Decision]:
    """Return the decisions that count, in the order in which they were made: those that stand, then those of now."""
    return {**{id_: d for id_, d in standing(items).items() if id_ not in latest}, **latest}
