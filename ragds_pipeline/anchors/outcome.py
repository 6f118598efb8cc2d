"""What becomes of an item whose evidence was re-anchored: it is as good as its worst required span."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from ragds_pipeline.anchors.reasons import OK, REASONS
from ragds_pipeline.records import AnchorEvent, ItemOutcome, Outcome, Rung

_ORDER = (Outcome.CARRIED, Outcome.REANCHORED, Outcome.TO_PEOPLE, Outcome.LOST)
_IN_PLACE = (Rung.UNCHANGED, Rung.SAME_PLACE)


def outcomes(events: Iterable[AnchorEvent]) -> list[ItemOutcome]:
    """Return one outcome for each item, in the order of item ids.

    An item without any required span is judged by all its spans. Optional spans that do not carry are removed and
    named; they neither hold an item up nor lose it.
    """
    ordered = sorted(events, key=lambda event: (event.item_id, event.span_index))
    return [_outcome(item_id, list(group)) for item_id, group in groupby(ordered, key=attrgetter("item_id"))]


def span_outcome(event: AnchorEvent) -> Outcome:
    """Return what one span alone means for its item."""
    if event.rung == Rung.LOST:
        return Outcome.LOST
    if not event.carries:
        return Outcome.TO_PEOPLE
    return Outcome.CARRIED if event.rung in _IN_PLACE else Outcome.REANCHORED


def _outcome(item_id: str, events: Sequence[AnchorEvent]) -> ItemOutcome:
    deciding = [event for event in events if event.required] or events
    worst = max(deciding, key=lambda event: (_ORDER.index(span_outcome(event)), -event.span_index))
    removed = [event for event in events if event not in deciding and not event.carries]
    said = []
    if worst.reason != OK:
        said.append(f"span {worst.span_index}: {REASONS[worst.reason]}")
    said += [f"optional span {event.span_index} removed: {REASONS[event.reason]}" for event in removed]
    return ItemOutcome(
        item_id=item_id,
        outcome=span_outcome(worst),
        reason=worst.reason,
        detail="; ".join(said),
        from_version=worst.from_version,
        to_version=worst.to_version,
        removed_spans=tuple(event.span_index for event in removed),
        section_changed=any(event.section_changed for event in deciding),
    )
