"""Two processes on one ledger, in SQLite and in PostgreSQL: what both ask is sent once, and one cap holds for both."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from ragds_pipeline.claude.ledger import Ledger
from ragds_pipeline_tests.claude.asker import start
from ragds_pipeline_tests.claude.asking import request
from ragds_pipeline_tests.loopback import LoopbackServer

CALLS = 120


def both(root: Path, url: str, ledger_url: str, run_ids: tuple[str, str], **claude: Any) -> list[dict[str, Any]]:
    """Let two processes ask the same at once, from the two ends, and return what each got."""
    outs = [root / "one.json", root / "two.json"]
    given = {"ledger": ledger_url, "concurrency": 8, "budget_usd": 100, **claude}
    processes = [
        start(root, url, CALLS, run_id, out, {**given, "backwards": bool(n)})
        for n, (run_id, out) in enumerate(zip(run_ids, outs, strict=True))
    ]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    return [json.loads(out.read_text(encoding="utf-8")) for out in outs]


def test_what_both_ask_is_sent_once(tmp_path: Path, ledger_url: str) -> None:
    with LoopbackServer(latency=0.03) as server:
        one, two = both(tmp_path, server.url, ledger_url, ("run-a", "run-b"))
    keys = {request(f"q{n}").key for n in range(CALLS)}
    assert one.keys() == two.keys() == keys
    assert set(server.paid.values()) == {1} and server.calls == CALLS
    assert all(one[key]["text"] == two[key]["text"] and one[key]["ok"] and two[key]["ok"] for key in keys)
    # Each reply was paid by exactly one of them.
    assert all(one[key]["replayed"] != two[key]["replayed"] for key in keys)


def test_one_cap_holds_for_two_processes_of_a_run(tmp_path: Path, ledger_url: str) -> None:
    cap = Decimal("0.0006")
    with LoopbackServer(latency=0.01) as server:
        one, two = both(tmp_path, server.url, ledger_url, ("run-a", "run-a"), budget_usd=str(cap))
    ledger = Ledger(ledger_url)
    spent = sum(Decimal(row["cost_usd"]) for row in ledger.rows())
    ledger.close()
    assert 0 < spent <= cap
    refused = [key for key in one if not one[key]["ok"]]
    assert refused and server.calls == sum(one[key]["ok"] or two[key]["ok"] for key in one)


def test_a_killed_process_leaves_its_requests_to_the_other(tmp_path: Path, ledger_url: str) -> None:
    given = {"ledger": ledger_url, "concurrency": 8, "budget_usd": 100}
    with LoopbackServer(latency=30) as server:  # the first never gets a reply
        first = start(tmp_path, server.url, 8, "run-a", tmp_path / "one.json", dict(given))
        while server.most_concurrent < 8:
            time.sleep(0.01)
        second = start(tmp_path, server.url, 8, "run-b", tmp_path / "two.json", dict(given))
        time.sleep(0.5)  # it waits: nothing is sent twice while the first lives
        assert second.is_alive() and len(server.requests) == 8
        server.latency = 0.0
        first.kill()
        first.join()
        second.join(30)
        assert second.exitcode == 0
    assert all(one["ok"] for one in json.loads((tmp_path / "two.json").read_text(encoding="utf-8")).values())


def test_two_processes_may_make_the_tables_at_once(tmp_path: Path, ledger_url: str) -> None:
    processes = [start(ledger_url, target=_open) for _ in range(6)]
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0] * 6


def _open(url: str) -> None:
    Ledger(url).close()
