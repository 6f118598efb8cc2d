"""Coverage: every document is there, also those of which nothing is asked."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from ragds_pipeline.golden.coverage import by_document, by_language_and_type, coverage
from ragds_pipeline.records import Candidate, GoldenItem, PlanRow
from ragds_pipeline.storage.schemas import to_table
from ragds_pipeline_tests.golden.test_snapshot import candidates, items


def test_counts_are_those_of_plain_counting() -> None:
    documents = pa.table({"path": ["a.md", "rules.md"], "language": ["ja", "en"], "confidential": [True, False]})
    plan = [PlanRow("rules.md", "en", "easy", "single", kind, n) for kind, n in (("fact", 5), ("procedure", 2))]
    found, golden = candidates(1, 2, 3), items(1, 2)
    table = coverage(
        documents, to_table(PlanRow, plan), to_table(Candidate, found), to_table(GoldenItem, golden)
    ).to_pylist()
    held_out = Counter(item.split for item in golden)["held_out"]
    assert [
        (r["document_path"], r["type"], r["planned"], r["delivered"], r["frozen"], r["held_out"]) for r in table
    ] == [
        ("a.md", "", 0, 0, 0, 0),
        ("rules.md", "fact", 5, 3, 2, held_out),
        ("rules.md", "procedure", 2, 0, 0, 0),
    ]


def test_the_reports_hold_with_and_without_items() -> None:
    documents = pa.table({"path": ["rules.md"], "language": ["en"], "confidential": [False]})
    plan = to_table(PlanRow, [PlanRow("rules.md", "en", "easy", "single", "fact", 5)])
    full = coverage(documents, plan, to_table(Candidate, candidates(1)), to_table(GoldenItem, items(1)))
    assert by_language_and_type(full) == [
        {"language": "en", "fact": 1, "all": 1},
        {"language": "all", "fact": 1, "all": 1},
    ]
    (row,) = by_document(full)
    assert (row["document_path"], row["planned"], row["delivered"], row["frozen"]) == ("rules.md", 5, 1, 1)
    empty = coverage(documents, plan.slice(0, 0), to_table(Candidate, []), to_table(GoldenItem, []))
    assert by_language_and_type(empty) == [] and by_document(empty)[0]["planned"] == 0
