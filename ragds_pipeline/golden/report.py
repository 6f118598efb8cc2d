"""The report of a revision, for people: what moved, what is stale and why, what it cost, what has to be done now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragds_pipeline.kb.changes import by_status
from ragds_pipeline.records import DocumentChange, MissingRow, Outcome, RevalidatedItem

_SAID = {
    Outcome.CARRIED: "carried: the evidence stands where it stood",
    Outcome.REANCHORED: "re-anchored: the evidence stands elsewhere, or only its layout changed",
    Outcome.TO_PEOPLE: "to people: the evidence was edited",
    Outcome.LOST: "lost: nothing like the evidence is left",
}


@dataclass(frozen=True, slots=True)
class RevisionFacts:
    """What a report tells of."""

    source_version: str
    baseline: str
    """The frozen set that it was held against (``2026-10-01/snapshot-0001``); empty for a first revision."""
    changes: Sequence[DocumentChange]
    items: Sequence[RevalidatedItem]
    candidates: int
    """Candidates of this revision, those that came over included."""
    came_over: int
    missing: Sequence[MissingRow]
    to_decide: int
    to_recheck: int
    sheets: Sequence[str]
    """Where the sheets are that go to people."""
    cost: Mapping[str, str]
    """What was spent, each with its name."""
    no_answer: str = ""
    """The part on the no_answer set; see ``no_answer_report``."""
    no_answer_to_decide: int = 0


def report(facts: RevisionFacts) -> str:
    """Return the report as Markdown."""
    against = f", held against {facts.baseline}" if facts.baseline else ""
    parts = [f"# Revision {facts.source_version}{against}", _documents(facts)]
    if facts.baseline:
        parts += [
            _summary(facts.items),
            _stale(facts.items),
            _lost(facts.items),
            _moved(facts.items),
            _look(facts.items),
        ]
    parts += [_questions(facts), facts.no_answer, _cost(facts), _to_do(facts)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _documents(facts: RevisionFacts) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in by_status(facts.changes).items())
    lines = ["## Documents", "", counts.replace("first", "documents") + "."]
    for change in facts.changes:
        if change.status not in ("unchanged", "first"):
            was = f" (was {change.was})" if change.was else ""
            new = f", {len(change.fresh)} new or changed passages" if change.fresh else ""
            lines.append(f"- {change.document_path}{was}: {change.status}{new}")
    return "\n".join(lines)


def _summary(items: Sequence[RevalidatedItem]) -> str:
    lines = ["## What became of the frozen questions", "", "| outcome | questions | by rung |", "|---|--:|---|"]
    for outcome, said in _SAID.items():
        rungs = Counter(item.rung for item in items if item.outcome == outcome)
        told = ", ".join(f"{rung} {count}" for rung, count in sorted(rungs.items(), key=lambda r: (-r[1], r[0])))
        lines.append(f"| {said} | {sum(rungs.values())} | {told} |")
    return "\n".join(lines)


def _stale(items: Sequence[RevalidatedItem]) -> str:
    chosen = [item for item in items if item.outcome == Outcome.TO_PEOPLE]
    if not chosen:
        return ""
    return "\n".join(["## Stale: to be looked at", "", *(line for item in chosen for line in _told(item, diff=True))])


def _lost(items: Sequence[RevalidatedItem]) -> str:
    chosen = [item for item in items if item.outcome == Outcome.LOST]
    return "\n".join(["## Lost", "", *(line for item in chosen for line in _told(item))]) if chosen else ""


def _moved(items: Sequence[RevalidatedItem]) -> str:
    chosen = [item for item in items if item.outcome == Outcome.REANCHORED]
    return "\n".join(["## Moved", "", *(line for item in chosen for line in _told(item))]) if chosen else ""


def _look(items: Sequence[RevalidatedItem]) -> str:
    chosen = [item for item in items if item.look and item.outcome in (Outcome.CARRIED, Outcome.REANCHORED)]
    if not chosen:
        return ""
    head = "## Carried over, but the text around was edited"
    return "\n".join([head, "", *(f"- {item.id} {_line(item.question)} ({item.now_document_path})" for item in chosen)])


def _told(item: RevalidatedItem, diff: bool = False) -> list[str]:
    place = item.document_path
    if item.now_document_path not in ("", item.document_path):
        place += f" → {item.now_document_path}"
    lines = [f"- **{item.id}** {_line(item.question)} ({place})", f"  {_line(item.why)}"]
    return [*lines, f"  `{_line(item.diff).replace('`', chr(39))}`"] if diff and item.diff else lines


def _questions(facts: RevisionFacts) -> str:
    new = facts.candidates - facts.came_over
    lines = ["## Questions", "", f"{facts.came_over} came over, {new} are new, {facts.to_decide} wait for a decision."]
    if facts.missing:
        lines.append(f"{sum(row.missing for row in facts.missing)} of the plan are missing:")
        lines += [f"- {row.document_path}, {row.type}: {row.missing} ({row.reasons})" for row in facts.missing[:20]]
    return "\n".join(lines)


def _cost(facts: RevisionFacts) -> str:
    return "\n".join(["## Cost", "", *(f"- {name}: {value}" for name, value in facts.cost.items())])


def _to_do(facts: RevisionFacts) -> str:
    lines = ["## What a person has to do", ""]
    if facts.to_recheck:
        lines.append(f"- Recheck {facts.to_recheck} questions whose evidence was edited.")
    if new := facts.to_decide - facts.to_recheck:
        lines.append(f"- Decide on {new} questions.")
    if facts.no_answer_to_decide:
        lines.append(f"- Decide on {facts.no_answer_to_decide} questions without an answer.")
    lines += [f"- Sheet: {sheet}" for sheet in facts.sheets]
    lines.append(
        "- Then import the sheets and freeze: `ragds import SHEET`, `ragds freeze`, or `freeze_job` in the UI."
    )
    to_decide = facts.to_decide + facts.no_answer_to_decide
    return "\n".join(lines if to_decide else [*lines[:2], "- Nothing to decide; freeze when you like."])


def _line(text: str) -> str:
    return " ".join(text.split())
