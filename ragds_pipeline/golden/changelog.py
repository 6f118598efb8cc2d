"""The changelog of a frozen set: what became of every item of the one before, and what is new.

It adds up: before = carried + reanchored + rechecked + waiting + dropped, and
now = carried + reanchored + rechecked + added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ragds_pipeline.golden.registry import NO_ANSWER_PREFIX
from ragds_pipeline.records import Change, ChangelogRow, Drop, GoldenItem, Outcome, RevalidatedItem

_NOBODY_KNOWS = frozenset({"undecided", "not_checked", "correction_unchecked"})
"""Reasons that do not speak against an item: it may come back."""

_BY_OUTCOME = {Outcome.CARRIED: Change.CARRIED, Outcome.REANCHORED: Change.REANCHORED}


def changelog(
    before: Sequence[RevalidatedItem], now: Sequence[GoldenItem], drops: Sequence[Drop]
) -> list[ChangelogRow]:
    """Return a row for each item of the frozen set before and for each new one, in the order of ids.

    ``before`` are the frozen items as they were re-validated, ``now`` the items to be frozen, ``drops`` what review and
    freezing let go, with the reasons.
    """
    why = {drop.item_id: drop for drop in drops}
    gone = {item.id: why[item.now_candidate_id] for item in before if item.now_candidate_id in why}
    return told(before, now, gone, {item.id: _path(item) for item in now})


def told(
    before: Sequence[RevalidatedItem],
    now: Sequence[GoldenItem],
    gone: Mapping[str, Drop],
    paths: Mapping[str, str],
) -> list[ChangelogRow]:
    """Return the rows of :func:`changelog`; ``gone`` says why an item is not in the set any more, ``paths`` which
    document a new one is of, both by golden id."""
    there = {item.id: item for item in now}
    rows = [_row(item, there.get(item.id), gone.get(item.id)) for item in before]
    old = {item.id for item in before}
    for item in now:
        if item.id not in old:
            rows.append(ChangelogRow(item.id, Change.ADDED, paths[item.id], item.question, item.provenance.decision))
    return sorted(rows, key=lambda row: (len(row.id), row.id))


def _row(item: RevalidatedItem, frozen: GoldenItem | None, drop: Drop | None) -> ChangelogRow:
    if frozen is not None:
        same = frozen.provenance.candidate_id == item.now_candidate_id
        change = _BY_OUTCOME.get(Outcome(item.outcome), Change.RECHECKED) if same else Change.RECHECKED
        path = item.now_document_path or item.document_path
        why = item.why if change is not Change.RECHECKED else f"{item.why}; {frozen.provenance.decision}"
        return ChangelogRow(item.id, change, path, item.question, why)
    if drop is None:
        return ChangelogRow(item.id, Change.DROPPED, item.document_path, item.question, item.why)
    if drop.reason in _NOBODY_KNOWS:
        return ChangelogRow(item.id, Change.WAITING, item.document_path, item.question, item.why)
    return ChangelogRow(item.id, Change.DROPPED, item.document_path, item.question, f"{drop.reason}: {drop.detail}")


def _path(item: GoldenItem) -> str:
    return item.passages[0].document_path if item.passages else "(no_answer set)"


def compare_sets(before: Sequence[GoldenItem], now: Sequence[GoldenItem]) -> list[ChangelogRow]:
    """Return what happened between any two frozen sets, told from the items alone.

    An item that is in both is carried where nothing about it differs, reanchored where only places do, and rechecked
    where its question, answer or evidence reads differently.
    """
    old, new = {item.id: item for item in before}, {item.id: item for item in now}
    rows = []
    for id_ in sorted(old.keys() | new.keys(), key=lambda id_: (len(id_), id_)):
        one, other = old.get(id_), new.get(id_)
        if one is None and other is not None:
            rows.append(ChangelogRow(id_, Change.ADDED, _path(other), other.question, "only in the later set"))
        elif one is not None and other is None:
            rows.append(ChangelogRow(id_, Change.DROPPED, _path(one), one.question, "only in the earlier set"))
        elif one is not None and other is not None:
            change, why = _difference(one, other)
            rows.append(ChangelogRow(id_, change, _path(other), other.question, why))
    return rows


def _difference(one: GoldenItem, other: GoldenItem) -> tuple[Change, str]:
    told = [
        f"{name}: {before!r} → {after!r}"
        for name, before, after in (
            ("question", one.question, other.question),
            ("answer", one.answer, other.answer),
            ("evidence", [p.content for p in one.passages], [p.content for p in other.passages]),
        )
        if before != after
    ]
    if told:
        return Change.RECHECKED, "; ".join(told)
    places = [[(p.document_path, p.start_char, p.end_char) for p in item.passages] for item in (one, other)]
    if places[0] != places[1]:
        moved = ", ".join(f"{path}[{start}:{end}]" for path, start, end in places[1])
        return Change.REANCHORED, f"now at {moved}"
    return Change.CARRIED, ""


def by_document(rows: Sequence[ChangelogRow]) -> list[dict[str, object]]:
    """Return counts by document as rows of a report, with a last one for all."""
    kinds = [str(change) for change in Change]
    counts = Counter((row.document_path, row.change) for row in rows)
    paths = sorted({row.document_path for row in rows})
    found: list[dict[str, object]] = [
        {"document": path, **{kind: counts[path, kind] for kind in kinds}} for path in paths
    ]
    total = totals(rows)
    return [*found, {"document": "all", **{kind: total[kind] for kind in kinds}}]


def totals(rows: Sequence[ChangelogRow]) -> dict[str, int]:
    """Return how many items there are of each kind of change, all kinds in their order."""
    counts = Counter(row.change for row in rows)
    return {str(change): counts[change] for change in Change}


def faults(rows: Sequence[ChangelogRow], before: int, now: int) -> list[str]:
    """Return what does not add up between the changelog and the two sets, in words."""
    total = totals(rows)
    stay = total[Change.CARRIED] + total[Change.REANCHORED] + total[Change.RECHECKED]
    found = []
    if (old := stay + total[Change.WAITING] + total[Change.DROPPED]) != before:
        found.append(f"the changelog tells of {old} earlier items, but the set before holds {before}")
    if (new := stay + total[Change.ADDED]) != now:
        found.append(f"the changelog tells of {new} items, but the set holds {now}")
    return found


def as_markdown(rows: Sequence[ChangelogRow], before: str, now: str) -> str:
    """Return the changelog for people: counts by document, then every item that did not simply carry over."""
    lines = [f"# Changes from {before} to {now}", ""]
    if any(row.id.startswith(NO_ANSWER_PREFIX) for row in rows):
        lines += ["Items `n-…` are questions without an answer.", ""]
    kinds = [str(change) for change in Change]
    lines += [f"| document | {' | '.join(kinds)} |", f"|---|{'--:|' * len(kinds)}"]
    for counts in by_document(rows):
        lines.append(f"| {' | '.join(str(counts[key]) for key in ('document', *kinds))} |")
    for change in (Change.WAITING, Change.DROPPED, Change.RECHECKED, Change.ADDED, Change.REANCHORED):
        chosen = [row for row in rows if row.change == change]
        if chosen:
            lines += ["", f"## {change.capitalize()}", ""]
            lines += [
                f"- **{row.id}** {_line(row.question)} ({row.document_path})  \n  {_line(row.why)}" for row in chosen
            ]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def reasons(rows: Sequence[ChangelogRow]) -> Mapping[str, int]:
    """Return how many items were dropped for each reason."""
    return Counter(row.why.partition(":")[0] for row in rows if row.change == Change.DROPPED)
