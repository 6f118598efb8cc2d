"""``ragds`` as a newcomer runs it: the demo in processes and in the poorest locale, the rest in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragds_pipeline import cli, runs
from ragds_pipeline_tests.integration.test_sample import copy_sample
from ragds_pipeline_tests.projects import REPOSITORY

POOR = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def ragds(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")}
    return subprocess.run(
        [sys.executable, "-W", "error::EncodingWarning", "-m", "ragds_pipeline.cli", *arguments],
        cwd=root,
        env={**kept, "DAGSTER_DISABLE_TELEMETRY": "1", "PYTHONPATH": str(REPOSITORY), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


class Here:
    """The command line in this process: a start costs seconds, and here it is not what is tested."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in ``root`` and return what it printed, as if it had been a process."""
        with self.monkeypatch.context() as patch:
            patch.chdir(root)
            for name in ("DAGSTER_HOME", runs.STATE_VARIABLE):
                patch.setenv(name, "")  # so that what the command sets is taken back
            self.capsys.readouterr()
            code = cli.main(arguments)
            printed = self.capsys.readouterr()
        return subprocess.CompletedProcess(list(arguments), code, printed.out, printed.err)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(monkeypatch, capsys)


def test_the_demo_in_the_c_locale(tmp_path: Path) -> None:
    root = copy_sample(tmp_path / "project")
    done = ragds(root, "demo", **POOR)
    assert done.returncode == 0, done.stderr
    for word in (
        "Funnel (planned: 40 questions)",
        "generate",
        "review",
        "freeze",
        "Cost:",
        "review.xlsx",
        "snapshot-0001",
    ):
        assert word in done.stdout, done.stdout
    (snapshot,) = (root / "data/golden/2026-10-01").glob("snapshot-*")
    items = [json.loads(line) for line in (snapshot / "golden_set.jsonl").read_text(encoding="utf-8").splitlines()]
    assert any("３０" in passage["content"] or "日" in passage["content"] for i in items for passage in i["passages"])
    again = ragds(root, "demo", **POOR)
    assert again.returncode == 0 and len(list((root / "data/golden/2026-10-01").glob("snapshot-*"))) == 1
    assert ragds(root, "verify").stdout.count("all as frozen") == 1
    assert "Funnel" in ragds(root, "status", **POOR).stdout
    exported = [json.loads(line) for line in ragds(root, "ledger").stdout.splitlines()]
    assert {row["task"] for row in exported} == {
        "generate_easy", "judge_ambiguity", "answer_closed_book", "judge_support", "judge_class",
        "generate_no_answer", "ask_whole_kb",
    }  # fmt: skip
    story = ragds(root, "why", items[0]["id"], **POOR).stdout
    assert "support: " in story and "ambiguity: ok" in story and "review: " in story and "golden set: g-0001" in story
    assert "in no table" in ragds(root, "why", "c-nothing").stderr
    (snapshot / "golden_set.jsonl").write_text("", encoding="utf-8")
    damaged = ragds(root, "verify")
    assert damaged.returncode == 1 and "was changed after freezing" in damaged.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plan: {questions: 0}", "plan.questions"),
        ("plan: {question: 4}", "plan.question"),
        ("kb: {passages: {target_chars: 500, max_chars: 300}}", "target_chars"),
        ("claude: {models: {generator: claude-unknown}}", "claude-unknown"),
        ("claude: {api_key: sk-x}", "api_key"),
        ("kb: {path: nowhere}", "nowhere"),
        ("- a list", "expected a mapping"),
        ("a: [", "cannot be read"),
        ("root: /", "root is not a setting"),
    ],
)
def test_a_bad_configuration_stops_with_the_line_to_mend(here: Here, tmp_path: Path, text: str, message: str) -> None:
    root = copy_sample(tmp_path / "project")
    (root / "ragds.yaml").write_text(text, encoding="utf-8")
    done = here(root, "run")
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_no_key_is_a_clear_stop(here: Here, tmp_path: Path) -> None:
    root = copy_sample(tmp_path / "project")
    (root / "ragds.yaml").write_text("plan: {questions: 5}\n", encoding="utf-8")
    done = here(root, "run")
    assert done.returncode == 1 and "ANTHROPIC_API_KEY is not set" in done.stderr
    assert "estimated cost $" in done.stderr and "Traceback" not in done.stderr


def test_a_bad_kb_yaml_names_the_field(here: Here, tmp_path: Path) -> None:
    root = copy_sample(tmp_path / "project")
    (root / "kb" / "kb.yaml").write_text("source_version: '../../etc'\n", encoding="utf-8")
    done = here(root, "run")
    assert done.returncode == 1 and "source_version" in done.stderr
    (root / "kb" / "kb.yaml").write_text("source_version: 2026-10-01\n", encoding="utf-8")
    assert "Revision 2026-10-01" in here(root, "status").stdout


def test_sheets_are_imported_from_anywhere_and_refused_with_lines(here: Here, tmp_path: Path) -> None:
    root = copy_sample(tmp_path / "project")
    assert here(root, "run").returncode == 0
    assert "no such file" in here(root, "import", "nothing.csv").stderr
    good = root / "data/recorded/decisions/review-2026-10-01.csv"
    bad = tmp_path / "bad.csv"
    bad.write_bytes(good.read_bytes().replace(b'"n"', b'"hm"', 1))
    refused = here(root, "import", str(bad), "--reviewer", "Rei")
    assert refused.returncode == 1 and "hm" in refused.stdout and "not imported" in refused.stderr
    done = here(root, "import", str(good), "--reviewer", "Rei")
    assert done.returncode == 0 and "decided: 36 of 42" in done.stdout, done.stdout + done.stderr
    assert here(root, "freeze").returncode == 0


def test_a_sheet_of_an_earlier_revision_is_imported_and_frozen_after_the_kb_moved_on(
    here: Here, tmp_path: Path
) -> None:
    root = copy_sample(tmp_path / "project")
    assert here(root, "run").returncode == 0
    manifest = root / "kb" / "kb.yaml"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("2026-10-01", "2027-01-01"), encoding="utf-8")
    sheet = root / "data/recorded/decisions/review-2026-10-01.csv"
    assert here(root, "import", str(sheet)).returncode == 1, "the new revision has not been run"
    old = ("--version", "2026-10-01")
    for command in (("import", str(sheet), *old), ("freeze", *old)):
        done = here(root, *command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "Revision 2026-10-01" in here(root, "status", *old).stdout
    assert [path.name for path in (root / "data/golden").glob("*/snapshot-*")] == ["snapshot-0001"]
    unknown = here(root, "freeze", "--version", "2020")
    assert unknown.returncode == 1 and "there are: 2026-10-01, 2027-01-01" in unknown.stderr, unknown.stderr
