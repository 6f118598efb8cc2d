"""What one request shows of a document: as much of it as fits, in whole passages, or a single passage."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ragds_pipeline.candidates.apportion import largest_remainder
from ragds_pipeline.config import CandidateSettings
from ragds_pipeline.records import Passage

MIN_PASSAGE_CHARS = 150
"""Passages with less text are asked nothing on their own."""


@dataclass(frozen=True, slots=True)
class Window:
    """A run of passages ``[start_char, end_char)`` of one document that is shown in one request."""

    document_path: str
    start_char: int
    end_char: int

    @property
    def characters(self) -> int:
        """Length in characters."""
        return self.end_char - self.start_char


def windows(passages: Sequence[Passage], settings: CandidateSettings) -> list[Window]:
    """Cut one document's passages into windows of at most ``request_max_chars`` (one passage may be longer).

    Where ``passages`` leave out a part of the document, no window reaches across it.
    """
    if settings.unit == "passage":
        single = [Window(p.document_path, p.start_char, p.end_char) for p in passages]
        return [w for w in single if w.characters >= MIN_PASSAGE_CHARS] or single
    found: list[Window] = []
    for passage in passages:
        last = found[-1] if found else None
        joins = last is not None and passage.start_char == last.end_char
        if last is not None and joins and passage.end_char - last.start_char <= settings.request_max_chars:
            found[-1] = Window(last.document_path, last.start_char, passage.end_char)
        else:
            found.append(Window(passage.document_path, passage.start_char, passage.end_char))
    return found


def spread(questions: int, choices: Sequence[Window], turn: int = 0) -> list[tuple[Window, int]]:
    """Spread ``questions`` over a document's windows.

    With at least as many questions as windows each window gets its share by size. With fewer, windows at even
    distances are asked one question each; where they start depends on the document's path and on ``turn``, so that
    each top-up round looks at other windows.
    """
    if not choices or questions <= 0:
        return []
    if questions >= len(choices):
        counts = largest_remainder(questions, {at: window.characters for at, window in enumerate(choices)})
        return [(choices[at], count) for at, count in counts.items() if count]
    digest = hashlib.sha256(choices[0].document_path.encode()).digest()
    offset = (int.from_bytes(digest[:4], "big") + turn * 7919) % len(choices)
    picked = sorted((offset + at * len(choices) // questions) % len(choices) for at in range(questions))
    return [(choices[at], 1) for at in picked]
