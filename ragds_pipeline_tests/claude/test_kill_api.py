"""``kill -9`` at twenty points of a run through the api backend: nothing that is in the ledger is asked again."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

from ragds_pipeline.claude.ledger import Ledger
from ragds_pipeline_tests.claude.asker import start
from ragds_pipeline_tests.claude.asking import request
from ragds_pipeline_tests.loopback import LoopbackServer, body_hash

CALLS = 420
KILLS = 20
SEED = 20262


def ledgered(root: Path) -> dict[str, str]:
    """Return the messages in the ledger, by key."""
    if not (root / "ledger.sqlite").exists():
        return {}
    ledger = Ledger(f"sqlite:///{root / 'ledger.sqlite'}")
    rows = {row["key"]: row["message"] for row in ledger.rows()}
    ledger.close()
    return rows


def text_of(message: str) -> str:
    return str(next(block["text"] for block in json.loads(message)["content"] if block["type"] == "text"))


def test_what_is_in_the_ledger_survives_and_is_not_sent_again(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    points = sorted(chance.sample(range(1, CALLS - 40), KILLS))
    asked = {one.key: one for one in (request(f"q{n}") for n in range(CALLS))}
    digests = {one.key: body_hash(one.params) for one in asked.values()}
    out, claude = tmp_path / "out.json", {"concurrency": 8, "budget_usd": 100}
    with LoopbackServer(responder=lambda body: f"re: {body['messages'][0]['content']}") as server:
        server.latency = 0.02
        for number, point in enumerate(points):
            before = ledgered(tmp_path)
            paid_before = server.paid
            process = start(tmp_path, server.url, CALLS, f"run-{number % 3}", out, dict(claude))
            while server.calls < point and process.is_alive():
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.03))  # anywhere between a reply, its commit and the next call
            assert process.is_alive()
            process.kill()
            process.join()
            after = ledgered(tmp_path)
            assert {key: after.get(key) for key in before} == before, "a reply was lost or changed"
            paid = server.paid
            assert all(paid[digests[key]] == paid_before[digests[key]] for key in before), "sent again"
        done = ledgered(tmp_path)
        paid_before = server.paid
        process = start(tmp_path, server.url, CALLS, "run-last", out, dict(claude))
        process.join(60)
        assert process.exitcode == 0
        paid = server.paid
        assert all(paid[digests[key]] == paid_before[digests[key]] for key in done)

    assert out.exists() and len(done) >= points[-1] - 8 * KILLS
    outcomes = json.loads(out.read_text(encoding="utf-8"))
    rows = ledgered(tmp_path)
    # The outcome is that of a run which nobody disturbed: each question with its own answer, once.
    assert outcomes.keys() == rows.keys() == asked.keys()
    for key, one in asked.items():
        assert outcomes[key]["ok"] and outcomes[key]["text"] == text_of(rows[key]) == f"re: {one.item}"
    # Only what was in flight at a kill was paid again.
    again = sum(paid.values()) - CALLS
    assert 0 <= again <= 8 * KILLS
