"""The ladder on 200 spans of real revisions that were judged by reading the old and the new text.

``judged_spans.jsonl`` holds places and hashes, no texts. Drawn at random within each rung (seed 5), so that hard cases
are many: 75 from rungs where likeness or layout decides. ``same``: the new place says the same; ``changed``: it is what
became of the span; ``gone``: nothing is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.kb.normalise import normalise
from ragds_pipeline.records import AnchorEvent
from ragds_pipeline.spans.occurrences import find_everywhere
from ragds_pipeline_tests.anchors.revisions import check_place, revision
from ragds_pipeline_tests.shared_data import shared_data

JUDGED = Path(__file__).with_name("judged_spans.jsonl")
Judged = dict[str, Any]


def documents(data: str, name: str) -> Mapping[str, str]:
    if data == "openapi":
        file = shared_data(f"openapi-spec-versions/versions/{name}.md")
        return {"specification.md": normalise(file.read_text(encoding="utf-8"))}
    folder = shared_data(f"18f-handbook/{name}")
    return {
        path.relative_to(folder).as_posix(): normalise(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.md"))
    }


def spans(rows: list[Judged], texts: Mapping[str, str]) -> Iterator[AnchoredSpan]:
    contents = [texts[row["path"]][row["start"] : row["end"]] for row in rows]
    everywhere = find_everywhere(contents, texts.items())
    for at, (row, content, places) in enumerate(zip(rows, contents, everywhere, strict=True)):
        assert hashlib.sha256(content.encode()).hexdigest()[:12] == row["sha"], f"another text at {row}"
        others = tuple(
            place
            for place in places
            if not (
                place.document_path == row["path"] and place.start_char < row["end"] and row["start"] < place.end_char
            )
        )
        yield AnchoredSpan(f"g-{at:04}", 0, True, row["path"], row["start"], row["end"], content, others)


@cache
def judged() -> list[tuple[Judged, AnchorEvent]]:
    rows = [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]
    pair = itemgetter("data", "old", "new")
    found: list[tuple[Judged, AnchorEvent]] = []
    for (data, old, new), group in groupby(sorted(rows, key=pair), key=pair):
        before, after, of_pair = documents(data, old), documents(data, new), list(group)
        events = reanchor(spans(of_pair, before), revision(old, before), revision(new, after))
        for event in events:
            check_place(event, after)
        found += zip(of_pair, events, strict=True)
    assert len(found) == 200
    return found


def is_right(row: Judged, event: AnchorEvent) -> bool:
    if row["verdict"] == "gone" or event.new_document_path != row["new_path"]:
        return False
    shared = min(event.new_end_char, row["new_end"]) - max(event.new_start_char, row["new_start"])
    whole = max(event.new_end_char, row["new_end"]) - min(event.new_start_char, row["new_start"])
    return bool(shared > 0.5 * whole)


def test_what_carries_is_at_its_place_and_says_the_same() -> None:
    carried = [(row, event) for row, event in judged() if event.carries]
    assert len(carried) >= 85
    assert [row for row, event in carried if row["verdict"] != "same" or not is_right(row, event)] == []


def test_words_that_still_stand_are_found() -> None:
    same = [is_right(row, event) for row, event in judged() if row["verdict"] == "same"]
    assert sum(same) >= 0.99 * len(same), f"{sum(same)} of {len(same)}"


def test_what_was_edited_is_proposed() -> None:
    changed = [is_right(row, event) for row, event in judged() if row["verdict"] == "changed"]
    assert sum(changed) >= 0.95 * len(changed), f"{sum(changed)} of {len(changed)}"


def test_what_is_gone_is_mostly_said_to_be_lost() -> None:
    lost = [event.rung == "lost" for row, event in judged() if row["verdict"] == "gone"]
    assert sum(lost) >= 0.6 * len(lost), f"{sum(lost)} of {len(lost)}"
