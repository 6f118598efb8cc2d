"""The whole pipeline on real documents, the model answered by a loopback server: no crash, every offset exact."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline.filters.judges import CLOSED_BOOK, JUDGES
from ragds_pipeline.golden.snapshot import NO_ANSWER, read_items, verify
from ragds_pipeline.records import Candidate, Document, Draft, Drop, FunnelStep, MissingRow, Passage, Span, Verdict
from ragds_pipeline_tests.answering import answer_questions
from ragds_pipeline_tests.costs.judging import answer_and_judge
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.no_answer import Model
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


MISSES = [
    f"Which {thing} does 18F use for {purpose}?"
    for thing in ("brand of office chair", "coffee supplier", "parking garage")
    for purpose in ("its staff in Chicago", "guests from abroad")
]


class Judged(Model):
    """Writes questions, judges them by a hash of what is shown, and finds no answer to the near misses."""

    def __call__(self, body: dict[str, Any]) -> Any:
        system = body["system"][0]["text"]
        if "near misses" in system or "does this document answer the question" in system:
            return super().__call__(body)
        return answer_and_judge(body)


def test_a_real_kb_through_all_judges_and_with_questions_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    judges = {"enabled": [judge.name for judge in JUDGES]}
    with (
        LoopbackServer(responder=Judged({"en": list(MISSES)})) as server,
        project(
            tmp_path,
            shared_data("18f-handbook/rev-2023-12-01"),
            plan={"questions": 36, "top_up_rounds": 1, "no_answer": len(MISSES)},
            filters={"judges": judges},
            claude={"base_url": server.url, "budget_usd": 500, "concurrency": 16},
        ) as run,
    ):
        run.must()
        assert not server.problems
        _offsets_are_exact(run)
        _judges_followed_one_another(run)
        run.answer()
        _answer_no_answer(run)
        run.must("freeze_job")
        _set_is_sound(run, 36)
        kept = {item.question for item in read_items(run.snapshots()[-1], NO_ANSWER)}
        unsupported = {drop.question for name in ("judge_drops", "top_up_drops") for drop in run.rows(name, Drop)}
        assert kept & set(MISSES) and kept - set(MISSES) <= unsupported, "near misses, and what the main set proposed"
        assert not kept & {item.question for item in read_items(run.snapshots()[-1])}
        before = server.calls
        run.must()
        assert server.calls == before, "nothing that is in the ledger is asked again"


def _judges_followed_one_another(run: ProjectRun) -> None:
    """What a judge dropped is not put to the next, and what passed is: in = asked, kept + dropped = in."""
    left = {candidate.id for candidate in run.rows("first_candidates", Candidate)}
    for judge in JUDGES:
        verdicts = run.rows(f"{judge.name}_verdicts", Verdict)
        assert {verdict.candidate_id for verdict in verdicts} == left and len(verdicts) == len(left)
        left = {verdict.candidate_id for verdict in verdicts if verdict.passed}
        assert judge is CLOSED_BOOK or len(left) < len(verdicts), "the judge was to drop some"
    assert left <= {candidate.id for candidate in run.rows("candidates", Candidate)}


def _answer_no_answer(run: ProjectRun) -> None:
    rows = list(csv.reader((run.review / "no_answer.csv").read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    for row in rows[1:]:
        row[rows[0].index("keep")] = "y"
    with (run.review / "inbox" / "no_answer.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


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
    asked = run.settings.filters.judges.enabled
    assert [step.stage for step in steps] == ["generate", "code", *asked, "review", "freeze"]
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
