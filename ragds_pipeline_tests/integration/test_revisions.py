"""A golden set through revisions of its documents: repaired where code can, asked about where it cannot, ids kept."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragds_pipeline import runs
from ragds_pipeline.golden.snapshot import verify
from ragds_pipeline.records import (
    AnchorEvent,
    Candidate,
    ChangelogRow,
    Decision,
    DocumentChange,
    Drop,
    PlanRow,
    RevalidatedItem,
)
from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline_tests.answering import answer_questions
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.projects import ProjectRun, ephemeral_instance, project

SUBJECTS = ["travel", "parking", "laptops", "visitors", "training", "lunch"]


def rule(name: str, number: int) -> str:
    subject = SUBJECTS[number % len(SUBJECTS)]
    days = f"the {name} office grants {number + 10} days"
    return f"For {subject} of kind {number} {days}, and the request goes to desk {name}-{number}."


def document(name: str, numbers: range) -> str:
    return f"# {name}\n\n" + "\n\n".join(rule(name, number) for number in numbers) + "\n"


class Loop:
    """A project over a KB of three documents, with the server that answers for the model."""

    def __init__(self, run: ProjectRun, server: LoopbackServer) -> None:
        self.run, self.server = run, server

    def write(self, name: str, text: str) -> None:
        (self.run.settings.kb_dir / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.run.settings.kb_dir / name).read_text(encoding="utf-8")

    def items(self) -> dict[str, RevalidatedItem]:
        return {item.id: item for item in self.run.rows("revalidated_items", RevalidatedItem)}


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, LoopbackServer]]:
    """A project with one frozen set; every test works on a copy of it."""
    root = tmp_path_factory.mktemp("frozen") / "project"
    (root / "kb").mkdir(parents=True)
    for name in ("alpha", "beta", "gamma"):
        (root / "kb" / f"{name}.md").write_text(document(name, range(30)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, LoopbackServer(responder=answer_questions) as server:
        patch.setenv("ANTHROPIC_API_KEY", "test")
        settings = {"plan": {"questions": 12}, "claude": {"base_url": server.url, "check_models": False}}
        with project(root, Path("kb"), **settings) as run:
            run.must()
            run.answer()
            run.must("freeze_job")
        yield root, server


@pytest.fixture
def loop(frozen: tuple[Path, LoopbackServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    root, server = frozen
    shutil.copytree(root, tmp_path / "project")
    with ephemeral_instance() as instance:
        run = ProjectRun(tmp_path / "project", instance)
        run.version = runs.register_current(run.settings, instance)
        yield Loop(run, server)


def test_a_first_revision_has_nothing_to_be_held_against(loop: Loop) -> None:
    assert not loop.items() and not loop.run.rows("anchor_events", AnchorEvent)
    assert {c.status for c in loop.run.rows("kb_changes", DocumentChange)} == {"first"}
    assert json.loads((loop.run.snapshots()[-1] / "manifest.json").read_text(encoding="utf-8"))["baseline"] == ""


NEW_RULES = "".join(f"Bicycles of make {n} may be kept in the cellar for {n + 200} days.\n\n" for n in range(20))


def test_an_edit_elsewhere_carries_everything_and_asks_only_about_new_text(loop: Loop) -> None:
    before = {item["id"]: item for item in loop.run.golden()}
    asked_before = len(loop.server.requests)
    loop.write("alpha.md", loop.read("alpha.md").replace("# alpha\n\n", f"# alpha\n\n{NEW_RULES}"))
    loop.run.must()
    outcomes = Counter(item.outcome for item in loop.items().values())
    assert set(outcomes) == {"carried", "reanchored"} and sum(outcomes.values()) == len(before)
    sent = loop.server.requests[asked_before:]
    assert sent and all("Bicycles of make" in json.dumps(request.body) for request in sent), "only new text"
    loop.run.must("freeze_job")
    after = {item["id"]: item for item in loop.run.golden()}
    assert before.keys() <= after.keys()
    text = loop.read("alpha.md")
    for id_, item in before.items():
        assert after[id_]["split"] == item["split"] and after[id_]["question"] == item["question"]
        assert after[id_]["provenance"]["decision"] == item["provenance"]["decision"]
        for passage in after[id_]["passages"]:
            if passage["document_path"] == "alpha.md":
                assert text[passage["start_char"] : passage["end_char"]] == passage["content"]
                assert after[id_]["provenance"]["anchors"]
    verify(loop.run.snapshots()[-1])


def stale_one(loop: Loop) -> tuple[str, Path]:
    """Change a number inside the evidence of one item; return its golden id and the recheck sheet."""
    item = next(item for item in loop.run.golden() if item["passages"][0]["document_path"] == "beta.md")
    content = item["passages"][0]["content"]
    number = int(content.partition("grants ")[2].partition(" ")[0])
    loop.write(
        "beta.md", loop.read("beta.md").replace(content, content.replace(f"grants {number} ", f"grants {number + 70} "))
    )
    loop.run.must()
    return item["id"], loop.run.review / "recheck.csv"


def test_a_changed_number_goes_to_people_and_comes_back_under_its_id(loop: Loop) -> None:
    old_version = loop.run.version
    id_, sheet = stale_one(loop)
    row = loop.items()[id_]
    assert row.outcome == "to_people" and row.now_candidate_id != row.candidate_id
    loop.run.must("freeze_job")
    assert id_ not in {item["id"] for item in loop.run.golden()}
    changes = {r.id: r for r in loop.run.rows("changelog", ChangelogRow)}
    assert changes[id_].change == "waiting"
    rows = list(csv.DictReader(sheet.read_text(encoding="utf-8-sig").splitlines(True)))
    (shown,) = [r for r in rows if r["id"] == row.now_candidate_id]
    assert "[-" in shown["changes"] and "+}" in shown["changes"] and shown["old evidence"] != shown["evidence"]
    fill(sheet, loop.run.review / "inbox" / "recheck.csv", {row.now_candidate_id: "y"})
    loop.run.must("freeze_job")
    (item,) = [item for item in loop.run.golden() if item["id"] == id_]
    assert item["source_version"] == loop.run.version != old_version
    assert "recheck.csv" in item["provenance"]["decision"]
    changes = {r.id: r for r in loop.run.rows("changelog", ChangelogRow)}
    assert changes[id_].change == "rechecked"


def fill(sheet: Path, target: Path, answers: dict[str, str]) -> None:
    rows = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines(True)))
    keep, id_ = rows[0].index("keep"), rows[0].index("id")
    for row in rows[1:]:
        row[keep] = answers.get(row[id_], "")
    with target.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


def test_what_people_drop_on_the_recheck_sheet_is_dropped_and_told(loop: Loop) -> None:
    id_, sheet = stale_one(loop)
    row = loop.items()[id_]
    fill(sheet, loop.run.review / "inbox" / "recheck.csv", {row.now_candidate_id: "n"})
    loop.run.must("freeze_job")
    changes = {r.id: r for r in loop.run.rows("changelog", ChangelogRow)}
    assert changes[id_].change == "dropped" and "dropped_by_reviewer" in changes[id_].why
    assert id_ not in {item["id"] for item in loop.run.golden()}


def test_a_correction_on_the_recheck_sheet_keeps_the_id(loop: Loop) -> None:
    id_, sheet = stale_one(loop)
    row = loop.items()[id_]
    rows = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines(True)))
    for cells in rows[1:]:
        if cells[0] == row.now_candidate_id:
            cells[rows[0].index("answer")] = "It says something else now, namely more days."
            cells[rows[0].index("keep")] = "y"
    with (loop.run.review / "inbox" / "recheck.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    loop.run.must("freeze_job")
    (item,) = [item for item in loop.run.golden() if item["id"] == id_]
    assert item["answer"] == "It says something else now, namely more days."


def test_a_renamed_document_is_followed(loop: Loop) -> None:
    before = {item["id"] for item in loop.run.golden() if item["passages"][0]["document_path"] == "gamma.md"}
    assert before
    kb = loop.run.settings.kb_dir
    (kb / "gamma.md").rename(kb / "delta.md")
    asked = len(loop.server.requests)
    loop.run.must()
    assert len(loop.server.requests) == asked, "nothing is new, so nothing is asked"
    assert {loop.items()[id_].rung for id_ in before} == {"relocated"}
    loop.run.must("freeze_job")
    after = {item["id"]: item for item in loop.run.golden()}
    assert all(after[id_]["passages"][0]["document_path"] == "delta.md" for id_ in before)


def test_a_document_that_is_gone_loses_its_items_and_says_so(loop: Loop) -> None:
    before = {item["id"] for item in loop.run.golden() if item["passages"][0]["document_path"] == "gamma.md"}
    (loop.run.settings.kb_dir / "gamma.md").unlink()
    loop.run.must()
    assert {loop.items()[id_].outcome for id_ in before} == {"lost"}
    loop.run.must("freeze_job")
    changes = {r.id: r for r in loop.run.rows("changelog", ChangelogRow)}
    assert {changes[id_].change for id_ in before} == {"dropped"}
    assert not before & {item["id"] for item in loop.run.golden()}


def test_open_candidates_come_over_where_their_evidence_stands(loop: Loop, tmp_path: Path) -> None:
    version = loop.run.version
    loop.write("alpha.md", loop.read("alpha.md") + f"\n## Bicycles\n\n{NEW_RULES}")
    loop.run.must()
    new = [c for c in loop.run.rows("candidates", Candidate) if "Bicycles" in c.evidence[0].content]
    assert new, "the new passage is asked about"
    loop.run.must("freeze_job")
    loop.write("beta.md", loop.read("beta.md") + "\nAnother last line.\n")
    loop.run.must()
    assert loop.run.version != version
    queue = {row.id for row in loop.run.rows("review_queue", ReviewRow)}
    assert {c.id for c in new} <= queue


def test_back_to_an_earlier_state_is_held_against_what_was_frozen_before_it(loop: Loop) -> None:
    first, text = loop.run.version, loop.read("alpha.md")
    before = (loop.run.snapshots()[-1] / "golden_set.jsonl").read_bytes()
    loop.write("alpha.md", text.replace("grants 11 days", "grants 81 days"))
    loop.run.must()
    loop.run.must("freeze_job")
    loop.write("alpha.md", text)
    loop.run.must()
    assert loop.run.version == first and not loop.items()
    loop.run.must("freeze_job")
    assert len(loop.run.snapshots()) == 1 and (loop.run.snapshots()[-1] / "golden_set.jsonl").read_bytes() == before


def test_the_report_says_what_a_person_has_to_do(loop: Loop) -> None:
    id_, _ = stale_one(loop)
    report = (loop.run.settings.data_dir / "tables" / "revision_report" / f"{loop.run.version}.md").read_text(
        encoding="utf-8"
    )
    assert id_ in report and "Recheck 1 question" in report and "recheck.xlsx" in report


def test_every_row_of_the_set_before_is_accounted_for(loop: Loop) -> None:
    frozen = {item["id"] for item in loop.run.golden()}
    stale_one(loop)
    assert set(loop.items()) >= frozen
    loop.run.must("freeze_job")
    rows = loop.run.rows("changelog", ChangelogRow)
    assert {row.id for row in rows} >= frozen
    assert {d.keep for d in loop.run.rows("review_decisions", Decision)} == {"keep"}
    assert {drop.reason for drop in loop.run.rows("golden_drops", Drop)} == {"undecided"}
    assert sum(row.planned for row in loop.run.rows("question_plan", PlanRow)) >= len(frozen)
