"""Shares to whole numbers whose sum is exactly what was asked for.

Rounding each share up delivers too many questions, rounding down too few (Ragas asks for 7 where 5 were wanted).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

K = TypeVar("K")


def largest_remainder(total: int, weights: Mapping[K, float | Fraction]) -> dict[K, int]:
    """Divide ``total`` among the keys in proportion to ``weights`` (Hamilton's method).

    Each key gets the whole part of its share; what is left goes to the largest fractions, ties to the earlier key.
    Raises ValueError where there is something to divide and no weight above zero.
    """
    exact = {key: Fraction(weight) for key, weight in weights.items()}
    whole = sum(exact.values(), Fraction(0))
    if any(weight < 0 for weight in exact.values()):
        raise ValueError("weights must not be negative")
    if whole == 0:
        if total:
            raise ValueError(f"{total} cannot be divided: no weight is above zero")
        return dict.fromkeys(weights, 0)
    shares = {key: total * weight / whole for key, weight in exact.items()}
    counts = {key: int(share) for key, share in shares.items()}
    order = {key: at for at, key in enumerate(shares)}
    rest = sorted(shares, key=lambda key: (counts[key] - shares[key], order[key]))
    for key in rest[: total - sum(counts.values())]:
        counts[key] += 1
    return counts


def with_capacity(total: int, weights: Mapping[K, float | Fraction], capacity: Mapping[K, int]) -> dict[K, int]:
    """Divide as :func:`largest_remainder` does, but give no key more than its capacity.

    What a full key cannot take is divided among the others. Where all are full the rest is left undivided, so the
    sum is ``min(total, sum of capacities)`` over the keys that have a weight.
    """
    counts: dict[K, int] = dict.fromkeys(weights, 0)
    open_keys = [key for key, weight in weights.items() if weight > 0 and capacity[key] > 0]
    left = total
    while left > 0 and open_keys:
        given = largest_remainder(left, {key: weights[key] for key in open_keys})
        for key, count in given.items():
            counts[key] += min(count, capacity[key] - counts[key])
        left = total - sum(counts.values())
        open_keys = [key for key in open_keys if counts[key] < capacity[key]]
    return counts


def two_way(rows: Sequence[tuple[K, int]], columns: Mapping[str, int]) -> list[tuple[K, dict[str, int]]]:
    """Fill a table whose row sums and column sums are given, keeping each row near the columns' proportions.

    Both sums of the result are exact: each row takes its count from what the columns still have to give, by largest
    remainder, and the last row takes what is left. Raises ValueError where the two totals differ.
    """
    left = dict(columns)
    if sum(count for _, count in rows) != sum(left.values()):
        raise ValueError("row and column totals differ")
    table = []
    for key, count in rows:
        taken = largest_remainder(count, left) if count else dict.fromkeys(left, 0)
        for column, number in taken.items():
            left[column] -= number
        table.append((key, taken))
    return table
