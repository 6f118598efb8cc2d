"""Tuning and held-out: by groups of items that share evidence, once and for all.

Two items are in one group where any of their spans, alternatives included, overlap. A group is never divided, so that
what a system was tuned on says nothing about the questions it is tested with.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence

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
    candidates: Sequence[Candidate], fixed: Mapping[str, str], held_out_share: float, seed: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Return (split by candidate id, reason by candidate id of those that fit on no side).

    ``fixed`` are the splits of items that were frozen before; they never change. A new item that shares evidence with
    items of both sides fits on neither. New groups are taken in an order that depends on ``seed`` and on their content
    alone; each goes to the held-out side as long as that stays within its share of all items.
    """
    ids = [candidate.id for candidate in candidates]
    touching: dict[int, list[int]] = {at: [] for at in range(len(ids))}
    for one, other in overlapping([intervals(candidate) for candidate in candidates]):
        touching[one].append(other)
        touching[other].append(one)
    groups = _Groups(len(ids), {at: fixed[id_] for at, id_ in enumerate(ids) if id_ in fixed})
    conflicts: dict[str, str] = {}
    for at in sorted(range(len(ids)), key=lambda at: (ids[at] not in fixed, at)):
        neighbours = [other for other in touching[at] if ids[other] not in conflicts]
        sides = {side for other in [at, *neighbours] if (side := groups.side(other)) is not None}
        if len(sides) > 1 and ids[at] not in fixed:
            conflicts[ids[at]] = "shares evidence with tuning items and with held-out items"
            continue
        for other in neighbours:
            groups.join(at, other)
    splits = _fill([at for at in range(len(ids)) if ids[at] not in conflicts], ids, groups, held_out_share, seed)
    return splits, conflicts


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
