"""From judges that drop through the audit on the sheet to the calibration, the funnel and the story of one question."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from ragds_pipeline import runs
from ragds_pipeline.cli import main
from ragds_pipeline.filters.breakdown import KEPT, faults
from ragds_pipeline.records import (
    CalibrationRow,
    Candidate,
    Decision,
    DifferenceRow,
    Drop,
    FunnelCell,
    FunnelStep,
    ProbeRow,
)
from ragds_pipeline.storage.tables import TableFile
from ragds_pipeline_tests.answering import answer_questions
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.projects import ProjectRun, project


def is_bad(text: str) -> bool:
    """Questions carry a number; a third of them is bad for the judge of support."""
    number = re.search(r"\((\d+)\)\?", text)
    return number is not None and int(number[1]) % 3 == 0


def respond(body: dict[str, Any]) -> Any:
    system = body["system"][0]["text"]
    content = body["messages"][0]["content"]
    if len(content) > 1:
        return answer_questions(body)
    text = str(content[0]["text"])
    if "You have no documents" in system:
        return {"known": False, "answer": ""}
    if "follow from the spans" in system:
        return {"reason": "not there", "verdict": "incorrect" if is_bad(text) else "correct", "needless": []}
    return {"reason": "fine", "verdict": "incorrect" if "say what the reference says" in system else "correct"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectRun]:
    root = tmp_path_factory.mktemp("calibration")
    kb = root / "kb"
    kb.mkdir()
    for name in ("alpha", "beta"):
        lines = "".join(f"In {name} rule {n} grants {n + 10} days for case {n}.\n\n" for n in range(80))
        (kb / f"{name}.md").write_text(f"# {name}\n\n{lines}", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_API_KEY", "test")
        with (
            LoopbackServer(responder=respond) as server,
            project(
                root / "p", kb, plan={"questions": 24, "top_up_rounds": 1, "chars_per_question": 100},
                filters={"judges": {"enabled": ["ambiguity", "closed_book", "support", "class"], "min_labels": 12}},
                review={"reviewer": "Rei", "audit_share": 1.0},
                claude={"base_url": server.url, "check_models": False, "concurrency": 32},
            ) as made,
        ):  # fmt: skip
            made.must()
            decide(made)
            made.must("freeze_job")
            yield made


def dropped(run: ProjectRun) -> set[str]:
    drops = run.rows("judge_drops", Drop) + run.rows("top_up_drops", Drop)
    return {drop.item_id for drop in drops if drop.stage == "support"}


def decide(run: ProjectRun) -> None:
    """Fill the sheet: of what the judge dropped one is kept, of what it passed one is dropped for its evidence."""
    rescued, refused = min(dropped(run)), min(c.id for c in run.rows("candidates", Candidate))
    sheet = run.answer(**dict.fromkeys(dropped(run), "n") | {rescued: "y", refused: "n"})
    rows = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines(True)))
    for row in rows[1:]:
        if row[rows[0].index("keep")] == "n":
            row[rows[0].index("note")] = "evidence: it does not prove this"
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


def test_the_audit_is_on_the_sheet_unmarked(run: ProjectRun) -> None:
    rows = list(csv.DictReader((run.review / "inbox/returned.csv").read_text(encoding="utf-8-sig").splitlines(True)))
    ids = [row["id"] for row in rows]
    assert len(dropped(run)) > 4 and dropped(run) < set(ids)
    assert [row["chunk_id"].split("#")[0] for row in rows] == sorted(row["chunk_id"].split("#")[0] for row in rows)
    assert not any(row["judges"] for row in rows)
    places = [at for at, id_ in enumerate(ids) if id_ in dropped(run)]
    assert places != list(range(places[0], places[0] + len(places))), "mixed with the others, not in a block"


def test_what_people_keep_of_the_audit_does_not_enter_the_set(run: ProjectRun) -> None:
    kept = {d.candidate_id for d in run.rows("review_decisions", Decision) if d.keep == "keep"}
    frozen = {item["provenance"]["candidate_id"] for item in run.golden()}
    assert kept - frozen == {min(dropped(run))} and frozen <= kept
    outcome = run.must("freeze_job")
    assert outcome.metadata["review_queue"]["to decide"] == 0
    assert outcome.metadata["review_decisions"]["of these, audited drops of the judges"] == len(dropped(run))


def test_the_calibration_counts_every_label(run: ProjectRun) -> None:
    rows = {(r.judge, r.source): r for r in run.rows("judge_calibration", CalibrationRow) if not r.language}
    support = rows["support", "people"]
    bad = len(dropped(run)) - 1
    assert support.correct_incorrect == 1 and support.incorrect_incorrect == bad and support.incorrect_correct == 1
    assert support.correct_correct == len(run.golden()) and support.enough
    assert support.expected_kappa == pytest.approx(support.kappa), "everything was seen, so nothing is to be weighted"
    assert rows["together", "people"].correct_incorrect == 1
    assert not rows["closed_book", "people"].items
    assert rows["ambiguity", "people"].why_not_enough
    worst = [row for row in run.rows("judge_differences", DifferenceRow) if row.judge == "support"]
    assert [(row.should_be, row.judged) for row in worst] == [("incorrect", "correct"), ("correct", "incorrect")]
    assert "Rei" in worst[0].label and "does not prove" in worst[0].label and worst[1].question


def test_the_check_warns_of_judges_that_nobody_measured_and_stops_nothing(run: ProjectRun) -> None:
    records = run.instance.event_log_storage.get_asset_check_execution_history(
        check_key=next(k for k in _checks(run) if k.name == "judges_agree"), limit=1
    )
    event = records[0].event
    assert event is not None and event.dagster_event is not None
    found = event.dagster_event.asset_check_evaluation_data
    assert not found.passed and found.severity.value == "WARN" and found.description is not None
    assert (
        "support: kappa 0." in found.description and "closed_book: nothing can be said of it yet" in found.description
    )


def _checks(run: ProjectRun) -> list[Any]:
    from ragds_pipeline.definitions import build_defs

    return list(build_defs(run.config).resolve_asset_graph().asset_check_keys)


def test_the_parts_of_the_funnel_add_up_to_the_whole(run: ProjectRun) -> None:
    steps, cells = run.rows("funnel", FunnelStep), run.rows("funnel_cells", FunnelCell)
    assert not faults(steps, cells) and {cell.document_path for cell in cells} == {"alpha.md", "beta.md"}
    for step in steps:
        assert sum(cell.count for cell in cells if cell.stage == step.stage) == step.came_in
    assert sum(c.count for c in cells if c.stage == "freeze" and c.fate == KEPT) == len(run.golden())
    broken = [cell for cell in cells if cell.stage != "support"]
    assert any("support" in fault for fault in faults(steps, broken))


def test_the_funnel_asset_shows_parts_reasons_examples_and_a_picture(run: ProjectRun) -> None:
    facts = run.must("freeze_job").metadata["funnel"]
    assert {"funnel", "picture", "by document", "by type", "by language", "by reason", "examples"} <= facts.keys()
    assert "data:image/svg+xml;base64," in facts["picture"] and "alpha.md" in facts["by document"]
    assert "follow from the evidence alone" in facts["by reason"]
    assert facts["examples"].count("not_supported") == 3 and "`ragds why c-" in facts["examples"]


def test_every_dropped_thing_has_its_story(run: ProjectRun, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("draft_drops", "code_drops", "judge_drops", "top_up_drops", "golden_drops")
    drops = [drop for name in names for drop in run.rows(name, Drop) if drop.item_id]
    stages = Counter(drop.stage for drop in drops)
    assert {"support", "review"} <= stages.keys() and any(drop.round for drop in drops)
    seen = set()
    for drop in drops:
        if (drop.stage, drop.reason, drop.round) not in seen:
            seen.add((drop.stage, drop.reason, drop.round))
            assert main(["--config", str(run.config), "why", drop.item_id]) == 0
            said = capsys.readouterr().out
            assert f"dropped by {drop.stage}: {drop.reason}" in said and drop.question in said
            assert "d-" in said, "from the draft on"


def test_the_funnel_on_the_command_line(run: ProjectRun, capsys: pytest.CaptureFixture[str]) -> None:
    for by, sign in (("document", "alpha.md"), ("type", "fact"), ("language", "en"), ("reason", "ragds why c-")):
        assert main(["--config", str(run.config), "funnel", "--by", by]) == 0
        assert sign in capsys.readouterr().out
    assert main(["--config", str(run.config), "funnel"]) == 0
    assert "support" in capsys.readouterr().out


def test_the_probe_job_needs_no_partition_and_the_calibration_then_knows_the_probes(
    run: ProjectRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    ops = {"probe_verdicts": {"config": {"judges": ["ambiguity", "support"]}}}
    outcome = runs.execute(run.config, "probe_job", None, run.instance, ops=ops)
    assert outcome.success, outcome.errors
    table = TableFile(run.settings.data_dir / "tables" / "probe_verdicts.parquet")
    rows = list(table.records(ProbeRow))
    assert {row.judge for row in rows} == {"ambiguity", "support"} and {row.probe_set for row in rows} > {"injection"}
    assert "estimated" in str(outcome.metadata["probe_verdicts"])
    run.must("freeze_job")
    found = {(r.judge, r.source) for r in run.rows("judge_calibration", CalibrationRow)}
    assert ("ambiguity", "probes") in found and ("class", "probes") not in found
    with duckdb.connect(str(run.settings.data_dir / "ragds.duckdb"), read_only=True) as connection:
        assert connection.sql("select count(*) from probe_verdicts").fetchall() == [(len(rows),)]
    assert "planted texts steered" in outcome.metadata["probe_calibration"]["planted texts"]


def test_another_share_does_not_make_a_sent_sheet_unreadable(run: ProjectRun) -> None:
    text = run.config.read_text(encoding="utf-8")
    (run.review / "inbox" / "returned.csv").write_bytes((run.review / "inbox" / "returned.csv").read_bytes() + b"\r\n")
    run.config.write_text(text.replace("audit_share: 1.0", "audit_share: 0.0"), encoding="utf-8")
    try:
        run.must("freeze_job")
    finally:
        run.config.write_text(text, encoding="utf-8")
