"""Judging a table a part at a time: the same verdicts as all at once, and an item that was dropped is not sent on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragds_pipeline.claude import Claude
from ragds_pipeline.config import Settings
from ragds_pipeline.filters import in_parts
from ragds_pipeline.filters.claude_filter import judge_all
from ragds_pipeline.filters.in_parts import BATCH_PART, PART, Tally, apply_in_parts, part_size, verdicts_in_parts
from ragds_pipeline.filters.judges import JUDGES, SUPPORT, Judge
from ragds_pipeline.records import Candidate, Verdict
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline_tests.filters.test_judges import candidates, which
from ragds_pipeline_tests.loopback import LoopbackServer


def choosy(body: dict[str, Any]) -> Any:
    """Judge by what is shown: team 1 is ambiguous, team 4 known without the document, team 7 not supported."""
    text, name = json.dumps(body["messages"]), which(body)
    if name == "answer":
        return {"known": "team 4" in text, "answer": "24 days"}
    wrong = {"ambiguity": "team 1?", "support": "team 7?", "class": "team 9?"}
    verdict = "correct" if name == "closed_book" or wrong[name] not in text else "incorrect"
    return {"reason": f"{name} of {text[-40:]}", "verdict": verdict, **({"needless": []} if name == "support" else {})}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    with LoopbackServer(responder=choosy) as running:
        yield running


def configured(root: Path, url: str | None, **judges: Any) -> Settings:
    enabled = [judge.name for judge in JUDGES]
    filters = {"judges": {"enabled": enabled, **judges}}
    return Settings.model_validate({"claude": {"base_url": url}, "filters": filters, "root": root})


@pytest.mark.parametrize("size", [4, 10, 11])
def test_parts_come_to_the_same_verdicts(
    tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    settings = configured(tmp_path, server.url)
    claude = Claude(settings)
    whole = judge_all(candidates(10), claude, settings)
    calls = server.calls
    monkeypatch.setattr(in_parts, "PART", size)
    table = to_table(Candidate, candidates(10))
    tables: dict[Judge, pa.Table] = {}
    told: list[str] = []
    for judge in JUDGES:
        tally = Tally()
        tables[judge] = verdicts_in_parts(judge, table, tables, claude, settings, tally, told.append)
        assert tally.asked == tables[judge].num_rows and tally.passed == sum(tables[judge]["passed"].to_pylist())
    claude.close()
    found = [verdict for judge in JUDGES for verdict in to_records(Verdict, tables[judge])]
    assert found == whole.verdicts
    assert server.calls == calls  # the same requests, so that nothing is asked twice
    applied = apply_in_parts(table, tables, settings)
    assert (applied.candidates, applied.drops) == (whole.candidates, whole.drops)
    assert to_records(Verdict, applied.verdicts) == whole.verdicts
    parts = -(-10 // size)
    assert len(told) == (len(JUDGES) * parts if parts > 1 else 0)


def test_nothing_to_judge_is_an_empty_table(tmp_path: Path, server: LoopbackServer) -> None:
    settings = configured(tmp_path, server.url)
    claude = Claude(settings)
    found = verdicts_in_parts(SUPPORT, to_table(Candidate, []), {}, claude, settings, Tally())
    claude.close()
    assert not apply_in_parts(to_table(Candidate, []), {SUPPORT: found}, settings).verdicts.num_rows
    assert found.schema == to_table(Verdict, []).schema and found.num_rows == 0 and isinstance(found, pa.Table)


def test_parts_are_larger_where_they_go_as_batches(tmp_path: Path) -> None:
    ours = configured(tmp_path, None, batch_above=200)
    assert part_size(200, ours) == PART and part_size(201, ours) == BATCH_PART
    assert part_size(50_000, configured(tmp_path, "http://127.0.0.1:1")) == PART
    always = Settings.model_validate({"claude": {"backend": "batch"}})
    assert part_size(1, always) == BATCH_PART


def test_only_some_examples_are_kept(tmp_path: Path) -> None:
    tally, found = Tally(), candidates(2) * 30
    tally.add(found, [Verdict(c.id, "support", False, "not_supported", "r") for c in found])
    assert (tally.asked, tally.passed, len(tally.examples)) == (60, 0, in_parts.EXAMPLES)
