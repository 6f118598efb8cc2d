"""The plan of a later revision: what came over counts, only new text is asked about, and nothing else costs a call."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.candidates.revision_plan import fresh_starts, is_first, open_plan, plan_revision
from ragds_pipeline.kb.changes import first_revision
from ragds_pipeline.records import Candidate, DocumentChange, PlanRow

TARGET = [
    PlanRow("a.md", "en", "easy", "single", "condition", 2),
    PlanRow("a.md", "en", "easy", "single", "fact", 3),
    PlanRow("b.md", "en", "easy", "single", "fact", 2),
]


def candidate(path: str, type_: str, number: int = 0) -> Candidate:
    return Candidate(
        f"c-{path}{type_}{number}", "", path, "", f"q{number}?", "a", type_, "easy", "single", "en", "v1", (), "", "",
        0, "", "", "",
    )  # fmt: skip


def change(path: str, status: str, fresh: int = 0) -> DocumentChange:
    return DocumentChange(path, status, "", tuple(range(0, fresh, 500)), fresh, "v1")


def test_a_first_revision_has_the_plan_as_it_is() -> None:
    changes = first_revision(["a.md", "b.md"])
    assert is_first(changes) and fresh_starts(changes) is None
    assert plan_revision(TARGET, [], changes, 600) == TARGET


def test_a_document_that_has_not_changed_is_settled() -> None:
    carried = [candidate("a.md", "fact"), candidate("b.md", "fact", 1)]
    plan = plan_revision(TARGET, carried, [change("a.md", "unchanged"), change("b.md", "renamed")], 600)
    assert [(row.document_path, row.type, row.planned) for row in plan] == [("a.md", "fact", 1), ("b.md", "fact", 1)]
    assert open_plan(plan, carried) == []


def test_a_changed_document_is_filled_up_as_far_as_its_new_text_carries() -> None:
    carried = [candidate("a.md", "fact"), candidate("a.md", "fact", 1), candidate("b.md", "fact")]
    changes = [change("a.md", "changed", 1300), change("b.md", "changed", 100)]
    plan = plan_revision(TARGET, carried, changes, 600)
    asked = {(row.document_path, row.type): row.planned for row in open_plan(plan, carried)}
    assert sum(count for (path, _), count in asked.items() if path == "a.md") == 2, (
        "1,300 characters carry two of three"
    )
    assert asked["b.md", "fact"] == 1, "a short change carries one"


def test_more_than_the_plan_may_come_over() -> None:
    carried = [candidate("b.md", "fact", n) for n in range(5)]
    plan = plan_revision(TARGET, carried, [change("a.md", "unchanged"), change("b.md", "changed", 5000)], 600)
    assert [(row.document_path, row.planned) for row in plan] == [("b.md", 5)]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["fact", "condition"])), max_size=12),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["fact", "condition"]), st.integers(1, 5)), max_size=6),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 4000), min_size=3),
)
def test_planned_is_never_below_what_came_over_nor_above_the_room(
    there: list[tuple[str, str]], wanted: list[tuple[str, str, int]], fresh: dict[str, int]
) -> None:
    carried = [candidate(path, type_, number) for number, (path, type_) in enumerate(there)]
    target = {(path, t): PlanRow(path, "en", "easy", "single", t, n) for path, t, n in wanted}
    changes = [change(path, "changed" if size else "unchanged", size) for path, size in fresh.items()]
    plan = plan_revision(list(target.values()), carried, changes, 600)
    planned = Counter({(row.document_path, row.type): row.planned for row in plan})
    counts = Counter((c.document_path, c.type) for c in carried)
    assert all(planned[kind] >= count for kind, count in counts.items())
    for path, size in fresh.items():
        asked = sum(row.planned for row in open_plan(plan, carried) if row.document_path == path)
        assert asked <= (max(1, size // 600) if size else 0)
