"""Two thousand requests, a fifth of them met by faults of every kind: nothing is lost, nothing is paid twice."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from ragds_pipeline.claude import Failure, FailureReason, Reply
from ragds_pipeline.claude.ask import Claude
from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.requests import Usage
from ragds_pipeline_tests.claude.asking import request, settings
from ragds_pipeline_tests.loopback import Fault, FaultPlan, LoopbackServer, body_hash

CALLS = 2_000
STREAMED_EVERY = 10

FAULTS = [
    Fault("rate_limited", retry_after_ms=5), Fault("rate_limited", retry_after=0.01), Fault("overloaded"),
    Fault("overloaded", retry_after_ms=5), Fault("server_error", retry_after_ms=5),
    Fault("unavailable", retry_after_ms=5), Fault("gateway_timeout", retry_after_ms=5), Fault("html_502"),
    Fault("request_timeout", retry_after_ms=5), Fault("conflict", retry_after_ms=5), Fault("bad_request"),
    Fault("not_found"), Fault("too_large"), Fault("drop"), Fault("drop_midway"), Fault("truncated_stream"),
    Fault("stream_error", retry_after_ms=5), Fault("drip", pieces=3, piece_delay=0.001), Fault("slow", delay=0.01),
    Fault("hang", delay=0.01), Fault("refusal"), Fault("max_tokens"), Fault("thinking_only"), Fault("no_content"),
    Fault("pause_turn"), Fault("malformed"),
]  # fmt: skip
"""Every kind but those that end a run: these have tests of their own."""


@pytest.fixture(scope="module")
def server() -> LoopbackServer:
    return LoopbackServer(faults=FaultPlan(shares=[(fault, 0.2 / len(FAULTS)) for fault in FAULTS], seed=20261))


def test_every_request_ends_once_and_nothing_is_paid_twice(
    tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    # A wait that the server does not ask for is the one thing here that would cost time and prove nothing.
    monkeypatch.setattr("ragds_pipeline.claude.backends.api.backoff", lambda attempt, chance: 0.01)
    asked = [request(f"q{n}", **({"max_tokens": 17_000} if n % STREAMED_EVERY == 0 else {})) for n in range(CALLS)]
    told: list[object] = []
    with server:
        given = settings(tmp_path, server.url, concurrency=16, max_retries=4, timeout_s=60, budget_usd=1000)
        door = Claude(given, "run-1", told.append, "rev-1")
        outcomes = door.ask(asked)
        again = door.ask(asked)
        rows = list(door.ledger.rows())
        door.close()

    assert outcomes.keys() == {one.key for one in asked} and server.problems == []
    replies = {key for key, outcome in outcomes.items() if isinstance(outcome, Reply)}
    reasons = Counter(outcome.reason for outcome in outcomes.values() if isinstance(outcome, Failure))
    assert len(replies) > 0.85 * CALLS
    assert {FailureReason.REJECTED, FailureReason.TOO_LARGE, FailureReason.REFUSED, FailureReason.TRUNCATED} <= set(
        reasons
    )
    assert FailureReason.OVER_BUDGET not in reasons and FailureReason.ELSEWHERE not in reasons

    # Paid more than once only where the server cut its own reply; and what arrived is in the ledger, once.
    cut: Counter[str] = Counter()
    for seen in server.requests:
        broken = seen.fault in ("drop_midway", "truncated_stream", "stream_error") and seen.status == 200
        cut[seen.hash] += broken
    keys = {body_hash(one.params): one.key for one in asked}
    ledgered = {row["key"] for row in rows}
    assert len(rows) == len(ledgered)
    excess = 0
    for digest, times in server.paid.items():
        assert times <= 1 + cut[digest]
        excess += times - (keys[digest] in ledgered)
    assert 0 < excess <= sum(cut.values())

    # The ledger's sum is the server's, but for the replies that were cut.
    usage = server.usage["claude-haiku-5-5"]
    output = sum(row["output_tokens"] for row in rows)
    assert sum(1 for row in rows) == usage.messages - excess
    assert output < usage.output_tokens
    prices = PriceTable({})
    for row in rows:
        cost = prices.cost(row["model"], Usage(row["input_tokens"], row["output_tokens"]))
        assert Decimal(row["cost_usd"]) == cost and (row["run_id"], row["partition"]) == ("run-1", "rev-1")
    assert door.budget.spent_usd == sum(Decimal(row["cost_usd"]) for row in rows)
    assert door.budget.possibly_paid_usd > 0

    # Asked again, only what has no reply is sent, and every reply is the same.
    assert told and len(told) >= 20
    for key in replies:
        first, second = outcomes[key], again[key]
        assert isinstance(first, Reply) and isinstance(second, Reply)
        assert (second.text, second.cost_usd, second.replayed) == (first.text, first.cost_usd, True)


@pytest.mark.parametrize("streamed", [False, True])
def test_without_cut_replies_the_sums_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    monkeypatch.setattr("ragds_pipeline.claude.backends.api.backoff", lambda attempt, chance: 0.01)
    whole = [fault for fault in FAULTS if fault.kind not in ("drop_midway", "truncated_stream", "stream_error")]
    plan = FaultPlan(shares=[(fault, 0.2 / len(whole)) for fault in whole], seed=7)
    asked = [request(f"q{n}", max_tokens=17_000 if streamed else 400) for n in range(120)]
    with LoopbackServer(faults=plan) as server:
        door = Claude(settings(tmp_path, server.url, concurrency=16, max_retries=4, timeout_s=60, budget_usd=1000))
        door.ask(asked)
        rows = list(door.ledger.rows())
        door.close()
    usage = server.usage["claude-haiku-5-5"]
    assert len(rows) == usage.messages == len(server.paid) and set(server.paid.values()) == {1}
    assert sum(row["output_tokens"] for row in rows) == usage.output_tokens
    assert sum(row["input_tokens"] for row in rows) == usage.input_tokens
