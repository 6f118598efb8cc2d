"""What a revision did to the questions without an answer, for people: the report's part, and what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ragds_pipeline.golden.no_answer_revalidate import OPEN_NO_ANSWER
from ragds_pipeline.records import Drop, Outcome, RevalidatedItem
from ragds_pipeline.records_no_answer import NO_ANSWER, NoAnswerCandidate

Asked = tuple[str, str]
"""Document and question: within a revision, no two candidates of the set have both."""


def by_question(drops: Iterable[Drop]) -> dict[Asked, Drop]:
    """Return the drops by document and question. Of several, the last counts."""
    return {(drop.document_path, drop.question): drop for drop in drops}


def no_answer_section(
    items: Sequence[RevalidatedItem], candidates: Sequence[NoAnswerCandidate], drops: Sequence[Drop], to_decide: int
) -> str:
    """Return the part of the report on the no_answer set; empty where there is none.

    Args:
        items: All re-validated items, of both sets.
        candidates: The questions of this revision that nothing answers.
        drops: What code and the check of the whole KB dropped.
        to_decide: Questions on the sheet of this set.
    """
    mine = [item for item in items if item.member in (NO_ANSWER, OPEN_NO_ANSWER)]
    if not mine and not candidates:
        return ""
    there = {(c.document_path, c.question): c for c in candidates}
    asked = [item for item in mine if item.outcome == Outcome.ASKED_AGAIN]
    lines = ["## Questions without an answer", ""]
    if mine:
        lines.append(f"{len(mine) - len(asked)} came over as they were, {len(asked)} were asked again.")
    lines.append(f"{len(candidates)} are in this revision, {to_decide} wait for a decision.")
    gone = by_question(drops)
    for item in asked:
        lines += [f"- **{item.id}** {' '.join(item.question.split())} ({item.document_path})", f"  {item.why}"]
        lines.append(f"  {_became(item, there, gone)}")
    return "\n".join(lines)


def _became(item: RevalidatedItem, there: Mapping[Asked, NoAnswerCandidate], gone: Mapping[Asked, Drop]) -> str:
    now, drop = there.get((item.document_path, item.question)), gone.get((item.document_path, item.question))
    if now is None:
        return f"dropped, {drop.reason}: {' '.join(drop.detail.split())}" if drop else "dropped"
    if now.id == item.now_candidate_id:
        return "nothing answers it: it stays"
    return "to people: what they have to look at is not what it was"
