"""Items are as good as their worst required span."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragds_pipeline.anchors.outcome import outcomes
from ragds_pipeline.records import AnchorEvent, ItemOutcome, Outcome, Rung
from ragds_pipeline.storage.schemas import schema_of, to_records, to_table
from ragds_pipeline_tests.anchors.revisions import step

TEXT = "# A\n\nThe form is sent within 90 days of the trip.\n"
EVENT = step(TEXT, TEXT, "The form is sent within 90 days of the trip.")


def event(rung: str, *, required: bool = True, index: int = 0, reason: str = "ok", marked: bool = False) -> AnchorEvent:
    numbered = replace(EVENT, rung=rung, required=required, span_index=index)
    return replace(numbered, reason=reason, carries=reason == "ok", section_changed=marked)


FINE, SAME = event(Rung.UNCHANGED), event(Rung.SAME_PLACE)
MOVED, EDITED = event(Rung.MOVED), event(Rung.EDITED, reason="meaning_changed")
LOST = event(Rung.LOST, reason="lost")


@pytest.mark.parametrize(
    ("events", "outcome", "reason"),
    [
        ([FINE, SAME], Outcome.CARRIED, "ok"),
        ([FINE, MOVED], Outcome.REANCHORED, "ok"),
        ([MOVED, EDITED, FINE], Outcome.TO_PEOPLE, "meaning_changed"),
        ([EDITED, LOST], Outcome.LOST, "lost"),
        ([event(Rung.MOVED, reason="ambiguous")], Outcome.TO_PEOPLE, "ambiguous"),
        ([event(Rung.REFORMATTED)], Outcome.REANCHORED, "ok"),
    ],
)
def test_the_worst_required_span_decides(events: list[AnchorEvent], outcome: str, reason: str) -> None:
    numbered = [replace(each, span_index=at) for at, each in enumerate(events)]
    for order in (numbered, numbered[::-1]):
        [found] = outcomes(order)
        assert (found.outcome, found.reason, found.removed_spans) == (outcome, reason, ())


def test_an_optional_span_that_is_lost_is_removed_and_named() -> None:
    optional = event(Rung.LOST, required=False, index=1, reason="lost")
    [found] = outcomes([FINE, optional])
    assert (found.outcome, found.removed_spans) == (Outcome.CARRIED, (1,))
    assert "optional span 1 removed" in found.detail


def test_an_item_of_optional_spans_only_is_judged_by_them() -> None:
    [found] = outcomes([event(Rung.LOST, required=False, reason="lost")])
    assert (found.outcome, found.removed_spans) == (Outcome.LOST, ())


def test_a_mark_on_a_required_span_marks_the_item() -> None:
    assert outcomes([FINE, event(Rung.MOVED, index=1, marked=True)])[0].section_changed
    assert not outcomes([FINE, event(Rung.MOVED, index=1, required=False, marked=True)])[0].section_changed


def test_items_are_told_apart_and_ordered() -> None:
    found = outcomes([replace(LOST, item_id="g-0002"), FINE])
    assert [(each.item_id, each.outcome) for each in found] == [("g-0001", "carried"), ("g-0002", "lost")]


def test_events_and_outcomes_are_tables() -> None:
    events = [FINE, EDITED]
    assert to_records(AnchorEvent, to_table(AnchorEvent, events)) == events
    items = outcomes(events)
    assert to_records(ItemOutcome, to_table(ItemOutcome, items)) == items
    assert schema_of(AnchorEvent).field("rung").metadata
