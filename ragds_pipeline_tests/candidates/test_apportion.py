"""Counts that add up exactly, whatever the shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.candidates.apportion import largest_remainder, two_way, with_capacity

WEIGHTS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2), st.floats(0, 1000, allow_nan=False), min_size=1, max_size=9
).filter(lambda weights: sum(weights.values()) > 0)


@given(st.integers(0, 500), WEIGHTS)
def test_the_total_asked_for_is_the_total_given(total: int, weights: dict[str, float]) -> None:
    counts = largest_remainder(total, weights)
    assert sum(counts.values()) == total
    whole = sum(weights.values())
    for key, count in counts.items():
        assert abs(count - total * weights[key] / whole) < 1 + 1e-6


def test_five_questions_over_three_types_are_five() -> None:
    # Ragas 0.4.3 rounds each share up and plans 6.
    assert largest_remainder(5, {"a": 0.5, "b": 0.25, "c": 0.25}) == {"a": 3, "b": 1, "c": 1}


def test_nothing_to_divide_by_is_an_error() -> None:
    with pytest.raises(ValueError, match="no weight"):
        largest_remainder(3, {"a": 0.0})
    assert largest_remainder(0, {"a": 0.0}) == {"a": 0}


@given(st.integers(0, 200), WEIGHTS, st.data())
def test_no_key_gets_more_than_its_capacity(total: int, weights: dict[str, float], data: st.DataObject) -> None:
    capacity = {key: data.draw(st.integers(0, 60)) for key in weights}
    counts = with_capacity(total, weights, capacity)
    assert all(counts[key] <= capacity[key] for key in counts)
    usable = sum(capacity[key] for key, weight in weights.items() if weight > 0)
    assert sum(counts.values()) == min(total, usable)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), WEIGHTS)
def test_rows_and_columns_of_the_table_are_exact(rows: list[int], weights: dict[str, float]) -> None:
    columns = largest_remainder(sum(rows), weights)
    table = two_way(list(enumerate(rows)), columns)
    for (_, cells), wanted in zip(table, rows, strict=True):
        assert sum(cells.values()) == wanted
        assert all(count >= 0 for count in cells.values())
    for column, wanted in columns.items():
        assert sum(cells[column] for _, cells in table) == wanted


def test_totals_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="differ"):
        two_way([("a", 2)], {"x": 3})
