"""What a span that was found again is frozen with: the words around it and the passage that holds it now.

Read off the tables a row group at a time. Spans may stand in every document of a large KB; to have all those texts
and passages in memory at once is what this spares.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ragds_pipeline.records import AnchorEvent
from ragds_pipeline.spans.locate import context
from ragds_pipeline.storage.tables import TableFile

Span = tuple[str, int]
"""Item and position among its spans."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What stands around a span in the new documents."""

    content: str
    prefix: str
    suffix: str
    chunk_id: str


Places = Mapping[Span, Placed]


def placed(events: Iterable[AnchorEvent], documents: TableFile, passages: TableFile) -> dict[Span, Placed]:
    """Return what stands around each span of ``events`` that stands, or is thought to, in one of ``documents``.

    ``documents`` and ``passages`` are the tables of the new revision. A span without a place is left out.
    """
    by_path: dict[str, list[AnchorEvent]] = {}
    for event in events:
        if event.new_document_path and event.new_start_char >= 0:
            by_path.setdefault(event.new_document_path, []).append(event)
    if not by_path:
        return {}
    wanted = pa.array(sorted(by_path), pa.string())
    cut = _cut(passages, wanted)
    found: dict[Span, Placed] = {}
    for batch in documents.batches(["path", "text"]):
        there = batch.filter(pc.is_in(batch.column("path"), wanted))
        for path, text in zip(there.column("path"), there.column("text"), strict=True):
            name, words = path.as_py(), text.as_py()
            starts, ids = cut[name]
            for event in by_path[name]:
                start, end = event.new_start_char, event.new_end_char
                chunk = ids[bisect_right(starts, start) - 1]
                around = context(words, start, end)
                found[event.item_id, event.span_index] = Placed(words[start:end], *around, chunk)
    return found


def _cut(passages: TableFile, wanted: pa.Array) -> dict[str, tuple[list[int], list[str]]]:
    """Return where the passages of the wanted documents begin and what their ids are: they leave no gap."""
    cut: dict[str, tuple[list[int], list[str]]] = {}
    columns = ["document_path", "start_char", "id"]
    for batch in passages.batches(columns):
        there = batch.filter(pc.is_in(batch.column("document_path"), wanted))
        for path, start, id_ in zip(*(there.column(name).to_pylist() for name in columns), strict=True):
            starts, ids = cut.setdefault(path, ([], []))
            starts.append(start)
            ids.append(id_)
    return cut
