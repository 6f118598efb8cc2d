"""A data engineer's walk through the Dagster UI, from documents to two frozen sets and the next revision.

Run as a test by ``test_ui_walk``. ``python -m ragds_pipeline_tests.integration.ui_walk FOLDER`` walks in a new project
at FOLDER (``/srv/handbook``, say: its paths are to be seen) and writes the pictures of ``docs/ui.md`` to
``docs/images``.
"""

from __future__ import annotations

import csv
import re
import shutil
import sys
from pathlib import Path

import yaml
from playwright.sync_api import expect

from ragds_pipeline_tests.browser import Ui, opened, served
from ragds_pipeline_tests.projects import REPOSITORY

FIRST, NEXT = "2026-10-01", "2027-04-01"

CHECKS = (
    "changelog_adds_up",
    "funnel_reconciles",
    "ids_stable",
    "nothing_confidential",
    "requested_is_delivered",
    "spans_resolve",
    "split_leak_free",
)


def new_project(root: Path) -> Path:
    """Copy the sample to ``root``, with a sensor that does not wait long."""
    root.mkdir(parents=True, exist_ok=True)
    for name in ("kb", "examples/kb-next", "data/recorded"):
        shutil.copytree(REPOSITORY / name, root / name)
    settings = yaml.safe_load((REPOSITORY / "ragds.yaml").read_text(encoding="utf-8"))
    settings["watch"] = {"every_s": 5, "quiet_s": 0}
    (root / "ragds.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return root


def walk(root: Path, shots: Path) -> None:
    """Walk from the first page to the comparison of two frozen sets, and on to the next revision."""
    with served(root) as url, opened(url, shots) as ui:
        see_the_stages(ui)
        run_one_stage(ui)
        run_the_first_revision(ui)
        sheet, inbox = find_the_sheet(ui)
        freeze_with_a_bad_sheet_and_mend_it(ui, sheet, inbox)
        look_at_what_was_frozen(ui, root)
        drop_one_and_freeze_again(ui, sheet, inbox)
        compare_the_two(ui)
        let_the_sensor_find_the_next_revision(ui, root)
        see_what_went_stale(ui)


def see_the_stages(ui: Ui) -> None:
    ui.open("/asset-groups")
    graph = ui.page.locator("svg").first
    expect(graph).to_be_visible()
    for group in ("kb", "candidates", "filters", "review", "golden", "costs", "revalidation"):
        expect(ui.page.get_by_text(group, exact=True).first).to_be_visible()
    ui.picture("lineage")


def run_one_stage(ui: Ui) -> None:
    _, status = ui.launch(ui.choose_partition("asset-groups/kb", FIRST))
    assert status == "SUCCESS", status
    ui.partition("kb_documents", FIRST)
    assert int(ui.fact("documents")) > 10 and "expense-rules.md" in ui.fact("preview")


def run_the_first_revision(ui: Ui) -> None:
    dialog = ui.choose_partition("jobs/revision_job", FIRST)
    assert "Warning" not in dialog.inner_text(), "a first run must not look as if it could not work"
    ui.picture("launch")
    run, status = ui.launch(dialog)
    assert status == "SUCCESS", status
    ui.open(f"/runs/{run}", "Success")
    ui.partition("cost_estimate", FIRST)
    assert re.fullmatch(r"\$\d+\.\d\d", ui.fact("estimated cost"))
    assert int(ui.fact("calls to pay")) > 0
    assert "judge_support" in ui.fact("by task")
    ui.picture("cost-estimate")
    ui.partition("costs", FIRST)
    assert ui.fact("paid for this revision") == "$0.00", "the sample's replies are recordings"
    assert ui.fact("calls") == ui.fact("replayed") != "0"
    ui.picture("costs")


def find_the_sheet(ui: Ui) -> tuple[Path, Path]:
    ui.partition("review_queue", FIRST)
    assert int(ui.fact("to decide")) > 30
    sheet, inbox = Path(ui.fact("sheet (CSV)")), Path(ui.fact("put the returned sheet into"))
    assert sheet.is_file() and Path(ui.fact("sheet (Excel)")).is_file() and inbox.is_dir()
    ui.picture("review-queue")
    return sheet, inbox


def answer(sheet: Path, target: Path, said: dict[int, str], only: bool = False) -> None:
    """Fill a sheet as a reviewer does: ``y``, or what is said for a row; ``only`` those rows."""
    rows = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    keep = rows[0].index("keep")
    filled = [rows[0]]
    for number, row in enumerate(rows[1:], start=1):
        row[keep] = said.get(number, "y")
        if not only or number in said:
            filled.append(row)
    with target.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(filled)


def freeze_with_a_bad_sheet_and_mend_it(ui: Ui, sheet: Path, inbox: Path) -> None:
    kept = sheet.with_name("kept.csv")  # the sheet is replaced when decisions came in
    shutil.copy(sheet, kept)
    answer(kept, inbox / "review.csv", {3: "maybe"})
    run, status = ui.launch(ui.choose_partition("jobs/freeze_job", FIRST))
    assert status == "FAILURE", status
    ui.open(f"/runs/{run}", "Failure")
    expect(ui.page.get_by_text("sheets_importable").first).to_be_visible()
    wrong = r"review\.csv, line \d+, row c-\w+, column keep: 'maybe' is not a known value"
    ui.check("review_decisions", "sheets_importable", wrong)
    ui.picture("check-failed")
    answer(kept, inbox / "review.csv", {})
    _, status = ui.rerun_what_failed(run)
    assert status == "SUCCESS", status


def look_at_what_was_frozen(ui: Ui, root: Path) -> None:
    ui.check("golden_items", "spans_resolve", "Passed")
    for name in CHECKS:
        row = ui.page.get_by_role("link").filter(has_text=name).or_(ui.page.get_by_text(name, exact=True)).first
        expect(row).to_be_visible()
    expect(ui.page.get_by_text("Succeeded", exact=True)).to_have_count(len(CHECKS))
    ui.picture("checks")
    ui.partition("golden_set", FIRST)
    folder = Path(ui.fact("folder"))
    assert folder.name == "snapshot-0001" and (folder / "golden_set.jsonl").is_file()
    assert folder.is_relative_to(root.resolve())
    assert "support" in ui.fact("funnel")
    ui.picture("golden-set")


def drop_one_and_freeze_again(ui: Ui, sheet: Path, inbox: Path) -> None:
    answer(sheet.with_name("kept.csv"), inbox / "second-look.csv", {2: "n"}, only=True)
    _, status = ui.launch(ui.choose_partition("jobs/freeze_job", FIRST))
    assert status == "SUCCESS", status
    ui.partition("golden_set", FIRST)
    assert Path(ui.fact("folder")).name == "snapshot-0002"


def compare_the_two(ui: Ui) -> None:
    _, status = ui.materialize("snapshot_comparison")
    assert status == "SUCCESS", status
    ui.open("/assets/snapshot_comparison?view=events", "Metadata")
    told = ui.fact("comparison")
    assert f"{FIRST}/snapshot-0001" in told and f"{FIRST}/snapshot-0002" in told and "g-0" in told, told
    ui.picture("comparison")


def let_the_sensor_find_the_next_revision(ui: Ui, root: Path) -> None:
    before = set(ui.runs())
    shutil.rmtree(root / "kb")
    shutil.copytree(root / "examples" / "kb-next", root / "kb")
    ui.open("/automation", "kb_revision_sensor")
    sensor = ui.page.get_by_text("kb_revision_sensor", exact=True).first
    sensor.locator("xpath=following::label[1]").click()
    run, status = ui.ended(before)
    ui.open(f"/runs/{run}", NEXT)
    if status == "FAILURE":  # there are no recordings for the questions that the new text calls for
        told = ui.page.get_by_text(re.compile(r"\d+ of \d+ requests have no recorded reply")).first
        expect(told).to_be_visible()
    ui.picture("next-revision")


def see_what_went_stale(ui: Ui) -> None:
    ui.partition("kb_changes", NEXT)
    assert "expense-rules.md" in ui.fact("changed documents")
    ui.partition("revalidated_items", NEXT)
    assert f"{FIRST}/snapshot-0002" in ui.fact("held against")
    stale = ui.fact("stale", picture="stale")
    assert re.search(r"g-\d{4}", stale) and re.search(r"\[-.*-\]", stale) and re.search(r"\{\+.*\+\}", stale), stale
    ui.partition("golden_set", FIRST)
    expect(ui.page.get_by_text(NEXT).first).to_be_visible()
    ui.picture("partitions")


def _main(root: Path) -> None:
    if root.exists():
        raise SystemExit(f"{root} is there already: give a folder that is not")
    taken = root / "pictures"
    walk(new_project(root), taken)
    images = REPOSITORY / "docs" / "images"
    images.mkdir(exist_ok=True)
    used = set(re.findall(r"images/([\w-]+\.png)", (REPOSITORY / "docs" / "ui.md").read_text(encoding="utf-8")))
    for name in sorted(used):
        shutil.copy(taken / name, images / name)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
