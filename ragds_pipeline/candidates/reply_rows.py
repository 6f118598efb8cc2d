"""The parts of a reply that holds questions: its rows, and the fields of a row, or the reason why one is unusable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ragds_pipeline.records import canonical_json, printable


class Unusable(Exception):
    """A row, or a field of it, is not what was asked for; carries the reason code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def holds_questions(value: Any) -> bool:
    """Return whether a JSON value has the shape of a reply with questions."""
    if isinstance(value, dict):
        return isinstance(value.get("questions"), list | dict) or "question" in value
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def rows_of(value: Any) -> list[Any]:
    """Return the rows of a value that holds questions."""
    if isinstance(value, dict) and "questions" in value:
        value = value["questions"]
    return value if isinstance(value, list) else [value]


def text_of(value: Any, reason: str) -> str:
    """Return the text of a field; an object around a single text is that text."""
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    if isinstance(value, str) and value.strip():
        if printable(value) != value:
            raise Unusable("text_broken", f"half a character in {printable(value)[:80]}")
        return value.strip()
    raise Unusable(reason, f"found {canonical_json(value)[:80]}")


def listed(value: Any) -> list[Any]:
    """Return the items of a field that holds a list, or a single one."""
    return value if isinstance(value, list) else [value] if value not in (None, "", {}) else []


_RANGE = re.compile(r"\[?\s*(\d{1,6})\s*\]?(?:\s*(?:-|–|to)\s*\[?\s*(\d{1,6})\s*\]?)?")


def numbers_of(items: Iterable[Any]) -> list[int]:
    """Return the sentence numbers in ``7``, ``7.0``, ``"7"``, ``"[7]"`` or ``"7-9"``."""
    return [number for item in items for number in _numbers(item)]


def _numbers(item: Any) -> Iterator[int]:
    if isinstance(item, bool):
        raise Unusable("sentence_unknown", f"found {item}")
    if isinstance(item, int) or (isinstance(item, float) and item.is_integer()):
        yield int(item)
        return
    match = _RANGE.fullmatch(item.strip()) if isinstance(item, str) else None
    if match is None:
        raise Unusable("sentence_unknown", f"found {canonical_json(item)[:80]}")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first or last - first > 200:
        raise Unusable("sentence_unknown", f"found {item!r}")
    yield from range(first, last + 1)
