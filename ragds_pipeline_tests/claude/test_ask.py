"""``ask`` against a server that speaks the real wire format: replies, failures, ledger, budget, recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline.claude import Claude, Failure, FailureReason, RepliesMissing, Reply, Request
from ragds_pipeline.config import ConfigError, Settings
from ragds_pipeline_tests.loopback import Answer, Fault, FaultPlan, LoopbackServer

KEY = "sk-ant-very-secret-0123456789"


def request(text: str = "hello", attempt: int = 0, **params: Any) -> Request:
    body = {"model": "claude-haiku-5-5", "max_tokens": 400, "messages": [{"role": "user", "content": text}], **params}
    return Request("test", text, body, "p@1", attempt)


def settings(root: Path, url: str | None, **claude: Any) -> Settings:
    # Models are checked in a test of its own; here every request that reaches the server is counted.
    fixed = {"ledger": "sqlite:///ledger.sqlite", "max_retries": 1, "concurrency": 4, "check_models": False}
    given = {"base_url": url, **fixed, **claude}
    return Settings.model_validate({"claude": given, "root": root})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with LoopbackServer(responder=lambda body: f"re: {body['messages'][0]['content']}") as running:
        yield running


def ask(root: Path, server: LoopbackServer, requests: Sequence[Request], **claude: Any) -> dict[str, Reply | Failure]:
    door = Claude(settings(root, server.url, **claude))
    try:
        return door.ask(requests)
    finally:
        door.close()


def test_each_request_gets_its_reply_and_equal_ones_are_sent_once(tmp_path: Path, server: LoopbackServer) -> None:
    requests = [request(f"q{n % 5}") for n in range(15)]
    replies = ask(tmp_path, server, requests)
    assert server.calls == 5
    for one in requests:
        reply = replies[one.key]
        assert isinstance(reply, Reply) and reply.text == f"re: {one.item}"
        assert reply.cost_usd > 0 and not reply.replayed and reply.usage.output_tokens > 0


def test_what_is_in_the_ledger_is_never_sent_again(tmp_path: Path, server: LoopbackServer) -> None:
    first = ask(tmp_path, server, [request("a"), request("b")])
    second = ask(tmp_path, server, [request("b"), request("a"), request("c")])
    assert server.calls == 3
    for key, reply in first.items():
        again = second[key]
        assert isinstance(again, Reply) and isinstance(reply, Reply)
        assert again.replayed and (again.text, again.cost_usd) == (reply.text, reply.cost_usd)


def test_the_same_question_can_be_asked_several_times_on_purpose(tmp_path: Path, server: LoopbackServer) -> None:
    ask(tmp_path, server, [request("a", attempt=n) for n in range(3)])
    assert server.calls == 3


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("refusal", FailureReason.REFUSED),
        ("max_tokens", FailureReason.TRUNCATED),
        ("thinking_only", FailureReason.TRUNCATED),
        ("no_content", FailureReason.EMPTY),
        ("bad_request", FailureReason.REJECTED),
        ("too_large", FailureReason.TOO_LARGE),
        ("unauthorized", FailureReason.AUTHENTICATION),
        ("spend_limit", FailureReason.SPEND_LIMIT),
        ("overloaded", FailureReason.SERVER),
        ("server_error", FailureReason.SERVER),
        ("drop", FailureReason.CONNECTION),
        ("slow", FailureReason.TIMEOUT),
    ],
)
def test_a_failed_call_is_a_typed_failure(
    tmp_path: Path, server: LoopbackServer, kind: Any, reason: FailureReason
) -> None:
    server.faults = FaultPlan(sequence=[Fault(kind, delay=3 if kind == "slow" else 0)] * 4)
    (outcome,) = ask(tmp_path, server, [request("a")], timeout_s=1.0, max_retries=0).values()
    assert isinstance(outcome, Failure) and outcome.reason is reason, outcome
    assert outcome.detail


def test_one_failure_does_not_cost_the_others(tmp_path: Path, server: LoopbackServer) -> None:
    server.faults = FaultPlan(at={3: Fault("bad_request")})
    outcomes = ask(tmp_path, server, [request(f"q{n}") for n in range(8)]).values()
    assert sum(isinstance(outcome, Reply) for outcome in outcomes) == 7


def test_an_expired_key_stops_the_rest(tmp_path: Path, server: LoopbackServer) -> None:
    server.faults = FaultPlan(sequence=[Fault("unauthorized")] * 50)
    outcomes = ask(tmp_path, server, [request(f"q{n}") for n in range(40)], concurrency=2).values()
    assert {o.reason for o in outcomes if isinstance(o, Failure)} == {FailureReason.AUTHENTICATION}
    assert len(server.requests) <= 4


def test_a_passing_fault_is_tried_again(tmp_path: Path, server: LoopbackServer) -> None:
    server.faults = FaultPlan(sequence=[Fault("rate_limited", retry_after_ms=5), Fault("overloaded", retry_after_ms=5)])
    (outcome,) = ask(tmp_path, server, [request("a")], max_retries=3).values()
    assert isinstance(outcome, Reply) and server.calls == 1


def test_the_budget_is_a_hard_cap(tmp_path: Path, server: LoopbackServer) -> None:
    door = Claude(settings(tmp_path, server.url, budget_usd="0.0004", concurrency=8))
    outcomes = door.ask([request(f"q{n}") for n in range(50)]).values()
    door.close()
    over = [o for o in outcomes if isinstance(o, Failure) and o.reason is FailureReason.OVER_BUDGET]
    assert over and len(over) < 50
    assert door.budget.spent_usd <= Decimal("0.0004")
    assert server.calls == 50 - len(over)


def test_a_long_reply_is_streamed(tmp_path: Path, server: LoopbackServer) -> None:
    (outcome,) = ask(tmp_path, server, [request("a", max_tokens=40_000)], budget_usd=50).values()
    assert isinstance(outcome, Reply) and outcome.text == "re: a"
    assert server.requests[0].body["stream"] is True


def test_a_stream_that_is_cut_is_a_failure(tmp_path: Path, server: LoopbackServer) -> None:
    server.faults = FaultPlan(sequence=[Fault("truncated_stream")] * 4)
    (outcome,) = ask(tmp_path, server, [request("a", max_tokens=40_000)], max_retries=0).values()
    assert isinstance(outcome, Failure) and outcome.reason in (FailureReason.TRUNCATED, FailureReason.CONNECTION)


def test_thinking_is_not_part_of_the_text(tmp_path: Path, server: LoopbackServer) -> None:
    server.responder = lambda body: Answer(text="yes", thinking="no no no")
    (outcome,) = ask(tmp_path, server, [request("a")]).values()
    assert isinstance(outcome, Reply) and outcome.text == "yes"


def test_the_key_is_nowhere(tmp_path: Path, server: LoopbackServer, caplog: pytest.LogCaptureFixture) -> None:
    server.faults = FaultPlan(at={1: Fault("bad_request"), 2: Fault("unauthorized")})
    outcomes = ask(tmp_path, server, [request(f"q{n}") for n in range(4)], concurrency=1, max_retries=0)
    door = Claude(settings(tmp_path, server.url))
    exported = json.dumps(list(door.ledger.rows()))
    door.close()
    for text in (exported, repr(outcomes), caplog.text):
        assert KEY not in text
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_an_unknown_price_stops_before_anything_is_sent(tmp_path: Path, server: LoopbackServer) -> None:
    with pytest.raises(ConfigError, match=r"claude-new-1: \{input"):
        Claude(settings(tmp_path, server.url, models={"generator": "claude-new-1"}))
    priced = {"claude-new-1": {"input": 1, "output": 2}}
    Claude(settings(tmp_path, server.url, models={"generator": "claude-new-1"}, prices=priced)).close()
    assert not server.requests


def test_without_a_key_the_run_stops_and_says_what_is_missing(tmp_path: Path) -> None:
    door = Claude(settings(tmp_path, None, outbox="out"))
    with pytest.raises(RepliesMissing, match="2 calls are needed") as error:
        door.ask([request("a"), request("b"), request("a")])
    door.close()
    assert error.value.estimate.calls == 2 and error.value.estimate.cost_usd > 0
    assert len((tmp_path / "out" / "test.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def recorded(folder: Path, *requests: Request, stop_reason: str = "end_turn") -> None:
    folder.mkdir(exist_ok=True)
    lines = []
    for one in requests:
        message = {
            "id": "m", "type": "message", "role": "assistant", "model": "recorded", "stop_reason": stop_reason,
            "content": [{"type": "text", "text": f"rec: {one.item}"}], "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        lines.append(json.dumps({"custom_id": one.key, "result": {"type": "succeeded", "message": message}}))
    (folder / "r.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_recordings_answer_their_own_requests_only(tmp_path: Path) -> None:
    known, unknown = request("a"), request("b")
    recorded(tmp_path / "rec", known)
    door = Claude(settings(tmp_path, None, backend="file", recorded="rec", outbox="out"))
    (reply,) = door.ask([known]).values()
    assert isinstance(reply, Reply) and (reply.text, reply.cost_usd, reply.replayed) == ("rec: a", Decimal(0), True)
    with pytest.raises(RepliesMissing, match="1 of 1 requests have no recorded reply"):
        door.ask([known, unknown])
    door.close()
    (line,) = (tmp_path / "out" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {"custom_id": unknown.key, "params": unknown.params}


def test_a_bad_line_of_a_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "r.jsonl").write_text('\n{"custom_id": 3}\n', encoding="utf-8")
    door = Claude(settings(tmp_path, None, backend="file", recorded="rec"))
    with pytest.raises(ValueError, match=r"r\.jsonl:2"):
        door.ask([request("a")])
    door.close()


def test_a_model_that_cannot_do_what_is_configured_stops_before_anything_is_paid(
    tmp_path: Path, server: LoopbackServer
) -> None:
    priced = {"claude-nowhere-1": {"input": 1, "output": 2}}
    with pytest.raises(ConfigError, match="claude-nowhere-1"):
        ask(tmp_path, server, [request("a")], check_models=True, models={"judge": "claude-nowhere-1"}, prices=priced)
    assert server.calls == 0
    (outcome,) = ask(tmp_path, server, [request("a")], check_models=True).values()
    assert isinstance(outcome, Reply) and server.calls == 1
