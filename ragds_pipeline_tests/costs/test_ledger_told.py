"""``ragds ledger --sum`` and ``ragds batches``, over a ledger with batches that were never collected."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from ragds_pipeline import cli, ledger_told
from ragds_pipeline.claude.batch_store import BatchStore
from ragds_pipeline.claude.ledger import Ledger, ledger_url
from ragds_pipeline.config import load_settings
from ragds_pipeline_tests.claude.asking import request

MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "claude-haiku-5-5", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "yes"}], "usage": {"input_tokens": 70, "output_tokens": 3},
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ragds.yaml").write_text(yaml.safe_dump({"plan": {"questions": 3}}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(ledger_url(load_settings(tmp_path / "ragds.yaml")))
    for number in range(5):
        run = "run-1" if number < 3 else ""
        ledger.put(request(f"q{number}"), MESSAGE, Decimal("0.0015"), "api", run, "req", "rev-1")
    store = BatchStore(ledger.engine)
    made = store.open_intent([request("b1").key, request("q0").key], "http://one", "", 60)
    unclear = store.open_intent([request("b2").key], "http://one", "", 60)
    assert made is not None and unclear is not None
    store.created(made, "msgbatch_7")
    ledger.close()
    return tmp_path


def test_the_kinds_of_sums_are_those_of_the_command_line() -> None:
    assert tuple(ledger_told.KINDS) == cli.KINDS


def test_entries_are_summed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ledger", "--sum", "task", "run"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["task", "run", "calls", "input", "output", "cache", "write", "cache", "read", "USD"]
    assert lines[1:] == [
        ["test", "(none)", "2", "140", "6", "0", "0", "0.003000"],
        ["test", "run-1", "3", "210", "9", "0", "0", "0.004500"],
        ["all", "5", "350", "15", "0", "0", "0.007500"],
    ]
    assert cli.main(["ledger", "--sum", "day", "--out", str(root / "sums.txt")]) == 0
    assert (root / "sums.txt").read_text(encoding="utf-8").splitlines()[1].startswith("20")


def test_the_sum_of_nothing_is_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ragds.yaml").write_text("{}", encoding="utf-8")
    assert cli.main(["--config", str(tmp_path / "ragds.yaml"), "ledger", "--sum", "model"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "0", "0", "0", "0", "0", "0.000000"]


def test_open_batches_are_listed_and_forgotten_on_purpose(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["batches"]) == 0
    listed = capsys.readouterr().out
    (made,) = [line.split() for line in listed.splitlines() if line.startswith("msgbatch_7")]
    assert made[1] == "made" and made[4:7] == ["2", "1", "0.0000"], "one of its two is answered"
    (unclear,) = [line.split()[0] for line in listed.splitlines() if "perhaps made" in line]
    assert cli.main(["batches", "forget", "msgbatch_7"]) == 1
    assert "add --yes" in capsys.readouterr().err
    assert cli.main(["batches", "forget", "msgbatch_8", "--yes"]) == 1
    assert cli.main(["batches", "forget", "--yes"]) == 1
    assert "no id given" in capsys.readouterr().err
    for batch in ("msgbatch_7", unclear):
        assert cli.main(["batches", "forget", batch, "--yes"]) == 0
    assert "2 requests may be asked" in capsys.readouterr().out
    assert cli.main(["batches"]) == 0 and "No open batches" in capsys.readouterr().out
