"""``ragds checks`` on the sample, as CI runs it on a pull request to the documents; and states back-filled from git."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ragds_pipeline.cli import main
from ragds_pipeline.config import load_settings
from ragds_pipeline.definitions import build_defs
from ragds_pipeline.golden import report_forms
from ragds_pipeline.golden.latest import latest_snapshot
from ragds_pipeline.golden.releases import released
from ragds_pipeline.golden.today import CHECKS, Outcome, examine
from ragds_pipeline.kb.assets import folder_revision
from ragds_pipeline.kb.current import current
from ragds_pipeline.kb.git_state import GitFailed, find_commit
from ragds_pipeline_tests.integration.test_sample import copy_sample, recorded_sheets
from ragds_pipeline_tests.projects import REPOSITORY, ProjectRun, ephemeral_instance

SNAPSHOT = "data/golden/2026-10-01/snapshot-0001"


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_sample(tmp_path_factory.mktemp("frozen") / "project")
    with ephemeral_instance() as instance:
        run = ProjectRun(root, instance)
        run.must()
        run.must("freeze_job", ops=recorded_sheets(root))
    return root


@pytest.fixture
def root(frozen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout of the documents with the frozen set in it; commands run there."""
    copy = tmp_path / "project"
    shutil.copytree(frozen, copy)
    monkeypatch.chdir(copy)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    for name in ("RAGDS_DAGSTER_STORAGE", "DAGSTER_HOME", "RAGDS_CONFIG"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # so that what a command sets is taken back
    yield copy


def items(root: Path) -> list[dict[str, Any]]:
    snapshot = latest_snapshot(root / "data/golden")
    assert snapshot is not None
    return [json.loads(line) for line in (snapshot / "golden_set.jsonl").read_text(encoding="utf-8").splitlines()]


def edit(root: Path, path: str, old: str, new: str) -> int:
    """Change a document and return the line of the change."""
    file = root / "kb" / path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    return text.count("\n", 0, text.index(old)) + 1


def test_an_unchanged_checkout_passes_and_warns_only(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", "--junit", "out/junit.xml", "--sarif", "out/ragds.sarif"]) == 0
    shown = capsys.readouterr().out
    assert f"{len(CHECKS)} checks: 0 failed" in shown and all(name in shown for name in CHECKS)
    suite = ElementTree.parse(root / "out/junit.xml").getroot()
    assert suite.get("failures") == "0" and suite.get("tests") == str(len(CHECKS))
    results = json.loads((root / "out/ragds.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    assert all(result["level"] == "warning" for result in results)
    assert not (root / "data/outbox").exists(), "no request was made"


def test_a_broken_golden_item_is_named_with_file_and_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = items(root)[0]
    passage = broken["passages"][0]
    line = edit(root, passage["document_path"], passage["content"], "All of this was rewritten in full.")
    assert main(["checks", "--github", "--junit", "junit.xml", "--sarif", "ragds.sarif"]) == 1
    told = capsys.readouterr()
    where = f"kb/{passage['document_path']}"
    assert f"{where}:{line}: {broken['id']}: evidence" in " ".join(told.out.split())
    assert f"::error file={where},line={line},title=ragds evidence_exists::{broken['id']}: evidence" in told.out
    assert "a check failed" in told.err
    failures = ElementTree.parse(root / "junit.xml").findall(".//testcase[failure]")
    assert (where, str(line)) in {(case.get("file"), case.get("line")) for case in failures}
    results = json.loads((root / "ragds.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    places = [r["locations"][0]["physicalLocation"] for r in results if r["ruleId"] == "evidence_exists"]
    assert {"artifactLocation": {"uri": where, "uriBaseId": "%SRCROOT%"}, "region": {"startLine": line}} in places


def test_the_plain_dagster_command_fails_on_errors_and_passes_on_warnings(root: Path) -> None:
    for name in ("new-notes.pdf", "broken.docx"):
        (root / "kb" / name).write_bytes(b"not what its name says")  # a warning: kb_issues
    with ephemeral_instance() as instance:
        job = build_defs(root / "ragds.yaml").resolve_job_def("checks_job")
        assert job.execute_in_process(instance=instance, raise_on_error=False).success
    passage = items(root)[0]["passages"][0]
    edit(root, passage["document_path"], passage["content"], "All of this was rewritten in full.")
    (root / "home").mkdir()
    kept = {name: value for name, value in os.environ.items() if name != "RAGDS_DAGSTER_STORAGE"}
    own = {"DAGSTER_HOME": str(root / "home"), "RAGDS_CONFIG": str(root / "ragds.yaml"), "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "job", "execute", "-m", "ragds_pipeline.definitions", "-j", "checks_job"],
        env={**kept, **own}, cwd=root, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode != 0 and "evidence_exists" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("damage", "check", "message"),
    [
        (lambda root: shutil.rmtree(root / "kb"), "kb_readable", "or mount it"),
        (lambda root: (root / "kb/kb.yaml").write_text("langage: it\n", encoding="utf-8"), "kb_readable", "langage"),
        (lambda root: shutil.rmtree(root / "data/golden"), "snapshot_intact", "no snapshot below"),
        (
            lambda root: (root / SNAPSHOT / "golden_set.jsonl").write_text("", encoding="utf-8"),
            "snapshot_intact", "was changed after freezing",
        ),
        (
            lambda root: (root / "data/golden/registry.jsonl").write_text(
                (root / "data/golden/registry.jsonl").read_text(encoding="utf-8").split("\n", 1)[1], encoding="utf-8"
            ),
            "ids_stable", "g-0001: is not in the register of ids",
        ),
        (
            lambda root: (root / "kb/kb.yaml").write_text("confidential: ['expense-rules.md']\n", encoding="utf-8"),
            "nothing_confidential", "expense-rules.md is confidential",
        ),
    ],
    ids=["no-kb", "bad-kb-yaml", "no-snapshot", "damaged-snapshot", "unknown-id", "confidential-now"],
)  # fmt: skip
def test_what_cannot_be_checked_is_never_passed(root: Path, damage: Any, check: str, message: str) -> None:
    damage(root)
    found = outcomes(root)
    assert [*found] == [*CHECKS]
    assert not found[check].passed and message in found[check].findings[0].message
    if check in ("kb_readable", "snapshot_intact"):
        for name in ("evidence_exists", "nothing_confidential", "stale_share"):
            assert found[name].findings[0].message.startswith("not checked: "), name


def outcomes(root: Path) -> dict[str, Outcome]:
    settings = load_settings(root / "ragds.yaml")
    return {outcome.name: outcome for outcome in examine(settings, lambda: folder_revision(settings))}


def test_a_renamed_document_is_no_fault_as_the_ladder_follows_it(root: Path) -> None:
    paths = {passage["document_path"] for item in items(root) for passage in item["passages"]}
    for path in sorted(paths)[:4]:
        (root / "kb" / path).rename(root / "kb" / f"moved-{Path(path).name}")
    found = outcomes(root)
    assert found["evidence_exists"].passed and found["evidence_in_place"].passed and found["stale_share"].passed


def test_many_items_in_doubt_are_a_warning_more(root: Path) -> None:
    for path in {passage["document_path"] for item in items(root) for passage in item["passages"]}:
        file = root / "kb" / path
        file.write_text("Nothing of this is what it was.\n" + path + "\n", encoding="utf-8")
    found = outcomes(root)
    assert not found["evidence_exists"].passed and report_forms.failed(found.values())
    (stale,) = found["stale_share"].findings
    assert "need a re-validation; checks.stale_share is 10%" in stale.message


def test_the_snapshot_frozen_last_is_checked_and_another_can_be_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = root / "data/golden"
    assert [release.name for release in released(golden)] == ["2026-10-01/snapshot-0001"]
    shutil.copytree(golden / "2026-10-01/snapshot-0001", root / "handed-on")
    shutil.rmtree(golden)
    assert main(["checks", "--snapshot", "handed-on"]) == 0
    assert "there is no register here" in capsys.readouterr().out
    assert latest_snapshot(golden) is None


def git(folder: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=Rei", "-c", "user.email=rei@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *settings, *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()


def test_an_old_revision_comes_out_of_git_and_nothing_else_moves(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text("data/\n", encoding="utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    git(root, "tag", "v1")
    edit(root, "kb.yaml", "2026-10-01", "2026-12-01")
    edit(root, "procurement.md", "EUR", "USD")
    git(root, "commit", "-qam", "second")
    (root / "kb/draft-of-mine.md").write_text("# Mine\n\nNot committed, and it stays here.\n", encoding="utf-8")
    shutil.rmtree(root / "data/archive")
    before = {path: path.read_bytes() for path in (root / "kb").rglob("*") if path.is_file()}
    index, pointer = (root / ".git/index").read_bytes(), current(root / "data")
    assert main(["backfill", "--git-ref", "v1"]) == 0
    assert "kb at " in (told := capsys.readouterr().out) and "revision 2026-10-01, " in told and "archived now" in told
    assert main(["backfill", "--git-ref", "main~1"]) == 0
    assert "archived before" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in (root / "kb").rglob("*") if path.is_file()} == before
    assert (root / ".git/index").read_bytes() == index and current(root / "data") == pointer
    assert git(root, "status", "--porcelain") == "?? kb/draft-of-mine.md"
    # The sample's recorded replies are to exactly this state, so it can be run whole.
    assert main(["backfill", "--git-ref", "v1", "--run"]) == 0
    assert "Revision 2026-10-01" in capsys.readouterr().out
    assert current(root / "data") == pointer, "what comes from the archive is not what the folder holds"


def test_a_folder_becomes_a_revision_and_the_present_keeps_its_name(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.rmtree(root / "data/archive")
    old = tmp_path / "old"
    shutil.copytree(root / "kb", old)
    (old / "procurement.md").write_text("# Procurement\n\nIt was all different then.\n", encoding="utf-8")
    assert main(["backfill", "--from-folder", str(old)]) == 0
    told = capsys.readouterr().out
    assert "revision 2026-10-01+" in told, "the KB folder declares the same version and keeps it"
    manifests = sorted(path.stem for path in (root / "data/archive/revisions").glob("*.json"))
    assert manifests[0] == "2026-10-01" and manifests[1].startswith("2026-10-01+") and len(manifests) == 2


def test_refs_are_refused_that_are_none(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(root, "init", "-q")
    git(root, "add", "kb")
    git(root, "commit", "-qm", "first")
    for ref in ("nothing", "", "-h", "--output=stolen", "v\nx", "v; touch stolen", "$(touch stolen)", "HEAD:kb"):
        with pytest.raises(GitFailed):
            find_commit(root, ref)
    assert main(["backfill", "--git-ref=--output=stolen"]) == 1
    assert "is no git ref" in capsys.readouterr().err and not list(root.rglob("stolen*"))


def test_a_commit_cannot_write_outside_or_run_anything(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(root, "init", "-q")
    (root / "kb/outside.md").symlink_to("../../../outside.md")
    (root / "kb/.gitattributes").write_text("*.md filter=evil export-ignore eol=crlf\n", encoding="utf-8")
    git(root, "add", "kb")
    git(root, "commit", "-qm", "first")
    git(root, "config", "filter.evil.smudge", f"touch {root}/stolen; cat")
    (root / "kb/outside.md").unlink()
    assert main(["backfill", "--git-ref", "HEAD"]) == 0, capsys.readouterr().err
    assert not (root / "stolen").exists()
    manifest = json.loads((root / "data/archive/revisions/2026-10-01.json").read_text(encoding="utf-8"))
    assert len(manifest["files"]) > 10 and "outside.md" not in {file["path"] for file in manifest["files"]}
    assert main(["backfill", "--git-ref", "HEAD", "--repo", ".", "--path", "../x"]) == 1
    assert main(["backfill", "--git-ref", "HEAD", "--repo", ".", "--path", "nowhere"]) == 1
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    (root / "kb/scan.pdf").write_bytes(pointer)
    git(root, "add", "kb")
    git(root, "commit", "-qm", "second")
    capsys.readouterr()
    assert main(["backfill", "--git-ref", "HEAD"]) == 1 and "Git LFS pointer" in capsys.readouterr().err
