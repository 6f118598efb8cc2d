"""Review as people do it: sheets out, sheets in, bad sheets refused as a whole, nobody's work overwritten."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragds_pipeline import runs
from ragds_pipeline.records import Candidate, Decision, Drop
from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline.why import why
from ragds_pipeline_tests.answering import answer_questions
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.projects import ProjectRun, ephemeral_instance, project


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project that waits for its reviewer; every test works on a copy of it."""
    root = tmp_path_factory.mktemp("waiting") / "project"
    (root / "kb").mkdir(parents=True)
    for name in ("alpha", "beta"):
        lines = "".join(f"In {name} rule {n} grants {n + 10} days for case {n}.\n\n" for n in range(40))
        (root / "kb" / f"{name}.md").write_text(f"# {name}\n\n{lines}", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, LoopbackServer(responder=answer_questions) as server:
        patch.setenv("ANTHROPIC_API_KEY", "test")
        with project(root, Path("kb"), plan={"questions": 10}, claude={"base_url": server.url}) as made:
            made.must()
        yield root


@pytest.fixture
def run(waiting: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProjectRun]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    shutil.copytree(waiting, tmp_path / "project")
    with ephemeral_instance() as instance:
        made = ProjectRun(tmp_path / "project", instance)
        made.version = runs.register_current(made.settings, instance)
        yield made


def test_only_what_is_open_is_on_the_sheet_and_decisions_add_up(run: ProjectRun) -> None:
    first, second, *_ = ids = [c.id for c in run.rows("candidates", Candidate)]
    run.answer(**{first: "n", second: ""})
    run.must("freeze_job")
    assert len(run.golden()) == len(ids) - 2
    run.must(selection=["review_queue"])
    rows = list(csv.DictReader((run.review / "review.csv").read_text(encoding="utf-8-sig").splitlines(True)))
    assert [row["id"] for row in rows] == [second]
    (run.review / "inbox" / "returned.csv").unlink()
    run.answer(**{second: "はい"})
    run.must("freeze_job")
    assert len(run.golden()) == len(ids) - 1 and len(run.snapshots()) == 2
    assert {d.keep for d in run.rows("review_decisions", Decision)} == {"keep", "drop"}


def test_a_sheet_with_one_bad_row_is_not_imported_at_all_and_nothing_is_frozen(run: ProjectRun) -> None:
    first, *_ = [c.id for c in run.rows("candidates", Candidate)]
    run.answer(**{first: "maybe"})
    outcome = run.run("freeze_job")
    assert not outcome.success and "sheets_importable" in outcome.failed_checks[0]
    assert "returned.csv, line " in outcome.failed_checks[0] and "column keep: 'maybe'" in outcome.failed_checks[0]
    problems = outcome.metadata["review_decisions"]["problems"]
    assert "maybe" in problems and "line" in problems
    assert not run.rows("review_decisions", Decision) and not run.snapshots()


def test_a_correction_that_is_not_in_the_document_is_refused_with_its_line(run: ProjectRun) -> None:
    sheet = run.answer()
    rows = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines(True)))
    rows[3][rows[0].index("evidence")] = "This sentence stands nowhere in the document."
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    outcome = run.run("freeze_job")
    assert not outcome.success and not run.snapshots()
    assert "evidence_not_found" in outcome.metadata["review_decisions"]["problems"]


def test_a_sheet_somebody_wrote_on_is_never_overwritten(run: ProjectRun) -> None:
    sheet = run.review / "review.csv"
    edited = sheet.read_bytes() + b"\r\n"
    sheet.write_bytes(edited)
    run.must(selection=["review_queue"])
    assert sheet.read_bytes() == edited
    assert (run.review / "review-2.csv").exists() and (run.review / "review-2.xlsx").exists()


def test_the_same_sheet_twice_counts_once(run: ProjectRun) -> None:
    run.answer()
    run.must("freeze_job")
    run.must("freeze_job")
    assert len(list((run.settings.data_dir / "review" / "decisions").glob("*.jsonl"))) == 1
    assert len(run.snapshots()) == 1


def test_a_decision_goes_on_applying_in_the_next_revision_and_ids_stay(run: ProjectRun) -> None:
    run.answer()
    run.must("freeze_job")
    before = {item["question"]: (item["id"], item["split"]) for item in run.golden()}
    old = run.version
    alpha = run.settings.kb_dir / "alpha.md"
    alpha.write_text(alpha.read_text(encoding="utf-8") + "\nA new last line of the document.\n", encoding="utf-8")
    run.must()
    assert run.version != old
    run.must("freeze_job")
    after = {item["question"]: (item["id"], item["split"]) for item in run.golden()}
    carried = before.keys() & after.keys()
    assert carried, "beta.md did not change, so its requests and decisions are the same"
    assert all(before[question] == after[question] for question in carried)


def test_an_old_revision_is_rebuilt_from_the_archive(run: ProjectRun) -> None:
    old, documents = run.version, run.table("kb_documents").path
    bytes_then = documents.read_bytes()
    (run.settings.kb_dir / "alpha.md").write_text("# Alpha\n\nAll new text in this document.\n", encoding="utf-8")
    documents.unlink()
    outcome = runs.execute(run.config, "revision_job", old, run.instance, selection=["kb_documents", "kb_issues"])
    assert outcome.success and documents.read_bytes() == bytes_then
    run.instance.add_dynamic_partitions("kb_revisions", ["made-up"])
    outcome = runs.execute(run.config, "revision_job", "made-up", run.instance)
    assert not outcome.success and "is not in the archive and the KB folder now holds" in outcome.errors[0]


def edit(sheet: Path, id_: str, **cells: str) -> None:
    """Change cells of one row of a sheet."""
    rows = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines(True)))
    for row in rows:
        if row[0] == id_:
            for column, text in cells.items():
                row[rows[0].index(column)] = text
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


def only(sheet: Path, id_: str) -> Path:
    """Leave one row on a sheet."""
    header, *rows = csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines(True))
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([header, *(row for row in rows if row[0] == id_)])
    return sheet


def test_freezing_alone_leaves_out_what_has_become_confidential(run: ProjectRun) -> None:
    run.answer()
    run.must("freeze_job")
    assert any("alpha.md" in str(item["passages"]) for item in run.golden())
    (run.settings.kb_dir / "kb.yaml").write_text("confidential: [alpha.md]\n", encoding="utf-8")
    run.must(selection=["kb_documents", "kb_issues"])
    outcome = run.run("freeze_job", selection=["golden_set"])
    assert not outcome.success and "alpha.md is confidential" in outcome.errors[0] and len(run.snapshots()) == 1
    run.must("freeze_job")
    assert run.golden() and "alpha" not in (run.snapshots()[-1] / "golden_set.jsonl").read_text(encoding="utf-8")
    assert not list(run.snapshots()[-1].rglob("alpha*"))
    assert {drop.reason for drop in run.rows("golden_drops", Drop)} == {"document_confidential"}


def test_a_correction_changed_and_taken_back_keeps_the_id(run: ProjectRun) -> None:
    first, *_ = [c.id for c in run.rows("candidates", Candidate)]
    sheet = run.answer()
    before: set[tuple[str, str]] = set()
    for answer in ("ten days", "eleven days", None):
        edit(sheet, first, **({"answer": answer} if answer else {}), note=str(answer))
        if answer is None:
            sheet = run.answer()
        run.must("freeze_job")
        ids = {(item["id"], item["split"]) for item in run.golden()}
        before = before or ids
        assert ids == before


def test_a_sheet_left_in_the_inbox_does_not_block_another_plan(run: ProjectRun) -> None:
    run.answer()
    run.must("freeze_job")
    text = run.config.read_text(encoding="utf-8")
    run.config.write_text(text.replace("questions: 10", "questions: 4"), encoding="utf-8")
    run.must()
    outcome = run.run("freeze_job")
    assert not outcome.failed_checks, "the sheet was imported before; it is not read against the new candidates"
    # The new plan's questions are new, so nobody has decided on one: that, and nothing else, is said.
    assert outcome.success or "nobody has kept anything yet" in outcome.errors[0]


def test_a_correction_that_fails_at_freezing_is_on_the_sheet_again_with_the_reason(run: ProjectRun) -> None:
    first, second, *_ = run.rows("candidates", Candidate)
    sheet = run.answer(**{second.id: ""})
    edit(sheet, first.id, question=second.question + " please")
    run.must("freeze_job")
    assert first.id not in {row.id for row in queue(run)}
    edit(only(sheet, second.id), second.id, keep="y")
    run.must("freeze_job")
    assert [drop.reason for drop in run.rows("golden_drops", Drop)] == ["correction_fails"]
    assert "dropped by review: correction_fails" in why(run.settings, run.version, first.id)
    (row,) = queue(run)
    assert row.id == first.id and "near_duplicate_question" in row.context and " please" in row.context
    sheet.unlink()
    edit(run.answer(), first.id, keep="n", note="given up")
    run.must("freeze_job")
    assert not queue(run)


def queue(run: ProjectRun) -> list[ReviewRow]:
    run.must(selection=["review_queue"])
    return run.rows("review_queue", ReviewRow)


def test_an_import_needs_a_reviewer(run: ProjectRun) -> None:
    run.config.write_text(
        run.config.read_text(encoding="utf-8").replace("reviewer: test", "reviewer: ''"), encoding="utf-8"
    )
    run.answer()
    outcome = run.run("freeze_job")
    assert not outcome.success and "review.reviewer" in outcome.failed_checks[0] and not run.snapshots()
    run.must("freeze_job", ops={"review_decisions": {"config": {"reviewer": "Rei"}}})
    assert {d.reviewer for d in run.rows("review_decisions", Decision)} == {"Rei"}
