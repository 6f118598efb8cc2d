"""Sides of the split: by groups that share evidence, never changed, never leaking."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.golden.split import assign, overlapping
from ragds_pipeline.records import Candidate, Evidence


def candidate(id_: str, *spans: tuple[str, int, int]) -> Candidate:
    evidence = tuple(
        Evidence(path, start, end, "x" * (end - start), f"{path}#1", "", "", True, "exact")
        for path, start, end in spans
    )
    return Candidate(
        id=id_, draft_id="d", document_path=spans[0][0], chunk_id="c", question=f"q {id_}", answer="a", type="fact",
        difficulty="easy", hops="single", language="en", source_version="v", evidence=evidence, origin="generated",
        parent_id="", round=0, request_key="", model="", prompt_version="",
    )  # fmt: skip


SPANS = st.lists(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(1, 12)).map(
            lambda t: (t[0], t[1], t[1] + t[2])
        ),
        min_size=1,
        max_size=3,
    ),
    max_size=14,
)


@given(SPANS)
def test_overlaps_are_those_of_a_brute_force_search(items: list[list[tuple[str, int, int]]]) -> None:
    expected = [
        (a, b)
        for a in range(len(items))
        for b in range(a + 1, len(items))
        if any(p == q and s < f and t < e for p, s, e in items[a] for q, t, f in items[b])
    ]
    assert overlapping(items) == expected


@given(SPANS, st.sets(st.integers(0, 13)), st.integers(0, 3))
def test_no_evidence_is_on_both_sides_and_frozen_sides_stay(
    items: list[list[tuple[str, int, int]]], frozen: set[int], seed: int
) -> None:
    candidates = [candidate(f"c{at:02d}", *spans) for at, spans in enumerate(items)]
    first, _ = assign([c for at, c in enumerate(candidates) if at in frozen], {}, 0.4, seed)
    splits, conflicts = assign(candidates, first, 0.4, seed)
    assert splits.keys() | conflicts.keys() == {c.id for c in candidates}
    assert not splits.keys() & conflicts.keys()
    for id_, side in first.items():
        assert splits[id_] == side
    for a, b in overlapping(items):
        one, other = candidates[a].id, candidates[b].id
        if one in splits and other in splits:
            assert splits[one] == splits[other]


def test_the_share_is_kept_where_groups_allow_it() -> None:
    candidates = [candidate(f"c{n}", ("a", n * 10, n * 10 + 5)) for n in range(40)]
    splits, _ = assign(candidates, {}, 0.3, 7)
    assert sum(side == "held_out" for side in splits.values()) == 12
    assert assign(candidates, {}, 0.3, 7) == (splits, {})
    assert assign(candidates, {}, 0.3, 8)[0] != splits


def test_an_item_between_the_sides_fits_on_neither() -> None:
    one, other = candidate("c1", ("a", 0, 10)), candidate("c2", ("a", 20, 30))
    between = candidate("c3", ("a", 5, 25))
    splits, conflicts = assign([one, other, between], {"c1": "tuning", "c2": "held_out"}, 0.5, 1)
    assert splits == {"c1": "tuning", "c2": "held_out"} and list(conflicts) == ["c3"]


def test_questions_that_are_linked_stand_on_one_side() -> None:
    candidates = [candidate(f"c{n}", ("a", n * 10, n * 10 + 5)) for n in range(10)]
    links = [(0, 9), (9, 4)]
    for seed in range(20):
        splits, conflicts = assign(candidates, {}, 0.5, seed, links)
        assert not conflicts and splits["c0"] == splits["c9"] == splits["c4"]


def test_of_two_frozen_items_that_come_together_the_later_one_is_a_conflict() -> None:
    first, second = candidate("c1", ("a", 0, 10)), candidate("c2", ("a", 20, 30), ("a", 0, 10))
    fixed = {"c1": "held_out", "c2": "tuning"}
    splits, conflicts = assign([first, second], fixed, 0.5, 1)
    assert splits == {"c1": "held_out"} and conflicts == {
        "c2": "shares evidence or wording with c1 (held_out) but is tuning itself"
    }


def test_evidence_that_was_frozen_once_binds_what_is_new() -> None:
    new = candidate("c1", ("a", 0, 10))
    for side in ("tuning", "held_out"):
        assert assign([new], {}, 0.5, 1, bound={"c1": {side: "g-0001"}}) == ({"c1": side}, {})
    splits, conflicts = assign([new], {}, 0.5, 1, bound={"c1": {"tuning": "g-0001", "held_out": "g-0002"}})
    assert not splits and "g-0001 (tuning)" in conflicts["c1"] and "g-0002 (held_out)" in conflicts["c1"]
