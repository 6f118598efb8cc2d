"""The no_answer set from plan to snapshot, over a KB in three languages, with a server that stands for the model."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline.golden.snapshot import NO_ANSWER, read_items, verify
from ragds_pipeline.records import CostRow, Drop, FunnelStep, MissingRow, PlanRow, Verdict
from ragds_pipeline.records_no_answer import KbAnswer, NoAnswerCandidate, NoAnswerDraft
from ragds_pipeline.summary import summary
from ragds_pipeline.why import why
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.no_answer import SECRET, Model, write_kb
from ragds_pipeline_tests.projects import ProjectRun, project

PLAIN = {
    "en": ["Who signs for a parking card in Bruges?", "How many lockers has the Cork office?"],
    "ja": ["静岡事業所の駐車場は何台分ありますか。", "忘年会の費用は誰が承認しますか。"],
    "it": ["Chi firma il buono mensa a Trieste?", "Quanti armadietti ha la sede di Udine?"],
}


@contextmanager
def made(root: Path, model: Model, planned: int = 6, **settings: Any) -> Iterator[tuple[ProjectRun, LoopbackServer]]:
    """Make a project of four questions with an answer and ``planned`` without."""
    with LoopbackServer(responder=model) as server:
        given: dict[str, Any] = {
            "plan": {
                "questions": 4,
                "no_answer": planned,
                "top_up_rounds": 0,
                "languages": {"en": 1, "ja": 1, "it": 1},
            },
            "filters": {"judges": {"enabled": ["ambiguity", "support"], "votes": 1}},
            "claude": {"base_url": server.url, "check_models": False},
            **settings,
        }
        with project(root / "p", write_kb(root / "kb"), **given) as run:
            yield run, server
        assert not server.problems


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")


def answer(run: ProjectRun, name: str, **answers: str) -> None:
    """Return a sheet with ``y`` in every row, or as said by id."""
    rows = list(csv.reader((run.review / f"{name}.csv").read_text(encoding="utf-8-sig").splitlines(True)))
    keep = rows[0].index("keep")
    for row in rows[1:]:
        row[keep] = answers.get(row[0], "y")
    save(run, f"{name}-returned.csv", rows)


def save(run: ProjectRun, name: str, rows: list[list[str]]) -> None:
    with (run.review / "inbox" / name).open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


def sheet(run: ProjectRun) -> list[dict[str, str]]:
    text = (run.review / "no_answer.csv").read_text(encoding="utf-8-sig")
    return list(csv.DictReader(text.splitlines(True)))


def frozen(run: ProjectRun) -> list[dict[str, Any]]:
    lines = (run.snapshots()[-1] / "no_answer.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_from_the_plan_to_the_snapshot(tmp_path: Path) -> None:
    with made(tmp_path, Model(PLAIN)) as (run, server):
        run.must()
        assert sum(row.planned for row in run.rows("no_answer_plan", PlanRow)) == 6
        found = run.rows("no_answer_candidates", NoAnswerCandidate)
        assert {c.question for c in found} == {q for each in PLAIN.values() for q in each}
        assert {c.language: c.answer[:3] for c in found} == {"en": "The", "ja": "利用で", "it": "I d"}
        assert {(c.documents_asked, c.documents_askable, c.documents_confidential) for c in found} == {(4, 4, 1)}
        assert len(run.rows("no_answer_answers", KbAnswer)) == 6 * 4
        estimated = {row.task: row for row in run.rows("no_answer_cost_estimate", CostRow)}
        assert list(estimated) == ["generate_no_answer", "judge_ambiguity", "ask_whole_kb"]
        assert estimated["ask_whole_kb"].calls == 6 * 4 and estimated["judge_ambiguity"].calls == 6
        assert not run.rows("no_answer_missing", MissingRow)
        rows = sheet(run)
        assert {row["type"] for row in rows} == {"no_answer"} and all("does NOT answer" in r["evidence"] for r in rows)
        assert all("4 of 4 documents were asked, 1 confidential not" in row["context"] for row in rows)
        answer(run, "review")
        answer(run, "no_answer", **{found[0].id: "n", found[1].id: ""})
        run.must("freeze_job")
        items = frozen(run)
        assert len(items) == 4 and {item["id"] for item in items} == {"n-0001", "n-0002", "n-0003", "n-0004"}
        for item in items:
            assert item["passages"] == [] and item["type"] == "no_answer" and not item["evidence"]
            assert "whole_kb:ok (4 of 4 documents asked, 1 confidential not)" in item["provenance"]["verdicts"]
            assert "ambiguity:ok" in item["provenance"]["verdicts"]
        assert [i.id for i in read_items(run.snapshots()[-1], NO_ANSWER)] == [i["id"] for i in items]
        manifest = verify(run.snapshots()[-1])
        assert manifest["counts"]["no_answer"] == 4 == manifest["no_answer"]["counts"]["items"]
        assert sum(manifest["no_answer"]["counts"]["split"].values()) == 4
        assert not {i["question"] for i in items} & {i["question"] for i in run.golden()}
        steps = run.rows("no_answer_funnel", FunnelStep)
        assert [s.stage for s in steps] == ["generate", "code", "ambiguity", "whole_kb", "review", "freeze"]
        assert (steps[0].came_in, steps[-1].kept) == (6, 4)
        calls = server.calls
        run.must()
        run.must("freeze_job")
        assert server.calls == calls and len(run.snapshots()) == 1, "the same again costs nothing and changes nothing"
        told = summary(run.settings, run.version)
        assert "No_answer set (planned: 6 near misses" in told and "4 without an answer" in told
        story = why(run.settings, run.version, "n-0001")
        assert "whole_kb: ok" in story and "review: keep" in story and "no_answer set: n-0001" in story


def test_what_another_document_answers_is_dropped_with_the_place_and_nothing_confidential_is_sent(
    tmp_path: Path,
) -> None:
    misses = {
        "it": ["Quanto vale il buono ZETA-1 a Trieste?", "Che cosa copre KAPPA-1 in inverno?"],
        "en": ["How is the OMEGA-1 band paid in winter?"],
    }
    plan = {"questions": 4, "no_answer": 3, "languages": {"it": 2, "en": 1}}
    with made(tmp_path, Model(misses), plan=plan, no_answer={"top_up_rounds": 0}) as (run, server):
        run.must()
        (drop,) = [d for d in run.rows("no_answer_drops", Drop) if d.reason == "answered_in_kb"]
        assert drop.stage == "whole_kb" and drop.document_path == "it/ferie.md"
        assert drop.detail.startswith("en/pay.md[") and "worth 12 crowns" in drop.detail
        (found,) = json.loads(drop.payload)["found"]
        (quote,) = found["quotes"]
        text = (tmp_path / "kb/en/pay.md").read_text(encoding="utf-8")
        assert text[quote["start_char"] : quote["end_char"]] == quote["text"]
        (gap,) = run.rows("no_answer_missing", MissingRow)
        assert (gap.planned, gap.kept, gap.missing) == (2, 1, 1) and "answered_in_kb" in gap.reasons
        assert "answered_in_kb" in why(run.settings, run.version, drop.item_id)
        kept = {c.language: c for c in run.rows("no_answer_candidates", NoAnswerCandidate)}
        assert kept["it"].flagged and kept["it"].partly[0].document_path == "en/pay.md"
        verdicts = {v.reason for v in run.rows("no_answer_verdicts", Verdict) if v.stage == "whole_kb"}
        assert verdicts == {"answered_in_kb", "partly_answered", "ok"}
        bodies = json.dumps([request.body for request in server.requests], ensure_ascii=False)
        assert "OMEGA-1 band" in bodies, "the question itself was asked"
        assert "71234" not in bodies and SECRET not in bodies and "bands.md" not in bodies
        assert kept["en"].confidential == ("secret/bands.md",)
        assert all(passage.document_path != "secret/bands.md" for passage in kept["en"].nearest)
        rows = {row["id"]: row for row in sheet(run)}
        assert rows[kept["it"].id]["context"].startswith("LOOK: answered in part? en/pay.md[")
        assert "LOOK: the confidential document secret/bands.md" in rows[kept["en"].id]["context"]
        assert "71234" not in str(rows)
        answer(run, "review")
        answer(run, "no_answer")
        run.must("freeze_job")
        assert "whole_kb:partly_answered (4 of 4 documents asked, 1 confidential not)" in str(frozen(run))
        for path in run.snapshots()[-1].rglob("*"):
            assert path.is_dir() or b"71234" not in path.read_bytes()


def test_what_the_main_set_found_unsupported_is_proposed_and_checked(tmp_path: Path) -> None:
    with made(tmp_path, Model(PLAIN, unsupported="It is said"), planned=1) as (run, server):
        run.must()
        proposed = run.rows("no_answer_proposals", NoAnswerDraft)
        unsupported = [d for d in run.rows("judge_drops", Drop) if d.reason == "not_supported"]
        assert proposed and {d.source_id for d in proposed} == {d.item_id for d in unsupported}
        kept = [c for c in run.rows("no_answer_candidates", NoAnswerCandidate) if c.origin == "unsupported"]
        assert {c.question for c in kept} == {d.question for d in proposed}
        assert "unsupported" in why(run.settings, run.version, unsupported[0].item_id)
        judged = [
            r.body for r in server.requests if r.body and "have exactly one meaning, and" in str(r.body["system"])
        ]
        assert len(judged) == len({str(body) for body in judged}), "no question is judged twice, in whichever set"


def test_a_question_that_a_reviewer_changes_is_asked_of_the_kb_before_it_counts(tmp_path: Path) -> None:
    with made(tmp_path, Model(PLAIN), planned=3) as (run, server):
        run.must()
        one, two, three = run.rows("no_answer_candidates", NoAnswerCandidate)
        rows = list(csv.reader((run.review / "no_answer.csv").read_text(encoding="utf-8-sig").splitlines(True)))
        columns = {name: at for at, name in enumerate(rows[0])}
        refused = [rows[0], [*rows[1]]]
        refused[1][columns["keep"]], refused[1][columns["evidence"]] = "y", "Pay slip 3 is sent on day 4 of the month."
        save(run, "no_answer-returned.csv", refused)
        outcome = run.run("freeze_job")
        assert not outcome.success and "evidence_edited" in outcome.metadata["review_decisions"]["problems"]
        edits = {
            one.id: {"question": "Who signs for a second parking card in Bruges?"},
            two.id: {"question": "What is ZETA-1 worth in Bruges?"},
            three.id: {"answer": "No document says so; ask the front desk."},
        }
        for row in rows[1:]:
            row[columns["keep"]] = "y"
            for column, text in edits[row[0]].items():
                row[columns[column]] = text
        save(run, "no_answer-returned.csv", rows)
        answer(run, "review")
        before = server.calls
        run.must("freeze_job")
        assert server.calls > before
        items = {item["question"]: item for item in frozen(run)}
        assert items.keys() == {edits[one.id]["question"], three.question}
        assert items[three.question]["answer"] == edits[three.id]["answer"]
        (drop,) = run.rows("no_answer_golden_drops", Drop)
        assert drop.reason == "correction_fails" and "answered_in_kb" in drop.detail and "en/pay.md" in drop.detail
        (again,) = sheet_after(run)
        assert again["id"] == two.id and "answered_in_kb" in again["context"]
        calls = server.calls
        run.must("freeze_job")
        assert server.calls == calls and len(run.snapshots()) == 1


def sheet_after(run: ProjectRun) -> list[dict[str, str]]:
    """Return the newest sheet of the set."""
    newest = max(run.review.glob("no_answer*.csv"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    return list(csv.DictReader(newest.read_text(encoding="utf-8-sig").splitlines(True)))


def test_without_a_plan_nothing_is_asked_and_all_is_empty(tmp_path: Path) -> None:
    with made(tmp_path, Model(PLAIN, unsupported="It is said"), planned=0) as (run, server):
        run.must()
        systems = {request.body["system"][0]["text"][:60] for request in server.requests if request.body}
        assert not [s for s in systems if "admits it" in s or "does this document" in s]
        for asset in ("no_answer_drafts", "no_answer_proposals", "no_answer_candidates", "no_answer_cost_estimate"):
            assert run.table(asset).num_rows == 0, asset
        assert not (run.review / "no_answer.csv").exists()
        assert "No_answer" not in summary(run.settings, run.version)
