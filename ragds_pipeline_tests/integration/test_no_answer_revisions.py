"""The no_answer set through revisions: carried at no cost, asked again where something new may answer, ids kept."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline import runs
from ragds_pipeline.golden.comparison import compared
from ragds_pipeline.records import ChangelogRow, CostRow, Drop, FunnelStep, PlanRow, RevalidatedItem
from ragds_pipeline.records_no_answer import NoAnswerCandidate
from ragds_pipeline.summary import summary
from ragds_pipeline.why import why
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.no_answer import Model, write_kb
from ragds_pipeline_tests.projects import ProjectRun, ephemeral_instance, project

WORTH = "What is THETA-1 worth in Cork?"
MISSES = {
    "en": [WORTH, "Who signs for a parking card in Bruges?", "How many lockers has the Cork office?"],
    "ja": ["静岡事業所の駐車場は何台分ありますか。"],
    "it": ["Chi firma il buono mensa a Trieste?"],
}
OWN_REFUSAL = "No document says what it is worth; ask the front desk."


class Loop:
    """A project with a frozen no_answer set of five, with the server that answers for the model."""

    def __init__(self, run: ProjectRun, server: LoopbackServer) -> None:
        self.run, self.server = run, server

    def write(self, name: str, text: str) -> None:
        (self.run.settings.kb_dir / name).write_text(text, encoding="utf-8")

    def add(self, name: str, text: str) -> None:
        self.write(name, (self.run.settings.kb_dir / name).read_text(encoding="utf-8") + text)

    def frozen(self) -> dict[str, dict[str, Any]]:
        lines = (self.run.snapshots()[-1] / "no_answer.jsonl").read_text(encoding="utf-8").splitlines()
        return {item["id"]: item for item in map(json.loads, lines)}

    def id_of(self, question: str) -> str:
        return next(id_ for id_, item in self.frozen().items() if item["question"] == question)

    def held(self) -> dict[str, RevalidatedItem]:
        rows = self.run.rows("revalidated_items", RevalidatedItem)
        return {row.id: row for row in rows if row.type == "no_answer"}

    def changes(self) -> dict[str, ChangelogRow]:
        return {row.id: row for row in self.run.rows("no_answer_changelog", ChangelogRow)}

    def asked_since(self, count: int) -> list[str]:
        """Return what was asked of the whole KB since."""
        bodies = [json.dumps(r.body, ensure_ascii=False) for r in self.server.requests[count:]]
        return [body for body in bodies if "does this document answer" in body]


def fill(run: ProjectRun, name: str, returned: str, refusals: dict[str, str] | None = None) -> None:
    """Return the newest sheet of that name with ``y`` in every row, and some refusals (by question) as given."""
    newest = max(run.review.glob(f"{name}*.csv"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    rows = list(csv.reader(newest.read_text(encoding="utf-8-sig").splitlines(True)))
    at = {column: place for place, column in enumerate(rows[0])}
    for row in rows[1:]:
        row[at["keep"]] = "y"
        row[at["answer"]] = (refusals or {}).get(row[at["question"]], row[at["answer"]])
    with (run.review / "inbox" / returned).open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, LoopbackServer]]:
    """A project with one frozen set; every test works on a copy of it."""
    root = tmp_path_factory.mktemp("frozen") / "project"
    write_kb(root / "kb")
    # The version is told from the content: every edit is a revision.
    yaml = (root / "kb" / "kb.yaml").read_text(encoding="utf-8")
    (root / "kb" / "kb.yaml").write_text(yaml.replace('source_version: "2026-10-01"\n', ""), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, LoopbackServer(responder=Model(MISSES)) as server:
        patch.setenv("ANTHROPIC_API_KEY", "test")
        settings = {
            "plan": {"questions": 4, "no_answer": 5, "top_up_rounds": 0},
            "no_answer": {"top_up_rounds": 0},
            "filters": {"judges": {"enabled": ["ambiguity", "support"], "votes": 1}},
            "claude": {"base_url": server.url, "check_models": False},
        }
        with project(root, Path("kb"), **settings) as run:
            run.must()
            fill(run, "review", "review-returned.csv")
            fill(run, "no_answer", "no_answer-returned.csv", {WORTH: OWN_REFUSAL})
            run.must("freeze_job")
        yield root, server
        assert not server.problems


@pytest.fixture
def loop(frozen: tuple[Path, LoopbackServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    root, server = frozen
    shutil.copytree(root, tmp_path / "project")
    with ephemeral_instance() as instance:
        run = ProjectRun(tmp_path / "project", instance)
        run.version = runs.register_current(run.settings, instance)
        yield Loop(run, server)


def test_what_nothing_new_comes_near_is_carried_without_a_call(loop: Loop) -> None:
    before = loop.frozen()
    assert len(before) == 5 and {item["answer"] for item in before.values()} >= {OWN_REFUSAL}
    calls = len(loop.server.requests)
    loop.write("en/turbines.md", "# Turbines\n\nQuarterly blades hum quietly.\n")
    loop.run.must()
    loop.run.must("freeze_job")
    assert len(loop.server.requests) == calls, "no call at all"
    assert {row.outcome for row in loop.held().values()} == {"carried"}
    after = loop.frozen()
    assert {i: {**item, "source_version": ""} for i, item in after.items()} == {
        i: {**item, "source_version": ""} for i, item in before.items()
    }
    assert {i["source_version"] for i in after.values()} == {loop.run.version}
    assert {row.change for row in loop.changes().values()} == {"carried"} and loop.changes().keys() == before.keys()
    told = (loop.run.snapshots()[-1] / "changelog.jsonl").read_text(encoding="utf-8")
    assert all(f'"{id_}"' in told for id_ in before)
    steps = {step.stage: step for step in loop.run.rows("no_answer_funnel", FunnelStep)}
    assert (steps["generate"].came_in, steps["review"].joined, steps["freeze"].kept) == (0, 5, 5)
    assert sum(row.planned for row in loop.run.rows("no_answer_plan", PlanRow)) == 5
    assert not loop.run.rows("no_answer_cost_estimate", CostRow)


def test_what_a_changed_document_answers_is_dropped_with_the_place(loop: Loop) -> None:
    before, id_ = loop.frozen(), loop.id_of(WORTH)
    requests = len(loop.server.requests)
    loop.add("en/pay.md", "\nThe voucher THETA-1 is worth 3 crowns in Cork.\n")
    loop.run.must()
    assert loop.held()[id_].outcome == "asked_again" and "en/pay.md" in loop.held()[id_].why
    asked = loop.asked_since(requests)
    assert asked and all("THETA-1 is worth 3" in body for body in asked), "documents that did not change cost nothing"
    (drop,) = [d for d in loop.run.rows("no_answer_drops", Drop) if d.reason == "answered_in_kb"]
    assert drop.question == WORTH and drop.detail.startswith("en/pay.md[") and "worth 3 crowns" in drop.detail
    report = loop.run.settings.data_dir / "tables" / "revision_report" / f"{loop.run.version}.md"
    assert id_ in report.read_text(encoding="utf-8") and "answered_in_kb: en/pay.md" in report.read_text("utf-8")
    assert "questions without an answer" in summary(loop.run.settings, loop.run.version)
    assert "answered_in_kb" in why(loop.run.settings, loop.run.version, id_)
    calls = len(loop.server.requests)
    loop.run.must("freeze_job")
    assert len(loop.server.requests) == calls
    after, changes = loop.frozen(), loop.changes()
    assert id_ not in after and after.keys() <= before.keys()
    for other, item in after.items():
        assert {k: item[k] for k in ("question", "answer", "split")} == {
            k: before[other][k] for k in ("question", "answer", "split")
        }
    assert changes[id_].change == "dropped" and changes[id_].why.startswith("answered_in_kb: en/pay.md")
    assert {row.change for row in changes.values()} <= {"dropped", "carried", "rechecked"}
    compared_rows = {row.id: row.change for row in compared(loop.run.settings.data_dir / "golden")[2]}
    assert compared_rows[id_] == "dropped" and compared_rows.keys() >= before.keys()


def test_what_is_answered_in_part_now_goes_to_people_and_comes_back_under_its_id(loop: Loop) -> None:
    before, id_ = loop.frozen(), loop.id_of(WORTH)
    loop.add("en/pay.md", "\nTHETA-1 perhaps has a worth in Cork.\n")
    loop.run.must()
    (row,) = [c for c in loop.run.rows("no_answer_candidates", NoAnswerCandidate) if c.question == WORTH]
    assert row.flagged and row.answer == OWN_REFUSAL and row.id != loop.held()[id_].now_candidate_id
    loop.run.must("freeze_job")
    assert loop.changes()[id_].change == "waiting" and id_ not in loop.frozen()
    fill(loop.run, "no_answer", "no_answer-again.csv")
    loop.run.must("freeze_job")
    item = loop.frozen()[id_]
    assert item["split"] == before[id_]["split"] and item["answer"] == OWN_REFUSAL
    assert "no_answer-again.csv" in item["provenance"]["decision"]
    assert any("partly_answered" in verdict for verdict in item["provenance"]["verdicts"])
    assert loop.changes()[id_].change == "rechecked"


def test_what_is_asked_again_and_not_answered_stays_with_the_decision_on_it(loop: Loop) -> None:
    before, id_ = loop.frozen(), loop.id_of(WORTH)
    loop.add("en/pay.md", "\nWhat a voucher is worth in Cork is told elsewhere.\n")
    loop.run.must()
    assert loop.held()[id_].outcome == "asked_again"
    loop.run.must("freeze_job")
    after = loop.frozen()[id_]
    assert after["answer"] == OWN_REFUSAL and after["split"] == before[id_]["split"]
    assert after["provenance"]["candidate_id"] == before[id_]["provenance"]["candidate_id"]
    assert after["provenance"]["decision"] == before[id_]["provenance"]["decision"]
    assert loop.changes()[id_].change == "rechecked"
    assert (loop.run.table("no_answer_queue").num_rows, len(loop.frozen())) == (0, 5)


def test_a_question_that_was_dropped_is_made_up_for_from_new_text(loop: Loop) -> None:
    loop.add("en/pay.md", "\nThe voucher THETA-1 is worth 3 crowns in Cork.\n")
    loop.run.must()
    loop.run.must("freeze_job")
    requests = len(loop.server.requests)
    new = "".join(f"The canteen of floor {n} opens at {n + 6} and serves soup of kind {n}.\n\n" for n in range(12))
    loop.add("en/leave.md", f"\n## Canteens\n\n{new}")
    loop.run.must()
    bodies = [json.dumps(r.body, ensure_ascii=False) for r in loop.server.requests[requests:]]
    written = [body for body in bodies if "near miss" in body and "Write 1 near miss" in body]
    assert written and all("canteen" in body and "en/pay" not in body for body in written), "only new text is shown"
    assert sum(row.planned for row in loop.run.rows("no_answer_plan", PlanRow)) == 5
