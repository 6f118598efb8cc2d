"""The sample project as it is shipped: recordings fit its prompts, decisions fit its candidates, bytes are equal."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragds_pipeline import runs
from ragds_pipeline.backfill import from_folder
from ragds_pipeline.claude import Claude
from ragds_pipeline.claude.backends.file import read_results
from ragds_pipeline.records import (
    AskedRow,
    Candidate,
    ChangelogRow,
    Decision,
    Drop,
    FunnelStep,
    PlanRow,
    RevalidatedItem,
)
from ragds_pipeline.why import why
from ragds_pipeline_tests.projects import REPOSITORY, ProjectRun, ephemeral_instance


def copy_sample(root: Path) -> Path:
    """Copy what the sample needs of the repository, as a clone would hold it."""
    root.mkdir()
    for name in ("kb", "data/recorded"):
        shutil.copytree(REPOSITORY / name, root / name)
    shutil.copy(REPOSITORY / "ragds.yaml", root)
    return root


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectRun]:
    root = copy_sample(tmp_path_factory.mktemp("sample") / "project")
    with ephemeral_instance() as instance:
        run = ProjectRun(root, instance)
        run.must()
        run.must("freeze_job", ops=recorded_sheets(root))
        yield run


def recorded_sheets(root: Path, version: str = "2026-10-01") -> dict[str, object]:
    sheets = [str(path) for path in sorted((root / "data/recorded/decisions").glob(f"*{version}*.csv"))]
    assert sheets
    return {"review_decisions": {"config": {"sheets": sheets, "reviewer": "sample reviewer"}}}


@pytest.fixture(scope="module")
def revised(sample: ProjectRun) -> ProjectRun:
    """The sample after the handbook was revised: its second golden set."""
    run = ProjectRun(sample.root, sample.instance)
    state = from_folder(sample.settings, sample.instance, REPOSITORY / "examples/kb-next")
    run.version = state.source_version
    for job, ops in (("revision_job", None), ("freeze_job", recorded_sheets(run.root, run.version))):
        outcome = runs.execute(run.config, job, run.version, run.instance, ops=ops)
        assert outcome.success and not outcome.failed_checks, (outcome.errors, outcome.failed_checks)
    return run


def test_every_request_has_its_recording_and_every_recording_its_request(
    sample: ProjectRun, revised: ProjectRun
) -> None:
    # A prompt that changed without new recordings stops the run in the fixture; a recording left over shows here.
    asked = [row for run in (sample, revised) for row in run.rows("draft_requests", AskedRow)]
    asked += [row for run in (sample, revised) for row in run.rows("top_up_requests", AskedRow)]
    recorded = {key for key, _ in read_results(sample.root / "data/recorded/replies")}
    door = Claude(sample.settings)
    used = {row["key"] for row in door.ledger.rows()}
    door.close()
    assert used == recorded
    assert {row.request_key for row in asked} < recorded and all(row.replayed for row in asked)


def test_the_plan_is_met_exactly(sample: ProjectRun) -> None:
    planned = sum(row.planned for row in sample.rows("question_plan", PlanRow))
    assert planned == sample.settings.plan.questions
    assert {c.language for c in sample.rows("candidates", Candidate)} == {"en", "ja", "it"}


def test_no_confidential_document_is_sent_or_frozen(sample: ProjectRun) -> None:
    for name in ("question_plan", "drafts", "candidates"):
        assert "confidential/salary-bands.md" not in sample.table(name).read(["document_path"]).column(0).to_pylist()
    assert not list(sample.snapshots()[-1].rglob("*salary*"))
    overview = (sample.settings.data_dir / "tables/kb_overview" / f"{sample.version}.md").read_text(encoding="utf-8")
    assert "salary-bands.md" in overview and "Moving within a band" not in overview


def test_the_decisions_fit_the_candidates(sample: ProjectRun) -> None:
    decisions = sample.rows("review_decisions", Decision)
    kinds = {decision.keep for decision in decisions}
    assert kinds == {"keep", "drop", "fix"}
    for decision in decisions:
        assert decision.reviewer == "sample reviewer" and decision.decided_at
        assert json.loads(decision.seen)["question"]
        assert decision.source.partition(":")[0] in {"review-2026-10-01.csv", "no_answer-2026-10-01.csv"}


def test_a_correction_is_in_the_set_and_its_original_is_not(sample: ProjectRun) -> None:
    candidates = {c.id: c for c in sample.rows("candidates", Candidate)}
    golden = {item["provenance"]["candidate_id"]: item for item in sample.golden()}
    fixes = [d for d in sample.rows("review_decisions", Decision) if d.keep == "fix"]
    for decision in fixes:
        corrected = json.loads(decision.corrected)
        assert decision.candidate_id not in golden
        (item,) = [i for i in golden.values() if i["question"] == corrected["question"]]
        assert item["answer"] == corrected["answer"]
        assert candidates[decision.candidate_id].document_path == item["passages"][0]["document_path"]
        story = why(sample.settings, sample.version, item["id"])
        assert f"{decision.candidate_id}: " in story and "review: fix" in story and f"golden set: {item['id']}" in story
        assert story == why(sample.settings, sample.version, decision.candidate_id), "one story, from any of its ids"


def test_the_funnel_tells_the_whole_story(sample: ProjectRun) -> None:
    steps = sample.rows("funnel", FunnelStep)
    assert not [fault for step in steps for fault in step.faults()]
    assert steps[-1].kept == len(sample.golden()) > 30
    dropped = sample.rows("golden_drops", Drop)
    assert len(dropped) == steps[-2].dropped + steps[-1].dropped
    assert all(drop.reason and drop.detail for drop in dropped)


def test_the_same_inputs_give_the_same_bytes_anywhere(sample: ProjectRun, tmp_path: Path) -> None:
    root = copy_sample(tmp_path / "elsewhere")
    with ephemeral_instance() as instance:
        other = ProjectRun(root, instance)
        other.must()
        other.must("freeze_job", ops=recorded_sheets(root))
        one, two = sample.snapshots()[-1], other.snapshots()[-1]
        names = {str(p.relative_to(one)) for p in one.rglob("*") if p.is_file()}
        assert names == {str(p.relative_to(two)) for p in two.rglob("*") if p.is_file()}
        for name in names:
            assert (one / name).read_bytes() == (two / name).read_bytes(), name
        other.must("freeze_job", ops=recorded_sheets(root))
        assert len(other.snapshots()) == 1, "the same again makes no new snapshot"


def test_the_revision_tells_what_went_stale_and_keeps_the_rest(sample: ProjectRun, revised: ProjectRun) -> None:
    items = {
        item.id: item for item in revised.rows("revalidated_items", RevalidatedItem) if item.member == "golden_set"
    }
    before, after = ({item["id"]: item for item in run.golden()} for run in (sample, revised))
    assert items.keys() == before.keys()
    stale = {id_ for id_, item in items.items() if item.outcome == "to_people"}
    told = " ".join(item.diff for item in items.values() if item.id in stale)
    assert "[-38-]{+35+}" in told and "[-１４-]{+１２+}" in told, "an amount and a full-width deadline changed"
    moved = {item.now_document_path for item in items.values() if item.rung == "relocated"}
    assert moved == {"procurement.md", "security/incident-runbook.md"}, "a section that moved, and a file renamed"
    for id_ in before.keys() - stale:
        assert after[id_]["question"] == before[id_]["question"] and after[id_]["split"] == before[id_]["split"]
    changes = {row.id: row for row in revised.rows("changelog", ChangelogRow)}
    assert {changes[id_].change for id_ in stale} <= {"rechecked", "dropped", "waiting"}
    assert (revised.snapshots()[-1] / "changelog.md").exists()


def test_a_prompt_without_its_recording_stops_with_the_number_and_the_cost(tmp_path: Path) -> None:
    root = copy_sample(tmp_path / "changed")
    text = (root / "kb" / "procurement.md").read_text(encoding="utf-8")
    (root / "kb" / "procurement.md").write_text(text.replace("EUR 36", "EUR 37"), encoding="utf-8")
    with ephemeral_instance() as instance:
        run = ProjectRun(root, instance)
        outcome = run.run()
        assert not outcome.success
        (said,) = [error for error in outcome.errors if error.startswith("drafts")]
        assert "1 of 12 requests have no recorded reply" in said and "$" in said
        pending = (root / "data/outbox/generate_easy.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(pending) == 1 and "EUR 37" in pending[0]
