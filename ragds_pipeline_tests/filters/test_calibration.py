"""Calibration: published figures, brute-force twins, properties, and the coverage the interval of kappa really has."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from math import comb, isclose, sqrt
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragds_pipeline.filters.calibration import (
    SHOWN,
    Judged,
    Share,
    Table,
    as_markdown,
    calibrate,
    flip_rate,
    kappa,
    kappa_in_words,
    kappa_interval,
    pabak,
    statistics,
    wilson,
)

COUNTS = st.integers(0, 60)
TABLES = st.builds(Table, COUNTS, COUNTS, COUNTS, COUNTS)


def judged(
    name: str,
    expected: bool,
    got: bool | None,
    language: str = "en",
    source: Literal["probe", "person"] = "probe",
    reason: str = "",
) -> Judged:
    return Judged(name, language, expected, got, reason, source)


def rows(a: int, b: int, c: int, d: int, none: int = 0) -> list[Judged]:
    """Return items that make the table a, b, c, d, and ``none`` more without a verdict."""
    pairs: list[tuple[bool, bool | None]] = []
    for expected, got, count in ((True, True, a), (True, False, b), (False, True, c), (False, False, d)):
        pairs += [(expected, got)] * count
    pairs += [(True, None)] * none
    return [judged(f"i{i:04}", *pair) for i, pair in enumerate(pairs)]


# Published figures


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_in_newcombe_1998_table_1_method_3(hits: int, n: int, low: float, high: float) -> None:
    found = wilson(hits, n)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize(
    ("table", "published", "digits"),
    [
        (Table(40, 9, 6, 45), 0.70, 2),  # Feinstein & Cicchetti 1990: agreement 0.85, both verdicts frequent
        (Table(80, 10, 5, 5), 0.32, 2),  # the same paper: agreement 0.85 again, one verdict rare
        (Table(1467, 782, 1309, 16232), 0.524, 3),  # Gerstman, Epidemiology Kept Simple, example 10.1
        (Table(31, 12, 4, 58), 0.6756757, 7),  # statpsych::ci.kappa, its documented example
    ],
)
def test_kappa_as_published(table: Table, published: float, digits: int) -> None:
    assert round(kappa(table) or 0, digits) == published


def test_the_paradox_is_explained_where_it_occurs_and_only_there() -> None:
    rare = calibrate(rows(80, 10, 5, 5), 30)
    assert rare.pabak == pytest.approx(0.70)
    assert any("one verdict is rare" in note and "0.32" in note and "0.70 (PABAK)" in note for note in rare.notes)
    assert calibrate(rows(40, 9, 6, 45), 30).notes == ()


def fleiss_cohen_everitt(table: Table) -> tuple[float, float]:
    """Return the large-sample interval (1969, formula 13): the twin for many items, the warning for few."""
    n = sum(table.cells())
    a, b, c, d = (cell / n for cell in table.cells())
    first, second, estimate = a + b, a + c, kappa(table)
    assert estimate is not None
    chance, left = first * second + (1 - first) * (1 - second), 1 - estimate
    same = a * (1 - (first + second) * left) ** 2 + d * (1 - (2 - first - second) * left) ** 2
    other = left**2 * (b * (second + 1 - first) ** 2 + c * (first + 1 - second) ** 2)
    error = sqrt(max(0.0, same + other - (estimate - chance * left) ** 2) / n) / (1 - chance)
    return estimate - 1.959964 * error, estimate + 1.959964 * error


def test_the_large_sample_interval_is_the_published_one_and_ours_becomes_it_with_many_items() -> None:
    # statpsych::ci.kappa(.05, 31, 12, 4, 58)
    assert fleiss_cohen_everitt(Table(31, 12, 4, 58)) == pytest.approx((0.5317210, 0.8196303), abs=1e-6)
    many = Table(3100, 1200, 400, 5800)
    assert kappa_interval(many) == pytest.approx(fleiss_cohen_everitt(many), abs=1e-3)


def test_the_large_sample_interval_is_a_point_where_ours_stays_honest() -> None:
    perfect = Table(10, 0, 0, 10)
    assert fleiss_cohen_everitt(perfect) == pytest.approx((1.0, 1.0))
    low, high = kappa_interval(perfect) or (None, None)
    assert low == pytest.approx(0.66, abs=0.01)
    assert high == 1.0


# Brute-force twins


def kappa_by_pairing(table: Table) -> float | None:
    """Return kappa from its meaning: chance is every label paired with every verdict."""
    labels = [True] * (table.correct_correct + table.correct_incorrect)
    labels += [False] * (table.incorrect_correct + table.incorrect_incorrect)
    verdicts = [True] * table.correct_correct + [False] * table.correct_incorrect
    verdicts += [True] * table.incorrect_correct + [False] * table.incorrect_incorrect
    if not labels:
        return None
    observed = sum(x is y for x, y in zip(labels, verdicts, strict=True)) / len(labels)
    chance = sum(x is y for x, y in product(labels, verdicts)) / len(labels) ** 2
    return None if chance == 1 else (observed - chance) / (1 - chance)


@given(st.builds(Table, *[st.integers(0, 9)] * 4))
def test_kappa_equals_its_twin(table: Table) -> None:
    expected = kappa_by_pairing(table)
    assert kappa(table) == (None if expected is None else pytest.approx(expected, abs=1e-12))


@pytest.mark.parametrize("cells", [(31, 12, 4, 58), (19, 1, 2, 18), (36, 2, 1, 1), (20, 0, 0, 20), (38, 2, 0, 0)])
def test_the_interval_equals_its_twin_drawn_by_the_standard_library(cells: tuple[int, int, int, int]) -> None:
    drawn, chance = [], random.Random(7)
    for _ in range(20_000):
        a, b, c, d = (chance.gammavariate(cell + 0.5, 1) for cell in cells)
        n = a + b + c + d
        expected = ((a + b) * (a + c) + (c + d) * (b + d)) / n**2
        drawn.append(((a + d) / n - expected) / (1 - expected))
    drawn.sort()
    estimate = kappa(Table(*cells)) or 0.0
    low, high = min(drawn[500], estimate), max(drawn[19_500], estimate)
    assert kappa_interval(Table(*cells)) == pytest.approx((low, high), abs=0.02)


@given(st.integers(1, 200), st.data())
def test_wilson_bounds_are_where_the_score_test_turns(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    found = wilson(hits, n)
    assert found.value is not None and found.low is not None and found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    for bound in (found.low, found.high):
        if 0 < bound < 1:
            assert isclose(abs(found.value - bound) / sqrt(bound * (1 - bound) / n), 1.959964, rel_tol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.one_of(st.none(), st.booleans()), st.sampled_from(["en", "de", "ja"]))),
    st.integers(0, 12),
)
def test_every_count_equals_a_plain_count(items: list[tuple[bool, bool | None, str]], min_labels: int) -> None:
    found = calibrate([judged(f"{i}", e, g, lang) for i, (e, g, lang) in enumerate(items)], min_labels)
    pairs = [(e, g) for e, g, _ in items if g is not None]
    assert (found.n, found.without_verdict, found.labels) == (len(items), len(items) - len(pairs), len(pairs))
    assert (found.agreement.hits, found.agreement.n) == (sum(e is g for e, g in pairs), len(pairs))
    for verdict, precision, recall in (
        (True, found.precision_correct, found.recall_correct),
        (False, found.precision_incorrect, found.recall_incorrect),
    ):
        both = sum(e is verdict and g is verdict for e, g in pairs)
        assert (precision.hits, precision.n) == (both, sum(g is verdict for _, g in pairs))
        assert (recall.hits, recall.n) == (both, sum(e is verdict for e, _ in pairs))
    assert sum(each.n for _, each in found.by_language) == sum(each.n for _, each in found.by_source) == found.n
    assert [name for name, _ in found.by_language] == sorted({lang for _, _, lang in items})
    assert len(found.differing) == sum(e is not g for e, g in pairs)
    assert found.enough == (not found.why_not_enough)
    assert "nan" not in as_markdown(found) and "None" not in as_markdown(found)


# Properties


@given(TABLES)
def test_kappa_and_its_interval_lie_in_range_and_do_not_depend_on_names(table: Table) -> None:
    a, b, c, d = table.cells()
    found, interval = kappa(table), kappa_interval(table, draws=200)
    assert (found is None) == (interval is None)
    if found is not None and interval is not None:
        assert -1 <= interval[0] <= found <= interval[1] <= 1
        assert interval[0] < interval[1]
    for other in (Table(a, c, b, d), Table(d, c, b, a), Table(d, b, c, a)):  # raters, verdicts, both trade places
        assert kappa(other) == found
        assert kappa_interval(other, draws=200) == interval


@given(st.integers(1, 60), st.integers(1, 60))
def test_perfect_agreement_is_1_and_perfect_disagreement_negative(first: int, second: int) -> None:
    assert kappa(Table(first, 0, 0, second)) == 1
    assert (kappa(Table(0, first, second, 0)) or 0) < 0
    assert kappa(Table(0, first, first, 0)) == -1


@given(TABLES)
def test_pabak_is_twice_the_agreement_less_one(table: Table) -> None:
    found, n = pabak(table), sum(table.cells())
    assert found == (None if n == 0 else pytest.approx(2 * (table.correct_correct + table.incorrect_incorrect) / n - 1))


@settings(max_examples=15, deadline=None)
@given(st.permutations(rows(3, 2, 2, 3, none=2)))
def test_the_order_of_rows_does_not_matter(shuffled: list[Judged]) -> None:
    assert calibrate(shuffled, 5) == calibrate(rows(3, 2, 2, 3, none=2), 5)


def test_more_items_with_the_same_shares_narrow_the_interval() -> None:
    widths = [high - low for k in (1, 2, 4, 8) for low, high in [kappa_interval(Table(9 * k, k, k, 9 * k)) or (0, 0)]]
    assert widths == sorted(widths, reverse=True)


# Degenerate tables


def test_nothing_at_all() -> None:
    found = calibrate([], 30)
    nothing = Share(0, 0, None, None, None)
    assert (found.n, found.agreement, found.kappa, found.kappa_low, found.pabak) == (0, nothing, None, None, None)
    assert (found.by_language, found.by_source, found.differing, found.notes) == ((), (), (), ())
    assert found.why_not_enough == "0 labels; at least 30 of both verdicts are needed to say anything"
    assert "none to count" in as_markdown(found) and "undefined" in as_markdown(found)
    assert not calibrate([], 0).enough


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        ((1, 0, 0, 0), None),
        ((0, 0, 0, 1), None),
        ((40, 0, 0, 0), None),
        ((0, 1, 0, 0), 0.0),  # one item, two verdicts: chance never agrees, and neither do they
        ((38, 2, 0, 0), 0.0),  # all labels the same, the verdicts not: no better than chance
        ((38, 0, 2, 0), 0.0),  # a judge that passes everything
    ],
)
def test_one_sided_tables(cells: tuple[int, int, int, int], value: float | None) -> None:
    found = statistics(rows(*cells))
    assert found.kappa == value
    assert (found.kappa_low is None) == (found.kappa_high is None) == (value is None)
    assert found.agreement.value is not None
    assert kappa_in_words(found).startswith("undefined" if value is None else "0.00 (")


def test_an_undefined_kappa_is_explained() -> None:
    found = calibrate(rows(40, 0, 0, 0), 30)
    assert any("undefined" in note for note in found.notes)
    assert found.precision_incorrect.value is None and found.recall_incorrect.value is None
    assert found.why_not_enough == (
        "40 labels, 0 of them incorrect; at least 5 of each verdict are needed to say anything"
    )


def test_items_without_a_verdict_are_counted_and_left_out() -> None:
    found = calibrate(rows(20, 0, 0, 20, none=3), 30)
    assert (found.n, found.without_verdict, found.agreement.n, found.kappa, found.enough) == (43, 3, 40, 1, True)
    assert found.differing == ()
    assert any(note.startswith("3 of 43 got no verdict") for note in found.notes)
    assert not calibrate(rows(5, 0, 0, 0, none=40), 30).enough


# Enough, worst first, Markdown


@pytest.mark.parametrize(
    ("cells", "min_labels", "why"),
    [
        ((6, 0, 0, 6), 30, "12 labels; at least 30 of both verdicts are needed to say anything"),
        ((1, 0, 0, 0), 30, "1 label; at least 30 of both verdicts are needed to say anything"),
        ((15, 0, 0, 15), 30, ""),
        ((28, 8, 3, 1), 30, "40 labels, 4 of them incorrect; at least 5 of each verdict are needed to say anything"),
        ((2, 2, 18, 18), 30, "40 labels, 4 of them correct; at least 5 of each verdict are needed to say anything"),
        ((1, 0, 0, 1), 2, ""),
    ],
)
def test_enough_or_the_sentence_why_not(cells: tuple[int, int, int, int], min_labels: int, why: str) -> None:
    found = calibrate(rows(*cells), min_labels)
    assert (found.enough, found.why_not_enough) == (not why, why)
    assert (f"**{why}**" in as_markdown(found)) == bool(why)


def test_worst_first() -> None:
    found = calibrate(
        [
            judged("dropped-probe", True, False),
            judged("passed-probe-en", False, True),
            judged("right", True, True),
            judged("none", False, None),
            judged("dropped-person", True, False, source="person"),
            judged("passed-probe-de", False, True, "de"),
            judged("passed-person", False, True, "ja", source="person"),
        ],
        1,
    )
    assert [row.item_id for row in found.differing] == [
        *("passed-person", "passed-probe-de", "passed-probe-en"),
        *("dropped-person", "dropped-probe"),
    ]
    assert [(name, each.n) for name, each in found.by_language] == [("de", 1), ("en", 5), ("ja", 1)]
    assert [(name, each.n) for name, each in found.by_source] == [("person", 2), ("probe", 5)]


def test_an_item_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="item same is in the labels more than once"):
        calibrate([judged("same", True, True), judged("same", True, False, source="person")], 1)


def test_markdown_shows_the_figures_and_survives_any_reason() -> None:
    labels = [*rows(15, 1, 0, 16), judged("その件", False, True, "ja", "person", "a | b\nc \\ <b>\u3000それ")]
    shown = as_markdown(calibrate(labels, 30))
    assert "| all | 33 | 0 | 94 % (80 to 98 %), 31 of 33 | 0.88 (" in shown
    assert "| correct | 15 | 1 |\n| incorrect | 1 | 16 |" in shown
    assert "| その件 | ja | person | incorrect | correct | a \\| b c \\\\ &lt;b> それ |" in shown
    assert "| person | 1 |" in shown and "| probe | 32 |" in shown
    assert "No item differs." in as_markdown(calibrate(rows(15, 0, 0, 16), 30))
    assert "… and 7 more." in as_markdown(calibrate(rows(15, SHOWN, 7, 16), 30))


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([], None),
        ([[True], []], None),  # a single vote cannot flip
        ([[True, True, True]], 0.0),
        ([[True, True, False], [False, False, False], [True]], 0.5),
        ([[True, False], [False, True, True]], 1.0),
    ],
)
def test_flip_rate(votes: list[list[bool]], expected: float | None) -> None:
    assert flip_rate(votes) == expected


# Coverage: exact, every table that can occur weighted by its probability, rather than simulated


@cache
def interval_of(agree: tuple[int, int], differ: tuple[int, int]) -> tuple[float, float] | None:
    return kappa_interval(Table(agree[0], differ[0], differ[1], agree[1]), draws=2_000)


def covers(a: int, b: int, c: int, d: int, value: float) -> bool | None:
    found = interval_of((min(a, d), max(a, d)), (min(b, c), max(b, c)))
    return None if found is None else found[0] - 1e-9 <= value <= found[1] + 1e-9


@pytest.mark.parametrize("value", [0.0, 0.4, 0.6, 0.8, 0.9])
@pytest.mark.parametrize(("rare", "least"), [(0.5, 0.91), (0.3, 0.91), (0.15, 0.91), (0.05, 0.87)])
def test_coverage_when_items_are_drawn_at_random(value: float, rare: float, least: float) -> None:
    n, half = 20, value * rare * (1 - rare)
    chance = ((1 - rare) ** 2 + half, rare * (1 - rare) - half, rare * (1 - rare) - half, rare**2 + half)
    covered = total = 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            for c in range(n + 1 - a - b):
                d = n - a - b - c
                ways = comb(n, a) * comb(n - a, b) * comb(n - a - b, c)
                weight = ways * chance[0] ** a * chance[1] ** b * chance[2] ** c * chance[3] ** d
                if (hit := covers(a, b, c, d, value)) is not None:
                    total += weight
                    covered += weight * hit
    assert covered / total >= least


@pytest.mark.parametrize(("recall", "of_each"), list(product([0.5, 0.7, 0.8, 0.9, 0.95], [10, 20, 30])))
def test_coverage_on_a_probe_set_with_as_many_of_each_verdict(recall: float, of_each: int) -> None:
    chances = [comb(of_each, i) * recall**i * (1 - recall) ** (of_each - i) for i in range(of_each + 1)]
    covered = sum(
        first * second * bool(covers(i, of_each - i, of_each - j, j, 2 * recall - 1))
        for (i, first), (j, second) in product(enumerate(chances), repeat=2)
    )
    assert 0.91 <= covered <= 0.99
