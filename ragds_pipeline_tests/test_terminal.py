"""What a run shows while it goes: a line on a terminal, plain lines in a file, every call of every step."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from ragds_pipeline.claude import Claude
from ragds_pipeline.claude.progress import AT_LEAST_EVERY_S, AUDIENCE, Progress, ProgressReporter
from ragds_pipeline.terminal import SAY_S, Terminal
from ragds_pipeline_tests.claude.asking import request, settings
from ragds_pipeline_tests.costs.judging import answer_and_judge
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.projects import REPOSITORY


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


KEY = "sk-ant-very-secret-terminal-0123456789"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with LoopbackServer(responder=answer_and_judge) as running:
        yield running


def progress(done: int, total: int = 10) -> Progress:
    return Progress(done, total, 0, Decimal("0.5"), 2.0, 3.0, "judge_support")


def test_a_terminal_shows_one_line_that_is_rewritten_and_taken_away() -> None:
    clock, screen = Clock(), Screen()
    with Terminal(screen, clock) as terminal:
        terminal.step("drafts")
        for done in range(1, 11):
            clock.now += 0.06
            terminal.progress(progress(done))
        terminal.said("batch b1 ended")
    shown = screen.getvalue().split("\r\x1b[K")
    assert shown[1] == "drafts ..." and shown[-1] == ""
    told = [part for part in shown if "of 10 calls" in part]
    assert "drafts (judge_support): 10 of 10 calls, 0 failed, 2.0/s, $0.5000 spent, about 3 s left"[:79] in told[-1]
    assert 4 <= len(told) <= 7, "not more often than people can read"
    assert screen.getvalue().count("\n") == 1 and "drafts: batch b1 ended\n" in shown


def test_a_file_gets_a_plain_line_every_so_often_and_at_the_end() -> None:
    clock, file = Clock(), io.StringIO()
    with Terminal(file, clock) as terminal:
        terminal.step("drafts")
        for done in range(1, 11):
            clock.now += SAY_S / 4
            terminal.progress(progress(done))
    lines = file.getvalue().splitlines()
    assert [line.split(": ")[1].split(",")[0] for line in lines] == [f"{n} of 10 calls" for n in (4, 8, 10)]
    assert "\x1b" not in file.getvalue()


def test_a_long_way_is_told_of_at_least_every_half_minute() -> None:
    clock = Clock()
    told: list[Progress] = []
    reporter = ProgressReporter(10_000, lambda: Decimal(0), told.append, clock=clock)
    for _ in range(100):
        clock.now += AT_LEAST_EVERY_S / 10
        reporter.count(failed=False)
    assert len(told) == 1 + 9 and told[-1].done < 500, "the first, and one each half minute"


def test_whoever_watches_sees_every_outcome_and_only_while_watching(tmp_path: Path, server: LoopbackServer) -> None:
    class Seen:
        def __init__(self) -> None:
            self.done: list[int] = []

        def step(self, name: str) -> None:
            raise AssertionError("no run of Dagster here")

        def progress(self, progress: Progress) -> None:
            self.done.append(progress.done)
            assert progress.task == "test" and progress.total == 30

        def said(self, text: str) -> None:
            raise AssertionError(text)

    seen = Seen()
    server.responder = lambda body: "yes"
    door = Claude(settings(tmp_path, server.url), on_progress=lambda progress: None)
    with AUDIENCE.joined_by(seen):
        door.ask([request(f"q{n}") for n in range(30)])
    door.ask([request("another")])
    door.close()
    assert seen.done == list(range(1, 31))


def test_the_command_line_shows_how_far_it_is(tmp_path: Path, server: LoopbackServer) -> None:
    (tmp_path / "kb").mkdir()
    text = "".join(f"Rule {n} grants {n + 10} days for case {n}.\n\n" for n in range(40))
    (tmp_path / "kb" / "rules.md").write_text(f"# Rules\n\n{text}", encoding="utf-8")
    claude = {"base_url": server.url, "check_models": False}
    given = {"plan": {"questions": 6}, "claude": claude, "filters": {"judges": {"enabled": ["support"]}}}
    (tmp_path / "ragds.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "ragds_pipeline.cli", "run"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=secondary, text=True
    ) as process:
        os.close(secondary)
        shown = b""
        try:
            while piece := os.read(primary, 65_536):
                shown += piece
        except OSError:  # the other end is closed
            pass
        assert process.stdout is not None
        printed = process.stdout.read()
    os.close(primary)
    assert process.returncode == 0, shown.decode()
    assert "Funnel" in printed and "\x1b" not in printed
    lines = shown.decode().split("\r\x1b[K")
    assert any(line.endswith(" ...") for line in lines), lines
    assert any("support_verdicts (judge_support): " in line and " calls, 0 failed" in line for line in lines)
    assert lines[-1] == ""
    # The key is in nothing that was shown, and in no file: ledger and its export, tables, Dagster's own event log.
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"ledger.sqlite", "ledger.parquet", "ragds.duckdb"} <= {path.name for path in files}
    assert KEY not in shown.decode() + printed
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    # A pipe gets no control characters, and a run of seconds no lines.
    piped = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert "\x1b" not in piped.stderr
