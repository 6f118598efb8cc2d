"""Tuning and held-out: by groups of items that share evidence or wording, once and for all.

Two items are in one group where any of their spans, alternatives included, overlap, or where they ask nearly the same.
A group is never divided, so that what a system was tuned on says nothing about the questions it is tested with. Where
items that were frozen on different sides come together (a correction takes in the other's sentence, the KB now says
the same in both places), the one of lower precedence is dropped: nothing else would ever let the set be frozen again.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragds_pipeline.filters.duplicates import near_duplicates
from ragds_pipeline.records import Candidate, Split

Interval = tuple[str, int, int]


def intervals(candidate: Candidate) -> list[Interval]:
    """Return every place that the evidence of a candidate covers."""
    places = [(e.document_path, e.start_char, e.end_char) for e in candidate.evidence]
    places += [(p.document_path, p.start_char, p.end_char) for e in candidate.evidence for p in e.alternatives]
    return places


def overlapping(items: Sequence[Sequence[Interval]]) -> list[tuple[int, int]]:
    """Return the pairs of positions whose places overlap, each pair once, smaller position first."""
    flat = sorted((path, start, end, at) for at, places in enumerate(items) for path, start, end in places)
    starts = [(path, start) for path, start, _, _ in flat]
    pairs = set()
    for number, (path, _, end, at) in enumerate(flat):
        for other in flat[number + 1 : bisect_left(starts, (path, end))]:
            if other[3] != at:
                pairs.add((min(at, other[3]), max(at, other[3])))
    return sorted(pairs)


def assign(
    candidates: Sequence[Candidate],
    fixed: Mapping[str, str],
    held_out_share: float,
    seed: int,
    links: Iterable[tuple[int, int]] = (),
    bound: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return (split by candidate id, reason by candidate id of those that fit on no side).

    Args:
        candidates: In order of precedence, after those that are fixed: of two that cannot stand together, the later
            one fits on no side.
        fixed: Splits of items that were frozen before, by candidate id; they never change.
        held_out_share: Share of all items that new groups may fill.
        seed: New groups are taken in an order that depends on it and on their content alone.
        links: Further pairs of positions that belong on one side, such as questions that ask nearly the same.
        bound: For a candidate id, the sides on which its evidence stood in earlier snapshots, each with the id of an
            item that used it.
    """
    ids = [candidate.id for candidate in candidates]
    order = sorted(range(len(ids)), key=lambda at: (ids[at] not in fixed, at))
    turn = {at: number for number, at in enumerate(order)}
    together: dict[int, list[int]] = {at: [] for at in order}
    for pair in {*overlapping([intervals(candidate) for candidate in candidates]), *links}:
        earlier, later = sorted(pair, key=turn.__getitem__)
        together[later].append(earlier)
    groups = _Groups(len(ids), {at: fixed[id_] for at, id_ in enumerate(ids) if id_ in fixed})
    conflicts: dict[str, str] = {}
    for at, id_ in ((at, ids[at]) for at in order):
        placed = [other for other in sorted(together[at]) if ids[other] not in conflicts]
        sides = dict((bound or {}).get(id_, {}))
        sides |= {side: ids[other] for other in placed if (side := groups.side(other)) is not None}
        own = groups.side(at)
        if len({*sides, *([own] if own else [])}) > 1:
            others = ", ".join(f"{name} ({side})" for side, name in sorted(sides.items()) if side != own)
            conflicts[id_] = f"shares evidence or wording with {others}" + (f" but is {own} itself" if own else "")
            continue
        for side in sides:
            groups.bind(at, side)
        for other in placed:
            groups.join(at, other)
    splits = _fill([at for at in range(len(ids)) if ids[at] not in conflicts], ids, groups, held_out_share, seed)
    return splits, conflicts


def near_pairs(questions: Sequence[str], score: float) -> list[tuple[int, int]]:
    """Return the pairs of positions whose questions ask nearly the same."""
    return [(pair.first, pair.second) for pair in near_duplicates(questions, threshold=score)]


def leaks(splits: Sequence[str], places: Sequence[Sequence[Interval]], questions: Sequence[str], score: float) -> Leaks:
    """Return the pairs of positions on different sides that share evidence, and those that ask nearly the same."""
    return Leaks(
        [(one, other) for one, other in overlapping(places) if splits[one] != splits[other]],
        [(one, other) for one, other in near_pairs(questions, score) if splits[one] != splits[other]],
    )


@dataclass(frozen=True, slots=True)
class Leaks:
    """Pairs of positions that stand on different sides and must not."""

    by_evidence: list[tuple[int, int]]
    by_question: list[tuple[int, int]]


class _Groups:
    """Disjoint sets of positions, each with the side it is bound to, if any."""

    def __init__(self, size: int, sides: Mapping[int, str]) -> None:
        self._parent = list(range(size))
        self._side: dict[int, str | None] = {at: sides.get(at) for at in range(size)}

    def root(self, at: int) -> int:
        while self._parent[at] != at:
            self._parent[at] = self._parent[self._parent[at]]
            at = self._parent[at]
        return at

    def side(self, at: int) -> str | None:
        return self._side[self.root(at)]

    def bind(self, at: int, side: str) -> None:
        self._side[self.root(at)] = side

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.root(one), self.root(other)))
        sides = {side for side in (self._side[first], self._side[second]) if side is not None}
        if first == second or len(sides) > 1:
            return
        self._parent[second] = first
        self._side[first] = next(iter(sides), None)


def _fill(present: Sequence[int], ids: Sequence[str], groups: _Groups, share: float, seed: int) -> dict[str, str]:
    members: dict[int, list[int]] = {}
    for at in present:
        members.setdefault(groups.root(at), []).append(at)
    wanted = round(share * len(present))
    held_out = sum(len(m) for root, m in members.items() if groups.side(root) == Split.HELD_OUT)
    splits: dict[str, str] = {}

    def rank(root: int) -> str:
        first = min(ids[at] for at in members[root])
        return hashlib.sha256(f"{seed}:{first}".encode()).hexdigest()

    for root in sorted(members, key=rank):
        side = groups.side(root)
        if side is None:
            fits = held_out + len(members[root]) <= wanted
            side = str(Split.HELD_OUT if fits else Split.TUNING)
            held_out += len(members[root]) if fits else 0
        splits.update((ids[at], str(side)) for at in members[root])
    return splits
