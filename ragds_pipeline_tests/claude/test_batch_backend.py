"""The batch backend against a server that speaks the real wire format: groups, results, what goes wrong, who shares."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ragds_pipeline.claude.backends.batch import run_batches
from ragds_pipeline.claude.batch_store import BatchStore
from ragds_pipeline.claude.database import open_engine
from ragds_pipeline.claude.process_identity import is_gone, this_process
from ragds_pipeline.claude.requests import Failure, FailureReason, Request, message_text
from ragds_pipeline.config import ClaudeSettings
from ragds_pipeline_tests.claude.batch_driver import FAST, request, requests_of, run_every_batch
from ragds_pipeline_tests.loopback import BatchPlan, Fault, FaultPlan, LoopbackServer, body_hash

CREATE: Any = ["batches.create"]


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(batches=BatchPlan(polls=2)) as running:
        yield running


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    engine = open_engine(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    yield engine
    engine.dispose()


class Run:
    """One call of ``run_batches``, with what it handed over and said."""

    def __init__(self, server: LoopbackServer, engine: sa.Engine, **claude: Any) -> None:
        self.settings = ClaudeSettings.model_validate({**FAST, "base_url": server.url, **claude})
        self.store = BatchStore(engine)
        self.texts: dict[str, str] = {}
        self.failures: dict[str, Failure] = {}
        self.said: list[str] = []
        self.admit: Callable[[Request], Failure | None] = lambda request: None
        self.interrupt_after = -1

    def __call__(self, requests: list[Request]) -> Run:
        run_batches(
            requests, self.settings, "key", self.store, lambda r: self.admit(r), self._message, self._failure, self._say
        )
        assert self.texts.keys() | self.failures.keys() == {r.key for r in requests}
        return self

    def _message(self, request: Request, message: dict[str, Any], _request_id: str) -> None:
        assert request.key not in self.texts and request.key not in self.failures
        if len(self.texts) == self.interrupt_after:
            raise KeyboardInterrupt
        self.texts[request.key] = message_text(message)

    def _failure(self, request: Request, failure: Failure) -> None:
        assert request.key not in self.texts and request.key not in self.failures and failure.key == request.key
        self.failures[request.key] = failure

    def _say(self, text: str) -> None:
        self.said.append(text)

    @property
    def reasons(self) -> set[FailureReason]:
        return {failure.reason for failure in self.failures.values()}


def creations(server: LoopbackServer) -> int:
    return sum(r.method == "POST" and r.path.endswith("/batches") for r in server.requests)


def paid_once(server: LoopbackServer, requests: list[Request]) -> bool:
    run_every_batch(server.url)
    return {body_hash(r.params): 1 for r in requests} == server.paid


def test_requests_go_in_groups_and_come_back_each_to_its_own(server: LoopbackServer, engine: sa.Engine) -> None:
    requests = requests_of("q", 23)
    run = Run(server, engine, batch_max_requests=10)(requests)
    assert run.texts == {r.key: r.item for r in requests}
    assert creations(server) == 3 and paid_once(server, requests)
    assert any("without the batch discount" in text for text in run.said)


def test_a_group_keeps_below_its_bytes_and_what_is_larger_fails(server: LoopbackServer, engine: sa.Engine) -> None:
    requests = [request("x" * 400 + str(n)) for n in range(6)]
    large = request("y" * 3000)
    run = Run(server, engine, batch_max_bytes=2_000)([*requests, large])
    sizes = [len(r.body["requests"]) for r in server.requests if r.body and "requests" in r.body]
    assert len(run.texts) == 6 and sum(sizes) == 6 and max(sizes) < 4
    assert run.failures[large.key].reason is FailureReason.TOO_LARGE


def test_errors_of_the_server_and_expired_items_are_sent_again(server: LoopbackServer, engine: sa.Engine) -> None:
    requests = requests_of("q", 8)
    hurt: dict[str, Any] = {
        requests[1].key: Fault("overloaded"),
        requests[2].key: "expired",
        requests[3].key: Fault("bad_request"),
    }
    server.batch_plan = BatchPlan(polls=1, items=hurt)
    run = Run(server, engine)
    say = run.said.append

    def heal(text: str) -> None:
        say(text)
        if "ended" in text:
            server.batch_plan = BatchPlan()

    run._say = heal  # type: ignore[method-assign]
    run(requests)
    assert len(run.texts) == 7 and creations(server) == 2
    assert run.failures[requests[3].key].reason is FailureReason.REJECTED
    assert "invalid" in run.failures[requests[3].key].detail


def test_what_never_gets_through_is_given_up_after_so_many_batches(server: LoopbackServer, engine: sa.Engine) -> None:
    requests = requests_of("q", 5)
    hurt: dict[str, Any] = {requests[0].key: Fault("server_error"), requests[1].key: "expired"}
    server.batch_plan = BatchPlan(polls=1, items={**hurt, requests[2].key: "canceled"})
    run = Run(server, engine, batch_attempts=3)(requests)
    assert creations(server) == 3 and len(run.texts) == 2
    assert [run.failures[requests[n].key].reason for n in range(3)] == [
        FailureReason.SERVER, FailureReason.TIMEOUT, FailureReason.REJECTED,
    ]  # fmt: skip
    # Nothing of it was paid, so a new run may try it all again.
    server.batch_plan = BatchPlan(polls=1)
    assert len(Run(server, engine)(requests[:3]).texts) == 3


def test_a_refusal_is_a_message_like_any_other(server: LoopbackServer, engine: sa.Engine) -> None:
    (one,) = requests_of("q", 1)
    server.batch_plan = BatchPlan(items={one.key: Fault("refusal")})
    assert one.key in Run(server, engine)([one]).texts


@pytest.mark.parametrize("kind", ["drop_midway", "truncated_stream"])
def test_a_batch_that_was_made_without_an_answer_is_found(server: LoopbackServer, engine: sa.Engine, kind: Any) -> None:
    requests = requests_of("q", 6)
    server.faults = FaultPlan(sequence=[Fault(kind)], endpoints=CREATE)
    run = Run(server, engine)(requests)
    assert len(run.texts) == 6 and creations(server) == 1 and paid_once(server, requests)
    assert any("exists and holds" in text for text in run.said)


@pytest.mark.parametrize("kind", ["drop", "server_error", "overloaded", "html_502", "request_timeout"])
def test_a_batch_that_was_not_made_is_made(server: LoopbackServer, engine: sa.Engine, kind: Any) -> None:
    requests = requests_of("q", 6)
    server.faults = FaultPlan(sequence=[Fault(kind)], endpoints=CREATE)
    run = Run(server, engine)(requests)
    assert len(run.texts) == 6 and creations(server) == 2 and paid_once(server, requests)


def test_a_strangers_batch_of_the_same_size_is_not_taken_for_ours(server: LoopbackServer, tmp_path: Path) -> None:
    ours, theirs = requests_of("ours", 4), requests_of("theirs", 4)
    here, there = (open_engine(f"sqlite:///{tmp_path / name}") for name in ("here.sqlite", "there.sqlite"))
    run = Run(server, here)
    make = run.store.open_intent

    def meanwhile(*args: Any) -> Any:
        # A process with another ledger makes a batch of four between our intent and our creation, which is torn.
        intent = make(*args)
        run.store.open_intent = make  # type: ignore[method-assign]
        server.faults = FaultPlan(endpoints=CREATE)
        stranger = threading.Thread(target=Run(server, there), args=(theirs,))
        stranger.start()
        stranger.join()
        server.faults = FaultPlan(sequence=[Fault("drop_midway")], endpoints=CREATE)
        return intent

    run.store.open_intent = meanwhile  # type: ignore[method-assign,assignment]
    run(ours)
    assert run.texts == {r.key: r.item for r in ours} and paid_once(server, ours + theirs)
    here.dispose()
    there.dispose()


def test_creations_that_fail_again_and_again_end(server: LoopbackServer, engine: sa.Engine) -> None:
    server.faults = FaultPlan(shares=[(Fault("server_error"), 1.0)], endpoints=CREATE)
    run = Run(server, engine, batch_settle_s=0.01)(requests_of("q", 3))
    assert len(run.failures) == 3 and creations(server) == 2
    assert "no batch could be made" in next(iter(run.failures.values())).detail


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("unauthorized", FailureReason.AUTHENTICATION),
        ("spend_limit", FailureReason.SPEND_LIMIT),
        ("bad_request", FailureReason.REJECTED),
        ("too_large", FailureReason.TOO_LARGE),
    ],
)
def test_a_refused_creation_fails_its_requests_and_frees_them(
    server: LoopbackServer, engine: sa.Engine, kind: Any, reason: FailureReason
) -> None:
    requests = requests_of("q", 4)
    server.faults = FaultPlan(sequence=[Fault(kind)] * 2, endpoints=CREATE)
    run = Run(server, engine, batch_max_requests=2)(requests)
    stops = reason in (FailureReason.AUTHENTICATION, FailureReason.SPEND_LIMIT)
    assert run.reasons == {reason} and creations(server) == (1 if stops else 2)
    server.faults = FaultPlan()
    assert len(Run(server, engine)(requests).texts) == 4


def test_a_creation_that_is_too_early_waits(server: LoopbackServer, engine: sa.Engine) -> None:
    server.faults = FaultPlan(sequence=[Fault("rate_limited", retry_after_ms=5)], endpoints=CREATE)
    assert len(Run(server, engine)(requests_of("q", 3)).texts) == 3


@pytest.mark.parametrize("endpoint", ["batches.retrieve", "batches.results"])
@pytest.mark.parametrize("kind", ["server_error", "drop", "html_502", "drop_midway", "truncated_stream", "overloaded"])
def test_a_lost_look_is_taken_again(server: LoopbackServer, engine: sa.Engine, endpoint: Any, kind: Any) -> None:
    requests = requests_of("q", 6)
    server.faults = FaultPlan(sequence=[Fault(kind)] * 2, endpoints=[endpoint])
    run = Run(server, engine)(requests)
    assert len(run.texts) == 6 and creations(server) == 1


def test_a_batch_that_cannot_be_reached_is_left_for_the_next_run(server: LoopbackServer, engine: sa.Engine) -> None:
    requests = requests_of("q", 3)
    server.faults = FaultPlan(shares=[(Fault("unavailable"), 1.0)], endpoints=["batches.retrieve"])
    run = Run(server, engine)(requests)
    assert run.reasons == {FailureReason.SERVER} and all(f.possibly_paid for f in run.failures.values())
    server.faults = FaultPlan()
    assert len(Run(server, engine)(requests).texts) == 3
    assert creations(server) == 1 and paid_once(server, requests)


def test_a_run_that_was_interrupted_while_it_collected_goes_on(server: LoopbackServer, engine: sa.Engine) -> None:
    requests = requests_of("q", 9)
    first = Run(server, engine)
    first.interrupt_after = 4
    with pytest.raises(KeyboardInterrupt):
        first(requests)
    left = [r for r in requests if r.key not in first.texts]
    second = Run(server, engine)
    second.admit = lambda r: Failure(r.key, FailureReason.OVER_BUDGET, "what is paid needs no admission")
    second(left)
    assert len(first.texts) == 4 and len(second.texts) == 5
    assert creations(server) == 1 and paid_once(server, requests)


def test_what_is_over_budget_waits_for_what_is_under_way(server: LoopbackServer, engine: sa.Engine) -> None:
    run = Run(server, engine)
    admitted: list[str] = []

    def three_at_once(r: Request) -> Failure | None:
        if len(admitted) - len(run.texts) >= 3 or len(admitted) == 8:
            return Failure(r.key, FailureReason.OVER_BUDGET, "no")
        admitted.append(r.key)
        return None

    run.admit = three_at_once
    run(requests_of("q", 10))
    assert len(run.texts) == 8 and run.reasons == {FailureReason.OVER_BUDGET}


def test_a_batch_of_another_workspace_is_not_paid_again(server: LoopbackServer, engine: sa.Engine) -> None:
    requests = requests_of("q", 3)
    Run(server, engine)(requests)
    server.faults = FaultPlan(sequence=[Fault("not_found")], endpoints=["batches.retrieve"])
    run = Run(server, engine)(requests)
    assert run.reasons == {FailureReason.REJECTED} and "another workspace" in run.failures[requests[0].key].detail
    assert creations(server) == 1
    assert run.store.forget("msgbatch_00000001") == 3
    assert len(Run(server, engine)(requests).texts) == 3 and creations(server) == 2


def test_several_runs_share_their_batches(server: LoopbackServer, ledger_url: str) -> None:
    requests = requests_of("q", 24)
    server.batch_plan = BatchPlan(polls=5)
    engines = [open_engine(ledger_url) for _ in range(4)]
    runs = [Run(server, engine, batch_max_requests=7) for engine in engines]
    asked = [requests[n * 3 : n * 3 + 15] for n in range(4)]
    threads = [threading.Thread(target=run, args=(some,)) for run, some in zip(runs, asked, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run, some in zip(runs, asked, strict=True):
        assert run.texts == {r.key: r.item for r in some}
    assert paid_once(server, requests)
    for engine in engines:
        engine.dispose()


def test_wrong_requests_are_seen_before_a_batch_is_made(server: LoopbackServer, engine: sa.Engine) -> None:
    wrong = [request(f"q{n}", output_config={"effort": "huge"}) for n in range(5)]
    run = Run(server, engine, batch_check_first=True)(wrong)
    assert creations(server) == 0 and run.reasons == {FailureReason.REJECTED}
    mixed = Run(server, engine, batch_check_first=True)([wrong[0], *requests_of("q", 3)])
    assert len(mixed.texts) == 3 and mixed.failures.keys() == {wrong[0].key}
    server.faults = FaultPlan(shares=[(Fault("not_found"), 1.0)], endpoints=["count_tokens"])
    assert len(Run(server, engine, batch_check_first=True)(requests_of("uncounted", 3)).texts) == 3


def test_a_process_is_gone_only_where_that_is_certain() -> None:
    place, pid, start = this_process().rsplit("|", 2)
    assert not is_gone(this_process())
    assert is_gone(f"{place}|4194304|1"), "no such process id"
    assert is_gone(f"{place}|{pid}|{int(start) - 1}"), "the id is used again"
    assert not is_gone(f"elsewhere|pid:[1]|{pid}|1"), "another machine cannot be seen"
