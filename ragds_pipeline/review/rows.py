"""What a reviewer is shown of one candidate, and how several evidence spans share one cell.

What belongs here: the row, the order of the columns, the join of spans. What does not: anything about files,
spreadsheets or characters that they damage (``cells``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

COLUMNS = ("id", "chunk_id", "type", "question", "answer", "evidence", "keep", "note", "context", "judges")
"""The columns of the sheet in their order. What is only read comes last, so that the first eight fit on a screen."""

FOR_READING = ("context", "judges")
"""Columns that nobody writes into and that are not read back; a sheet without them is as good."""

RECHECK_COLUMNS = (
    "id",
    "golden_id",
    "question",
    "answer",
    "old evidence",
    "evidence",
    "changes",
    "keep",
    "note",
    "context",
)
"""The columns of the recheck sheet: old and new evidence side by side, and what changed between them."""

EDITABLE = ("question", "answer", "evidence", "keep", "note")
"""The columns a reviewer may write into; the others are locked in the XLSX and checked on import."""

SEPARATOR = "[...]"
"""Stands alone on a line between two spans. ASCII, so that a save as cp932 or cp1252 cannot destroy it."""

# A line that would be read as the separator. Office programs turn three dots into one ellipsis character as
# somebody types: that form counts too.
_SEPARATOR_LINE = r"[^\S\n]*\[(?:\.\.\.|…)\][^\S\n]*$"
_PLAIN = re.compile(rf"^{_SEPARATOR_LINE}", re.MULTILINE)
_TO_ESCAPE = re.compile(rf"^(?=\\*{_SEPARATOR_LINE})", re.MULTILINE)
_ESCAPED = re.compile(rf"^\\(?=\\*{_SEPARATOR_LINE})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """One candidate as shown to a reviewer."""

    id: str
    chunk_id: str
    type: str
    question: str
    answer: str
    evidence: tuple[str, ...]
    context: str
    """The text around the evidence: shown for reading, never read back."""
    golden_id: str = ""
    """On a recheck sheet: the id of the frozen item that it stands for."""
    old_evidence: str = ""
    """On a recheck sheet: the evidence as it was frozen."""
    changes: str = ""
    """On a recheck sheet: what changed, and the changes in words."""
    judges: str = ""
    """Where the votes of a judge were split: the question it was asked, and a reason for each side."""


def join_spans(spans: Sequence[str]) -> str:
    """Return the text of one cell that holds all ``spans``, a line ``[...]`` between each two.

    A line inside a span that looks like the separator gets a backslash in front, so :func:`split_spans` gives
    back exactly the spans, whatever they contain. Empty spans prove nothing and are left out.
    """
    return f"\n{SEPARATOR}\n".join(_TO_ESCAPE.sub(r"\\", span) for span in spans if span)


def split_spans(text: str) -> tuple[str, ...]:
    """Return the spans in the text of an evidence cell; the inverse of :func:`join_spans`."""
    spans = []
    start = 0
    for separator in _PLAIN.finditer(text):
        spans.append(text[start : max(start, separator.start() - 1)])
        start = separator.end() + 1
    spans.append(text[start:])
    return tuple(_ESCAPED.sub("", span) for span in spans if span)
