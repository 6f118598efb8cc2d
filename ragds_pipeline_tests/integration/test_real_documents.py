"""The whole pipeline on real documents, the model answered by a loopback server: no crash, every offset exact."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragds_pipeline.golden.snapshot import read_items, verify
from ragds_pipeline.records import Candidate, Document, Draft, FunnelStep, MissingRow, Passage, Span
from ragds_pipeline_tests.answering import answer_questions
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.projects import ProjectRun, project
from ragds_pipeline_tests.shared_data import shared_data


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    with LoopbackServer(responder=answer_questions) as running:
        yield running


@pytest.mark.parametrize(
    ("folder", "questions", "candidates"),
    [
        ("18f-handbook/rev-2023-12-01", 240, {"unit": "document"}),
        ("srd-5.2.1-datapizza/docs", 120, {"unit": "passage", "evidence_form": "quotes", "questions_per_request": 2}),
    ],
)
def test_a_real_kb_from_documents_to_golden_set(
    tmp_path: Path, server: LoopbackServer, folder: str, questions: int, candidates: dict[str, object]
) -> None:
    structured = candidates["unit"] == "document"
    with project(
        tmp_path,
        shared_data(folder),
        plan={"questions": questions, "top_up_rounds": 1},
        candidates=candidates,
        claude={"base_url": server.url, "budget_usd": 500, "structured_outputs": structured, "concurrency": 16},
    ) as run:
        run.must()
        assert not server.problems
        _offsets_are_exact(run)
        run.answer()
        run.must("freeze_job")
        _set_is_sound(run, questions)
        before = server.calls
        run.must()
        assert server.calls == before, "nothing that is in the ledger is asked again"


def _offsets_are_exact(run: ProjectRun) -> None:
    texts = {d.path: d.text for d in run.table("kb_documents").records(Document)}
    covered = dict.fromkeys(texts, 0)
    for passage in run.table("kb_passages").records(Passage):
        assert passage.start_char == covered[passage.document_path]
        assert texts[passage.document_path][passage.start_char : passage.end_char] == passage.content
        covered[passage.document_path] = passage.end_char
    assert covered == {path: len(text) for path, text in texts.items()}
    found = run.rows("candidates", Candidate)
    assert found
    for candidate in found:
        for evidence in candidate.evidence:
            evidence.span.verify(texts[evidence.document_path])
            for place in evidence.alternatives:
                there = texts[place.document_path][place.start_char : place.end_char]
                assert "".join(there.split()) == "".join(evidence.content.split())


def _set_is_sound(run: ProjectRun, questions: int) -> None:
    steps = run.rows("funnel", FunnelStep)
    assert [step.stage for step in steps] == ["generate", "code", "review", "freeze"]
    assert not [fault for step in steps for fault in step.faults()]
    delivered = len(run.rows("candidates", Candidate))
    assert delivered + sum(row.missing for row in run.rows("missing_questions", MissingRow)) == questions
    items = read_items(run.snapshots()[-1])
    assert len(items) == steps[-1].kept > 0
    assert {item.split for item in items} == {"tuning", "held_out"}
    folder = run.snapshots()[-1]
    verify(folder)
    documents = {d["document_path"]: d["file"] for d in json.loads((folder / "manifest.json").read_text())["documents"]}
    for item in items:
        for passage in item.passages:
            text = (folder / documents[passage.document_path]).read_text(encoding="utf-8")
            Span(passage.document_path, passage.start_char, passage.end_char, passage.content).verify(text)
    assert run.rows("drafts", Draft)
