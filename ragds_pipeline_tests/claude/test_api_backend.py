"""The api backend by itself: waiting, stopping, repeating, and what a bug in a callback may cost."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline.claude import Claude, Failure, FailureReason, Reply
from ragds_pipeline.claude.ask import open_claude
from ragds_pipeline.claude.backends.api import Callbacks, call_all
from ragds_pipeline.claude.progress import Progress
from ragds_pipeline.claude.requests import Request
from ragds_pipeline.config import ConfigError
from ragds_pipeline_tests.claude.asking import request, settings
from ragds_pipeline_tests.loopback import Fault, FaultPlan, LoopbackServer

KEY = "sk-ant-very-secret-9876543210"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with LoopbackServer() as running:
        yield running


def told(**others: Any) -> tuple[Callbacks, dict[str, list[Any]]]:
    seen: dict[str, list[Any]] = {"message": [], "failure": [], "lost": []}
    given: dict[str, Any] = {
        "admit": lambda asked: None,
        "on_message": lambda asked, message, request_id: seen["message"].append(asked.item),
        "on_failure": lambda asked, failure: seen["failure"].append(failure),
        "on_lost": lambda asked: seen["lost"].append(asked.item),
        "on_stop": lambda: None,
    }
    return Callbacks(**{**given, **others}), seen


def call(root: Path, server: LoopbackServer, calls: int, callbacks: Callbacks, **claude: Any) -> None:
    asked = [request(f"q{n}") for n in range(calls)]
    call_all(asked, settings(root, server.url, **claude).claude, KEY, callbacks, seed=1)


def test_it_does_not_wait_past_its_deadline(tmp_path: Path, server: LoopbackServer) -> None:
    server.faults = FaultPlan(at={3: Fault("rate_limited", retry_after=3600)})
    callbacks, seen = told()
    call(tmp_path, server, 20, callbacks, concurrency=1)
    # One is told to come back in an hour; the rest is not even sent, and nobody sleeps.
    assert len(seen["message"]) == 2 and len(server.requests) == 3
    assert {failure.reason for failure in seen["failure"]} == {FailureReason.RATE_LIMITED}
    assert len(seen["failure"]) == 18 and "3600" in seen["failure"][0].detail


def test_a_rate_limit_pauses_all_workers(tmp_path: Path, server: LoopbackServer) -> None:
    server.faults = FaultPlan(at={1: Fault("rate_limited", retry_after_ms=300)})
    server.latency = 0.005
    callbacks, seen = told()
    call(tmp_path, server, 40, callbacks, concurrency=4, max_retries=0)
    assert len(seen["message"]) == 40 and len(server.requests) == 41  # each but the first needed one attempt


@pytest.mark.parametrize("kind", ["spend_limit", "spend_cap", "payment_required"])
def test_a_spend_limit_stops_the_run(tmp_path: Path, server: LoopbackServer, kind: Any) -> None:
    server.faults = FaultPlan(sequence=[None] * 5 + [Fault(kind)] * 50)
    callbacks, seen = told()
    call(tmp_path, server, 40, callbacks, concurrency=2)
    assert len(seen["message"]) == 5 and len(server.requests) <= 8
    assert {failure.reason for failure in seen["failure"]} == {FailureReason.SPEND_LIMIT}
    assert sum(failure.detail.startswith("not sent: ") for failure in seen["failure"]) >= 33


def test_a_rate_limit_without_a_time_is_waited_out(tmp_path: Path, server: LoopbackServer) -> None:
    server.faults = FaultPlan(sequence=[Fault("rate_limited")])
    callbacks, seen = told()
    call(tmp_path, server, 1, callbacks, max_retries=0)
    assert seen["message"] == ["q0"]


@pytest.mark.parametrize(
    "kind", ["truncated_stream", "stream_error", "drop_midway", "overloaded", "server_error", "drop", "html_502"]
)
def test_a_broken_long_reply_is_asked_again(tmp_path: Path, server: LoopbackServer, kind: Any) -> None:
    server.faults = FaultPlan(sequence=[Fault(kind, retry_after_ms=5)])
    callbacks, seen = told()
    asked = request("a", max_tokens=40_000)
    call_all([asked], settings(tmp_path, server.url, max_retries=2).claude, KEY, callbacks, seed=1)
    assert seen["message"] == ["a"] and not seen["failure"]
    billed = kind in ("truncated_stream", "stream_error", "drop_midway")
    assert seen["lost"] == (["a"] if kind not in ("overloaded", "server_error") else []) or not billed
    assert not billed or sum(server.paid.values()) == 2


def test_a_lost_reply_is_not_asked_again_without_money(tmp_path: Path, server: LoopbackServer) -> None:
    server.faults = FaultPlan(sequence=[Fault("drop_midway")] * 5)
    door = Claude(settings(tmp_path, server.url, budget_usd="0.00035", max_retries=3))
    (outcome,) = door.ask([request("a")]).values()
    (other,) = door.ask([request("b")]).values()
    door.close()
    assert isinstance(outcome, Failure) and outcome.reason is FailureReason.CONNECTION and outcome.possibly_paid
    assert "not tried again: could cost" in outcome.detail and sum(server.paid.values()) >= 1
    assert door.budget.spent_usd == 0 and door.budget.possibly_paid_usd > Decimal("0.0002")
    assert isinstance(other, Reply | Failure)


@pytest.mark.parametrize("callback", ["on_message", "on_failure", "admit"])
def test_a_bug_in_a_callback_loses_no_finished_reply(tmp_path: Path, server: LoopbackServer, callback: str) -> None:
    server.latency = 0.02
    server.faults = FaultPlan(at={9: Fault("bad_request")})
    kept: list[str] = []

    def broken(asked: Request, *_: Any) -> None:
        if callback == "on_failure" or asked.item == "q20":
            raise KeyError("a bug")
        if callback == "on_message":
            kept.append(asked.item)

    others: dict[str, Any] = {callback: broken}
    callbacks, seen = told(**others)
    with pytest.raises(KeyError, match="a bug"):
        call(tmp_path, server, 60, callbacks, concurrency=4)
    finished = len(kept) + len(seen["message"])
    # Every reply that was made was handed over, but for the one the bug ate; and nothing more was sent.
    assert server.calls - 1 <= finished <= server.calls and server.calls < 60


def test_a_reply_that_is_no_message_is_one_failure(tmp_path: Path, server: LoopbackServer) -> None:
    server.responder = lambda body: "fine"
    callbacks, seen = told()
    from ragds_pipeline.claude.backends import attempt

    assert attempt._plain({"a": ["\ud83d見", None], "b": None}) == {"a": ["?見", None]}
    real, broken = attempt._plain, iter([True])

    def strange(message: Any) -> Any:
        return "<html>welcome to the network</html>" if next(broken, False) else real(message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempt, "_plain", strange)
        call(tmp_path, server, 5, callbacks, concurrency=1)
    (failure,) = seen["failure"]
    assert failure.reason is FailureReason.UNREADABLE and failure.possibly_paid and len(seen["message"]) == 4


def test_a_partition_has_a_cap_over_its_runs(tmp_path: Path, server: LoopbackServer) -> None:
    given = settings(tmp_path, server.url, budget_usd=1, partition_budget_usd="0.0004")
    spent, refused = Decimal(0), 0
    for number in range(4):
        door = open_claude(given, f"run-{number}", partition="rev-1")
        outcomes = door.ask([request(f"q{number}-{n}") for n in range(20)]).values()
        spent += door.budget.spent_usd
        refused += sum(isinstance(o, Failure) and "partition's cap" in o.detail for o in outcomes)
        door.close()
    assert Decimal("0.0001") < spent <= Decimal("0.0004") and refused
    other = open_claude(given, "run-9", partition="rev-2")
    assert all(isinstance(o, Reply) for o in other.ask([request("x")]).values())
    other.close()


def test_a_run_that_comes_back_has_spent_what_it_had_spent(tmp_path: Path, server: LoopbackServer) -> None:
    given = settings(tmp_path, server.url, budget_usd="0.0004")
    doors = [open_claude(given, "run-1") for _ in range(3)]
    spent = []
    for number, door in enumerate(doors):
        door.ask([request(f"{number}-{n}") for n in range(30)])
        spent.append(door.budget.spent_usd)
        door.close()
    assert 0 < sum(spent) <= Decimal("0.0004") and spent[0] > 0 == spent[2]


def test_progress_is_told_about_twenty_times(tmp_path: Path, server: LoopbackServer) -> None:
    heard: list[Progress] = []
    door = open_claude(settings(tmp_path, server.url), "run", heard.append)
    door.ask([request(f"q{n}") for n in range(100)])
    door.close()
    assert [p.done for p in heard] == [1, *range(5, 101, 5)]
    assert all(p.total == 100 and p.calls_per_s > 0 and p.seconds_left is not None for p in heard)
    assert heard[-1].seconds_left == 0 and heard[-1].spent_usd == door.budget.spent_usd > 0
    assert "100 of 100 calls, 0 failed" in str(heard[-1])


@pytest.mark.parametrize(("provider", "extra"), [("bedrock", "boto3"), ("vertex", "google.auth")])
def test_a_provider_without_its_extra_says_what_to_install(
    tmp_path: Path, server: LoopbackServer, provider: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    door = Claude(settings(tmp_path, server.url, provider=provider))
    with pytest.raises(ConfigError, match=rf"needs {extra}.*ragds\[{provider}\]"):
        door.ask([request("a")])
    door.close()


def test_a_provider_has_no_batches(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Message Batches"):
        Claude(settings(tmp_path, None, provider="vertex", backend="batch"))


def test_bedrock_and_vertex_clients_are_made_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import anthropic

    from ragds_pipeline.claude import clients

    monkeypatch.setattr(clients, "_check_extra", lambda provider: None)
    monkeypatch.delenv("CLOUD_ML_REGION", raising=False)
    with pytest.raises(ConfigError, match=r"vertex.*region"):
        clients.open_client(settings(tmp_path, None, provider="vertex").claude, "")
    monkeypatch.setenv("CLOUD_ML_REGION", "europe-west1")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "token")
    vertex = clients.open_client(settings(tmp_path, None, provider="vertex").claude, "")
    bedrock = clients.open_client(settings(tmp_path, "http://gateway", provider="bedrock").claude, "")
    assert isinstance(vertex, anthropic.AsyncAnthropicVertex) and "europe-west1" in str(vertex.base_url)
    assert isinstance(bedrock, anthropic.AsyncAnthropicBedrock) and str(bedrock.base_url).startswith("http://gateway")
    assert vertex.max_retries == bedrock.max_retries == 0


def test_the_key_is_in_no_trace_log_or_file(
    tmp_path: Path, server: LoopbackServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    kinds: list[Any] = ["bad_request", "unauthorized", "drop", "truncated_stream", "html_502", "server_error"]
    texts = []
    for kind in kinds:
        server.faults = FaultPlan(sequence=[Fault(kind)] * 9)
        door = Claude(settings(tmp_path, server.url, max_retries=0), on_progress=lambda progress: None)
        texts.append(repr(door.ask([request(f"{kind}"), request(f"{kind} long", max_tokens=40_000)])))
        door.close()
    server.faults = FaultPlan()
    callbacks, _ = told(on_message=lambda *_: 1 / 0)
    try:
        call(tmp_path, server, 3, callbacks)
    except ZeroDivisionError as error:
        texts += ["".join(traceback.TracebackException.from_exception(error, capture_locals=False).format())]
    door = Claude(settings(tmp_path, server.url))
    door.ask([request("fine")])
    door.ledger.export_jsonl(tmp_path / "export.jsonl")
    texts.append(str(door.ledger.ledger_table().to_pylist()))
    door.close()
    assert len(texts) == len(kinds) + 2
    for text in (*texts, caplog.text):
        assert KEY not in text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"ledger.sqlite", "export.jsonl"}
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_finished_run_leaves_no_claims_and_no_threads(tmp_path: Path, server: LoopbackServer) -> None:
    import threading

    import sqlalchemy as sa

    from ragds_pipeline.claude.database import callers, claims

    server.faults = FaultPlan(at={2: Fault("bad_request"), 5: Fault("drop")})
    door = open_claude(settings(tmp_path, server.url, max_retries=0), "run")
    door.ask([request(f"q{n}") for n in range(20)])
    with door.ledger.engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(claims)).scalar() == 0
        assert connection.execute(sa.select(sa.func.sum(callers.c.in_flight))).scalar() == 0
    door.close()
    deadline = time.monotonic() + 5
    while (left := [t.name for t in threading.enumerate() if t.name.startswith("ragds-")]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.01)
    assert not left


def test_a_shared_beginning_is_written_to_the_cache_once_before_the_others_read_it(
    tmp_path: Path, server: LoopbackServer
) -> None:
    rubric = "Judge whether the answer follows from the passage, and say in one sentence why. " * 60
    asked = [request(f"q{n}", system=rubric) for n in range(12)]
    server.latency = 0.02
    door = Claude(settings(tmp_path, server.url, concurrency=8))
    outcomes = door.ask(asked)
    rows = list(door.ledger.rows())
    door.close()
    assert all(isinstance(outcome, Reply) for outcome in outcomes.values())
    assert sum(row["cache_creation_input_tokens"] > 0 for row in rows) == 1
    assert sum(row["cache_read_input_tokens"] > 0 for row in rows) == 11
    # What is stored, and what the key is made of, knows nothing of the marks.
    assert all("cache_control" not in row["request"] for row in rows)
    assert "cache_control" in str(server.requests[0].body)
