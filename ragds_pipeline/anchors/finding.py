"""What the ladder says about one span, before it becomes an event."""

from __future__ import annotations

from dataclasses import dataclass

from ragds_pipeline.anchors.reasons import OK
from ragds_pipeline.records import Place


@dataclass(frozen=True, slots=True)
class AnchoredSpan:
    """One evidence span as it was frozen, with the item it belongs to."""

    item_id: str
    span_index: int
    required: bool
    document_path: str
    start_char: int
    end_char: int
    content: str
    alternatives: tuple[Place, ...] = ()
    """Every other place where the same words stood in the old revision."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Where a span stands now, or may stand."""

    rung: str
    reason: str = OK
    place: Place | None = None
    content: str = ""
    """The text at the place."""
    doubtful: tuple[Place, ...] = ()
    """Other places it may be; empty where the place is certain."""
    score: float = 1.0
    context_score: float = 1.0
    meaning_changes: tuple[str, ...] = ()
    word_diff: str = ""
    section_changed: bool = False
    detail: str = ""

    @property
    def carries(self) -> bool:
        """Whether the place takes over by itself."""
        return self.reason == OK and self.place is not None
