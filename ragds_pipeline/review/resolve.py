"""What the decisions on the candidates of a revision come to: kept, corrected, dropped, or open.

The one place where that is judged: a sheet is imported only if its corrections hold here together with all decisions
made before, the queue shows what is open by it, and freezing takes what it lets through. A correction goes through the
code filter like any draft; only what people keep counts as a question asked before. Of two corrections that are alike,
the one decided first stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.filters.code_filter import Documents, code_filter
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Decision, Drop, Keep
from ragds_pipeline.review.corrections import corrected_draft, correction_of


@dataclass(frozen=True, slots=True)
class Resolved:
    """What became of the candidates that were decided on, by their ids; all others are open."""

    kept: Mapping[str, Candidate]
    corrected: Mapping[str, Candidate]
    """The corrected forms, by the id of the candidate that each corrects."""
    dropped: frozenset[str]
    failed: Mapping[str, Drop]
    """Why a correction does not pass, by the id of the candidate: it is open again."""

    @property
    def closed(self) -> frozenset[str]:
        """Ids of the candidates on which nobody has to decide any more."""
        return self.dropped | self.kept.keys() | self.corrected.keys()


def resolve(
    candidates: Sequence[Candidate],
    decisions: Mapping[str, Decision],
    outlines: Mapping[str, Outline],
    documents: Documents,
    settings: FilterSettings,
) -> Resolved:
    """Apply the decisions that count (by candidate id, in the order in which they were made) to ``candidates``."""
    by_id = {candidate.id: candidate for candidate in candidates}
    counting = [(by_id[id_], decision) for id_, decision in decisions.items() if id_ in by_id]
    kept = {c.id: c for c, decision in counting if decision.keep == Keep.KEEP}
    drafts = [corrected_draft(c, correction_of(decision)) for c, decision in counting if decision.keep == Keep.FIX]
    filtered = code_filter(drafts, outlines, documents, settings, known=list(kept.values()))
    parents = {draft.id: draft.parent_id for draft in drafts}
    return Resolved(
        kept=kept,
        corrected={candidate.parent_id: candidate for candidate in filtered.candidates},
        dropped=frozenset(c.id for c, decision in counting if decision.keep == Keep.DROP),
        failed={parents[drop.item_id]: drop for drop in filtered.drops},
    )
