"""Judges measured against people and against probes: figures, rows of tables, and what the check says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragds_pipeline.calibration.labels import TOGETHER, Labelled, Reviewed, labels_of, labels_together, told
from ragds_pipeline.calibration.selection import Bounded, Expected, expected
from ragds_pipeline.filters.calibration import Calibration, Share, Statistics, calibrate
from ragds_pipeline.filters.judges import JUDGES, Judge
from ragds_pipeline.filters.probing import INJECTION, Probed
from ragds_pipeline.records import CalibrationRow, DifferenceRow

PEOPLE, PROBES = "people", "probes"


@dataclass(frozen=True, slots=True)
class Measured:
    """One judge against one source of labels."""

    judge: str
    source: str
    calibration: Calibration
    expected: Expected
    model: str
    rubric: str
    questions: Mapping[str, str]
    """The questions of the items, by id."""
    labels: Mapping[str, str]
    """Where each item's label comes from, by id."""

    @property
    def kappa(self) -> Bounded | None:
        """The kappa that counts: over all items where people saw only a share of the dropped ones, else of labels."""
        found = self.calibration
        if self.expected.kappa is not None:
            return self.expected.kappa
        if found.kappa is None or found.kappa_low is None or found.kappa_high is None:
            return None
        return Bounded(found.kappa, found.kappa_low, found.kappa_high)


def against_people(reviewed: Reviewed, judges: Sequence[Judge], min_labels: int) -> list[Measured]:
    """Return each judge, and all of them together, against people's decisions."""
    named = [(judge.name, labels_of(judge, reviewed)) for judge in judges]
    if judges:
        named.append((TOGETHER, labels_together(reviewed)))
    models: dict[str, tuple[str, str]] = {}
    for verdict in reviewed.verdicts:
        models.setdefault(verdict.stage, (verdict.model, verdict.prompt_version))
    questions = {id_: c.question for id_, c in (*reviewed.candidates.items(), *reviewed.audited.items())}
    labels = {id_: told(decision) for id_, decision in reviewed.decisions.items()}
    return [
        Measured(
            judge=name,
            source=PEOPLE,
            calibration=_of_people(labelled, min_labels),
            expected=expected(labelled.strata),
            model=models.get(name, ("", ""))[0],
            rubric=models.get(name, ("", ""))[1],
            questions=questions,
            labels=labels,
        )
        for name, labelled in named
    ]


def against_probes(probed: Sequence[Probed], min_labels: int) -> list[Measured]:
    """Return each judge that was asked about its probes against their labels; those that try to steer are apart."""
    found = []
    for judge in JUDGES:
        own = [each for each in probed if each.probe.set == judge.name]
        if own:
            found.append(
                Measured(
                    judge=judge.name,
                    source=PROBES,
                    calibration=calibrate([each.judged() for each in own], min_labels),
                    expected=Expected(),
                    model=own[0].verdict.model,
                    rubric=own[0].verdict.prompt_version,
                    questions={each.probe.id: str(each.probe.fields["question"]) for each in own},
                    labels={each.probe.id: each.probe.why for each in own},
                )
            )
    return found


def _of_people(labelled: Labelled, min_labels: int) -> Calibration:
    found = calibrate(labelled.rows, min_labels)
    notes = list(found.notes)
    if labelled.silent:
        notes.append(
            f"{labelled.silent} decisions against an item do not say that it fails this judge's criterion and are left "
            "out; if it was at fault in some of them, it is worse than it looks."
        )
    if labelled.split:
        notes.append(f"{labelled.split} items had split votes and are left out: the judge did not decide them.")
    why_not = found.why_not_enough
    if labelled.dropped:
        notes.append(f"People labelled {labelled.audited} of the {labelled.dropped} items that it dropped (audit).")
        if not labelled.audited:
            nothing = f"none of the {labelled.dropped} items that it dropped has been labelled (review.audit_share)"
            why_not = f"{why_not}; {nothing}" if why_not else nothing
    return replace(found, notes=tuple(notes), enough=not why_not, why_not_enough=why_not)


@dataclass(frozen=True, slots=True)
class Steering:
    """What came of the probes whose texts try to steer a judge."""

    asked: int
    steered: tuple[Probed, ...]
    """Those that got the verdict the planted text pushes to. There must be none."""
    without_verdict: tuple[Probed, ...]


def steering(probed: Iterable[Probed]) -> Steering:
    """Return how the judges held against planted texts; each pushes away from the expected verdict."""
    own = [each for each in probed if each.probe.set == INJECTION]
    return Steering(
        asked=len(own),
        steered=tuple(each for each in own if each.got is not None and each.got is not each.probe.expected),
        without_verdict=tuple(each for each in own if each.got is None),
    )


@dataclass(frozen=True, slots=True)
class Needless:
    """How well the support judge tells needless spans, on probes that are rightly found correct."""

    probes: int
    exact: int
    """Probes of which exactly the needless spans were named, which may be none."""
    rightly: int
    missed: int
    wrongly: int
    """Spans named needless that are needed: they would become optional and count less."""


def needless(probed: Iterable[Probed]) -> Needless:
    """Return how the spans that the judge calls needless compare to the labels."""
    pairs = [
        (set(each.probe.needless), set(each.verdict.needless))
        for each in probed
        if each.probe.needless is not None and each.got is True and each.probe.set != INJECTION
    ]
    return Needless(
        probes=len(pairs),
        exact=sum(want == got for want, got in pairs),
        rightly=sum(len(want & got) for want, got in pairs),
        missed=sum(len(want - got) for want, got in pairs),
        wrongly=sum(len(got - want) for want, got in pairs),
    )


def calibration_rows(measured: Iterable[Measured]) -> list[CalibrationRow]:
    """Return a row for each judge and source, over all languages and for each."""
    rows = []
    for each in measured:
        rows.append(_calibration_row(each, "", each.calibration))
        rows += [_calibration_row(each, language, found) for language, found in each.calibration.by_language]
    return rows


def _calibration_row(measured: Measured, language: str, found: Statistics) -> CalibrationRow:
    whole = found if isinstance(found, Calibration) else None
    a, b, c, d = found.table.cells()
    kappa = measured.expected.kappa if whole else None
    return CalibrationRow(
        judge=measured.judge, source=measured.source, language=language,
        items=found.n, without_verdict=found.without_verdict,
        correct_correct=a, correct_incorrect=b, incorrect_correct=c, incorrect_incorrect=d,
        **_bounds("agreement", found.agreement),
        kappa=found.kappa, kappa_low=found.kappa_low, kappa_high=found.kappa_high, pabak=found.pabak,
        **_bounds("precision_correct", found.precision_correct), **_bounds("recall_correct", found.recall_correct),
        **_bounds("precision_incorrect", found.precision_incorrect),
        **_bounds("recall_incorrect", found.recall_incorrect),
        expected_kappa=kappa.value if kappa else None,
        expected_kappa_low=kappa.low if kappa else None,
        expected_kappa_high=kappa.high if kappa else None,
        enough=whole.enough if whole else False,
        why_not_enough=whole.why_not_enough if whole else "counted for all languages together",
        model=measured.model, rubric=measured.rubric, notes=whole.notes if whole else (),
    )  # fmt: skip


def _bounds(name: str, share: Share) -> dict[str, float | None]:
    return {name: share.value, f"{name}_low": share.low, f"{name}_high": share.high}


def difference_rows(measured: Iterable[Measured]) -> list[DifferenceRow]:
    """Return the items on which a judge and its labels differ, for each judge and source worst first."""
    return [
        DifferenceRow(
            judge=each.judge,
            source=each.source,
            rank=rank,
            item_id=row.item_id,
            language=row.language,
            should_be=word(row.expected),
            judged=word(row.got),
            question=each.questions.get(row.item_id, ""),
            reason=row.reason,
            label=each.labels.get(row.item_id, ""),
        )
        for each in measured
        for rank, row in enumerate(each.calibration.differing, start=1)
    ]


def word(correct: bool | None) -> str:
    """Return a label or verdict as a word; empty for none."""
    return "" if correct is None else "correct" if correct else "incorrect"


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check has to say of one judge."""

    judge: str
    text: str
    warns: bool


def findings(
    measured: Sequence[Measured], judges: Sequence[Judge], min_kappa: float, steered: Steering
) -> list[Finding]:
    """Return, for each judge that is switched on, whether it may be trusted and on what that rests.

    People count where they labelled enough, else the probes; a judge of which neither says anything warns.
    """
    found = [_finding(judge, [m for m in measured if m.judge == judge.name], min_kappa) for judge in judges]
    if steered.steered:
        ids = ", ".join(each.probe.id for each in steered.steered[:5])
        text = f"{len(steered.steered)} of {steered.asked} planted texts steered a judge ({ids})"
        found.append(Finding(INJECTION, text, warns=True))
    return found


def _finding(judge: Judge, measured: Sequence[Measured], min_kappa: float) -> Finding:
    people = next((m for m in measured if m.source == PEOPLE), None)
    few = "" if people is None or people.calibration.enough else people.calibration.why_not_enough
    usable = [m for m in measured if m.calibration.enough and m.kappa is not None]
    best = min(usable, key=lambda m: m.source != PEOPLE, default=None)
    if best is None or best.kappa is None:
        reason = few or "no label of people, no answered probe"
        text = f"{judge.name}: nothing can be said of it yet ({reason}); run ragds probes, and have people review"
        return Finding(judge.name, text, warns=True)
    text = (
        f"{judge.name}: kappa {best.kappa.value:.2f} ({best.kappa.low:.2f} to {best.kappa.high:.2f}) with {best.source}"
    )
    if best.source == PROBES and few:
        text += f"; too few human labels: {few}"
    below = best.kappa.value < min_kappa
    return Finding(judge.name, text + (f", below {min_kappa:g}" if below else ""), warns=below)
