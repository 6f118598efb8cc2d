"""The estimate over all items: against full review, and against a simulation with a known truth."""

from __future__ import annotations

import numpy as np
import pytest

from ragds_pipeline.calibration.selection import Stratum, expected
from ragds_pipeline.filters.calibration import Table, kappa


def test_with_everything_labelled_it_is_plain_kappa() -> None:
    found = expected([Stratum(True, 40, 35, 5), Stratum(False, 20, 4, 16)])
    assert found.kappa is not None and found.kappa.value == pytest.approx(kappa(Table(35, 4, 5, 16)))
    assert found.agreement is not None and found.agreement.value == pytest.approx(51 / 60)
    assert found.recall_correct is not None and found.recall_correct.value == pytest.approx(35 / 39)
    assert found.recall_incorrect is not None and found.recall_incorrect.value == pytest.approx(16 / 21)
    assert found.kappa.low < found.kappa.value < found.kappa.high


def test_a_share_of_the_drops_gives_nearly_the_kappa_of_all_where_the_raw_one_does_not() -> None:
    random = np.random.RandomState(7)
    kept, dropped = random.random(900) < 0.95, random.random(600) < 0.15
    truth = kappa(Table(int(kept.sum()), int(dropped.sum()), int((~kept).sum()), int((~dropped).sum())))
    seen = dropped[random.random(600) < 0.1]
    raw = kappa(Table(int(kept.sum()), int(seen.sum()), int((~kept).sum()), int((~seen).sum())))
    strata = [Stratum(True, 900, int(kept.sum()), int((~kept).sum()))]
    found = expected([*strata, Stratum(False, 600, int(seen.sum()), int((~seen).sum()))]).kappa
    assert truth is not None and raw is not None and found is not None
    assert abs(found.value - truth) < 0.06 < abs(raw - truth)
    assert found.low <= truth <= found.high


def test_nothing_is_said_without_a_label_of_a_verdict_that_was_given() -> None:
    assert expected([Stratum(True, 40, 35, 5), Stratum(False, 20, 0, 0)]).kappa is None
    assert expected([]).kappa is None
    only_passed = expected([Stratum(True, 40, 35, 5)])
    assert only_passed.agreement is not None and only_passed.recall_incorrect is not None
    assert only_passed.recall_incorrect.value == 0 and only_passed.kappa is not None and only_passed.kappa.value == 0


def test_a_stratum_without_labels_is_taken_to_be_like_the_others_of_its_verdict() -> None:
    split = expected([Stratum(True, 30, 27, 3), Stratum(True, 10, 0, 0), Stratum(False, 5, 1, 4)])
    assert split == expected([Stratum(True, 40, 27, 3), Stratum(False, 5, 1, 4)])


def test_the_same_labels_give_the_same_figures() -> None:
    strata = [Stratum(True, 40, 30, 4), Stratum(False, 20, 1, 3)]
    assert expected(strata) == expected(strata)
