"""What people's decisions say of each judge. The rules, with their reasons, are in ``docs/filters.md``.

=============================  ===================================================================================
decision                       label
=============================  ===================================================================================
``y``, nothing edited          good, for ambiguity, support and class: the four questions on the sheet are theirs
``n`` or a correction, the     bad, for the judges that are named; nothing for the others
note names judges
a correction, no judge named   bad for ambiguity where the question was edited; else bad for support where the
                               answer was, or evidence was added; nothing where it was only cut, or only wording
``n``, no judge named          nothing for any single judge; bad for all of them together, as is every correction
=============================  ===================================================================================

The closed book is labelled by notes only: that an item can be answered without the document cannot be seen on a sheet.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragds_pipeline.calibration.notes import is_wording, named_in
from ragds_pipeline.calibration.selection import Stratum
from ragds_pipeline.filters.audit import AUDITED
from ragds_pipeline.filters.calibration import Judged
from ragds_pipeline.filters.judges import AMBIGUITY, CLOSED_BOOK, JUDGES, SUPPORT, Judge
from ragds_pipeline.filters.judging import OK
from ragds_pipeline.records import Candidate, Decision, Keep, Verdict

TOGETHER = "together"
"""Stands for all judges: whether every one of them let an item through."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """What people's decisions say of one judge, or of all together."""

    rows: tuple[Judged, ...]
    strata: tuple[Stratum, ...]
    """All items with a verdict, labelled or not, by what became of them."""
    silent: int
    """Decisions against an item that name no judge, and so say nothing of this one."""
    split: int
    """Items on which its votes were split."""

    @property
    def dropped(self) -> int:
        """Items that the judge dropped and that may be audited."""
        return sum(stratum.total for stratum in self.strata if not stratum.passed)

    @property
    def audited(self) -> int:
        """The dropped ones that have a label."""
        return sum(stratum.labels for stratum in self.strata if not stratum.passed)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What labels are made of: the verdicts of a revision and the decisions on what they were about."""

    candidates: Mapping[str, Candidate]
    """Those that passed all judges, by id: they all go on the sheet."""
    audited: Mapping[str, Candidate]
    """Those that a judge dropped and that may be audited: a share of them goes on the sheet."""
    verdicts: Sequence[Verdict]
    decisions: Mapping[str, Decision]

    def seen(self, id_: str) -> Candidate | None:
        """Return a candidate that people may have seen."""
        return self.candidates.get(id_) or self.audited.get(id_)


def labels_of(judge: Judge, reviewed: Reviewed) -> Labelled:
    """Return what people's decisions say of one judge's verdicts."""
    rows: list[Judged] = []
    fates, silent = _Fates(), 0
    for verdict in (v for v in reviewed.verdicts if v.stage == judge.name):
        candidate = reviewed.seen(verdict.candidate_id)
        if candidate is None:
            continue
        got, decision = _got(judge, verdict), reviewed.decisions.get(verdict.candidate_id)
        expected = None if decision is None else _label(judge, decision)
        fates.add(got, candidate.id in reviewed.candidates, expected)
        if expected is not None:
            rows.append(_row(candidate, expected, got, verdict.detail))
        elif decision is not None:
            silent += decision.keep != Keep.KEEP
    return Labelled(tuple(rows), fates.strata(), silent, fates.split)


def labels_together(reviewed: Reviewed) -> Labelled:
    """Return what people's decisions say of all judges together: is what they let through what people keep as it is?

    What the closed book dropped is left out, for it is not audited.
    """
    said: dict[str, list[Verdict]] = {}
    for verdict in reviewed.verdicts:
        said.setdefault(verdict.candidate_id, []).append(verdict)
    rows: list[Judged] = []
    fates = _Fates()
    for id_, verdicts in said.items():
        candidate = reviewed.seen(id_)
        if candidate is None or any(v.reason == CLOSED_BOOK.reason for v in verdicts):
            continue
        got, decision = _all_passed(verdicts), reviewed.decisions.get(id_)
        expected = None if decision is None else decision.keep == Keep.KEEP
        fates.add(got, id_ in reviewed.candidates, expected)
        if expected is not None:
            detail = "; ".join(f"{v.stage}: {v.detail}" for v in verdicts if v.reason != OK) or "all judges passed it"
            rows.append(_row(candidate, expected, got, detail))
    return Labelled(tuple(rows), fates.strata(), 0, fates.split)


class _Fates:
    """Counts items by what became of them."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[bool, bool, bool | None]] = Counter()
        self.split = 0

    def add(self, got: bool | None, kept: bool, expected: bool | None) -> None:
        """Count one item: this judge's verdict, whether all judges let it through, and its label if there is one."""
        if got is None:
            self.split += 1
        else:
            self._counts[got, kept, expected] += 1

    def strata(self) -> tuple[Stratum, ...]:
        kinds = sorted({(got, kept) for got, kept, _ in self._counts}, reverse=True)
        counts = self._counts
        return tuple(
            Stratum(
                got, sum(counts[got, kept, label] for label in (True, False, None)),
                counts[got, kept, True], counts[got, kept, False],
            )
            for got, kept in kinds
        )  # fmt: skip


def told(decision: Decision) -> str:
    """Return a decision as the label of a difference."""
    note = f": {decision.note}" if decision.note else ""
    return f"{decision.keep} by {decision.reviewer or 'a reviewer'} ({decision.source}){note}"


def _label(judge: Judge, decision: Decision) -> bool | None:
    if decision.keep == Keep.KEEP:
        return True if judge.name in AUDITED else None
    return False if judge.name in _blamed(decision) else None


def _blamed(decision: Decision) -> frozenset[str]:
    """Return the judges at whose criterion an item failed, as far as a decision against it says."""
    named = named_in(decision.note)
    if named or decision.keep != Keep.FIX or is_wording(decision.note):
        return named
    seen, corrected = json.loads(decision.seen), json.loads(decision.corrected)
    if seen["question"] != corrected["question"]:
        return frozenset({AMBIGUITY.name})  # a new answer may only follow from the new question
    added = any(not any(span in shown for shown in seen["evidence"]) for span in corrected["evidence"])
    return frozenset({SUPPORT.name}) if added or seen["answer"] != corrected["answer"] else frozenset()


def _got(judge: Judge, verdict: Verdict) -> bool | None:
    """Return whether the judge let the item through; None where it did not decide."""
    return {OK: True, judge.reason: False}.get(verdict.reason)


def _all_passed(verdicts: Sequence[Verdict]) -> bool | None:
    got = [_got(judge, v) for v in verdicts for judge in JUDGES if judge.name == v.stage]
    return False if False in got else None if None in got else True


def _row(candidate: Candidate, expected: bool, got: bool | None, reason: str) -> Judged:
    return Judged(candidate.id, candidate.language, expected, got, reason, "person")
