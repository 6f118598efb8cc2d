"""People see all that the judges let through and a share of what they drop. What if they saw everything?

Agreement, kappa and recall of the labels as they are would count the dropped items too little (verification bias:
Begg & Greenes 1983, Biometrics 39:207). Which items people see depends on their fate in the filters alone, so within
one fate the share of good items is not distorted; these shares, weighted by how many items had each fate, give the
table that review of everything would be expected to give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragds_pipeline.filters.calibration import DRAWS


@dataclass(frozen=True, slots=True)
class Stratum:
    """Items that had one fate: what the judge said, and whether all or a share of them went to people."""

    passed: bool
    """Whether this judge let them through."""
    total: int
    good: int
    """Labelled as items that should stay."""
    bad: int

    @property
    def labels(self) -> int:
        """How many are labelled."""
        return self.good + self.bad


@dataclass(frozen=True, slots=True)
class Bounded:
    """An estimate with a 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Expected:
    """What review of everything would be expected to find; None where that cannot be computed."""

    agreement: Bounded | None = None
    kappa: Bounded | None = None
    recall_correct: Bounded | None = None
    """Share of the good items that the judge lets through."""
    recall_incorrect: Bounded | None = None
    """Share of the bad items that it drops."""


def expected(strata: Sequence[Stratum]) -> Expected:
    """Return what the labels say of all items, seen or not.

    A stratum without a label is taken to be like the others of its verdict; with no label for a verdict that was given,
    nothing can be said. Intervals are equal-tailed: the share of good items in each stratum is drawn from its posterior
    under Jeffreys' prior, as for kappa in ``filters.calibration``.
    """
    used = [merged for passed in (True, False) for merged in _merged([s for s in strata if s.passed is passed])]
    total = sum(stratum.total for stratum in used)
    if not total or any(not stratum.labels for stratum in used):
        return Expected()
    # RandomState, because NumPy keeps its stream the same for ever.
    random = np.random.RandomState(20260101)
    point, draws = _Cells(), _Cells()
    for stratum in used:
        weight = stratum.total / total
        point.add(stratum.passed, weight, np.array([stratum.good / stratum.labels]))
        draws.add(stratum.passed, weight, random.beta(stratum.good + 0.5, stratum.bad + 0.5, DRAWS))
    return Expected(*(_bounded(v, drawn) for v, drawn in zip(point.figures(), draws.figures(), strict=True)))


def _merged(strata: Sequence[Stratum]) -> list[Stratum]:
    """Return the strata of one verdict that hold items, those without a label counted to one that has some."""
    held = [stratum for stratum in strata if stratum.total]
    labelled = [stratum for stratum in held if stratum.labels]
    if not labelled:
        return held
    first, *others = labelled
    more = sum(stratum.total for stratum in held if not stratum.labels)
    return [Stratum(first.passed, first.total + more, first.good, first.bad), *others]


Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


class _Cells:
    """Shares of all items by (should be, judged), many tables at once."""

    def __init__(self) -> None:
        zero = np.zeros(1)
        self._cells: dict[tuple[bool, bool], Numbers] = {(g, p): zero for g in (True, False) for p in (True, False)}

    def add(self, passed: bool, weight: float, good: Numbers) -> None:
        self._cells[True, passed] = self._cells[True, passed] + weight * good
        self._cells[False, passed] = self._cells[False, passed] + weight * (1 - good)

    def figures(self) -> tuple[Numbers, ...]:
        """Return agreement, kappa and both recalls; NaN where one is undefined."""
        a, b = self._cells[True, True], self._cells[True, False]
        c, d = self._cells[False, True], self._cells[False, False]
        with np.errstate(invalid="ignore", divide="ignore"):
            kappa = 2 * (a * d - b * c) / ((a + b) * (b + d) + (a + c) * (c + d))
            return a + d, kappa, a / (a + b), d / (c + d)


def _bounded(value: Numbers, drawn: Numbers) -> Bounded | None:
    if np.isnan(value[0]):
        return None
    low, high = (float(bound) for bound in np.nanquantile(drawn, [0.025, 0.975]))
    return Bounded(float(value[0]), min(low, float(value[0])), max(high, float(value[0])))
