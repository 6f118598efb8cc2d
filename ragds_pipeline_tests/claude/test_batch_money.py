"""The money of batches that cannot be reached: it stays counted until they are collected, and is counted once."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ragds_pipeline.claude import Failure, FailureReason, Reply
from ragds_pipeline.claude.ask import Claude, open_claude
from ragds_pipeline.claude.batch_store import BatchStore
from ragds_pipeline.claude.budget import dollars, units
from ragds_pipeline.claude.database import callers, claims, owed
from ragds_pipeline.claude.estimate import ceiling
from ragds_pipeline_tests.claude.asking import request, settings
from ragds_pipeline_tests.claude.batch_driver import FAST
from ragds_pipeline_tests.loopback import BatchPlan, Fault, FaultPlan, LoopbackServer

UNREACHABLE = FaultPlan(shares=[(Fault("unavailable"), 1.0)], endpoints=["batches.retrieve", "batches.results"])
ASKED = [request(f"q{n}") for n in range(4)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    with LoopbackServer(batches=BatchPlan(polls=1)) as running:
        yield running


def door(root: Path, server: LoopbackServer, run_id: str = "run", **claude: Any) -> Claude:
    given = settings(root, server.url, **{**FAST, "backend": "batch", **claude})
    return open_claude(given, run_id, lambda progress: None, "rev", lambda text: None)


ZERO = Decimal(0)


def accounts(claude: Claude) -> tuple[Decimal, ...]:
    """Return what all callers together have spent, have in flight, and count as possibly paid."""
    with claude.ledger.engine.connect() as connection:
        columns = (callers.c.spent, callers.c.in_flight, callers.c.possibly_paid)
        return tuple(dollars(int(connection.execute(sa.select(sa.func.sum(c))).scalar_one())) for c in columns)


def lose(root: Path, server: LoopbackServer) -> Decimal:
    """Let a run lose sight of its batch; return what the run counts as possibly paid."""
    server.faults = UNREACHABLE
    run = door(root, server)
    outcomes = run.ask(ASKED).values()
    assert all(isinstance(o, Failure) and o.possibly_paid and o.reason is FailureReason.SERVER for o in outcomes)
    most = sum((ceiling(one, run.prices, batch=True, caching=True) for one in ASKED), Decimal(0))
    assert run.budget.possibly_paid_usd == most > 0 and run.budget.spent_usd == 0
    assert accounts(run) == (ZERO, ZERO, most)
    run.close()
    server.faults = FaultPlan()
    return most


def test_a_batch_out_of_reach_keeps_its_reserve_under_the_cap(tmp_path: Path, server: LoopbackServer) -> None:
    most = lose(tmp_path, server)
    tight = str(most + Decimal("0.00001"))
    for name in ("budget_usd", "partition_budget_usd"):
        same_run = door(
            tmp_path, server, "run" if name == "budget_usd" else "another", **{name: tight, "backend": "api"}
        )
        (outcome,) = same_run.ask([request("one more")]).values()
        same_run.close()
        assert isinstance(outcome, Failure) and outcome.reason is FailureReason.OVER_BUDGET
        assert "possibly paid" in outcome.detail
    assert server.calls == 0


@pytest.mark.parametrize("backend", ["batch", "api"])
def test_collected_later_it_is_counted_once(tmp_path: Path, server: LoopbackServer, backend: str) -> None:
    lose(tmp_path, server)
    later = door(tmp_path, server, "another", backend=backend)
    outcomes = later.ask(ASKED)
    rows = list(later.ledger.rows())
    paid = sum((Decimal(row["cost_usd"]) for row in rows), Decimal(0))
    assert all(isinstance(outcome, Reply) and not outcome.replayed for outcome in outcomes.values())
    assert accounts(later) == (paid, ZERO, ZERO) and later.budget.spent_usd == paid > 0
    # At the price of a batch, whatever backend asked; made once, and not asked for again.
    assert {row["backend"] for row in rows} == {"batch"} and set(server.paid.values()) == {1} and server.calls == 0
    assert sum(r.method == "POST" and r.path.endswith("/batches") for r in server.requests) == 1
    later.close()


def test_what_expired_unseen_is_not_counted_and_asked_by_call(tmp_path: Path, server: LoopbackServer) -> None:
    server.batch_plan = BatchPlan(polls=1, items={ASKED[0].key: "expired", ASKED[1].key: "canceled"})
    lose(tmp_path, server)
    later = door(tmp_path, server, "another", backend="api")
    outcomes = later.ask(ASKED)
    rows = {row["key"]: row["backend"] for row in later.ledger.rows()}
    spent, in_flight, possibly_paid = accounts(later)
    later.close()
    assert all(isinstance(outcome, Reply) for outcome in outcomes.values())
    assert [rows[one.key] for one in ASKED] == ["api", "api", "batch", "batch"] and server.calls == 2
    assert spent == later.budget.spent_usd and (in_flight, possibly_paid) == (ZERO, ZERO)


def test_a_forgotten_batch_stays_counted_and_is_asked_again(tmp_path: Path, server: LoopbackServer) -> None:
    most = lose(tmp_path, server)
    later = door(tmp_path, server, "another", backend="api")
    store = BatchStore(later.ledger.engine)
    (batch,) = store.open_batches()
    assert (batch.batch_id, batch.requests, batch.unanswered) == ("msgbatch_00000001", 4, 4)
    assert batch.counted == units(most)
    assert store.forget("msgbatch_unknown") == 0 and store.forget("msgbatch_00000001") == 4
    assert not store.open_batches()
    assert len(later.ask(ASKED)) == server.calls == 4
    # That batch is paid all the same, if somebody lets it end; nobody knows, so it goes on counting.
    assert accounts(later) == (later.budget.spent_usd, ZERO, most)
    later.close()


def test_an_interrupted_batch_counts_until_it_is_collected(tmp_path: Path, server: LoopbackServer) -> None:
    def interrupt(text: str) -> None:
        if "made with" in text:
            raise KeyboardInterrupt

    given = settings(tmp_path, server.url, **FAST, backend="batch")
    first = open_claude(given, "run", lambda progress: None, "rev", interrupt)
    with pytest.raises(KeyboardInterrupt):
        first.ask(ASKED)
    spent, in_flight, possibly_paid = accounts(first)
    with first.ledger.engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(claims)).scalar() == 0
        assert connection.execute(sa.select(sa.func.sum(owed.c.amount))).scalar() == units(possibly_paid) > 0
    first.close()
    assert (spent, in_flight) == (ZERO, ZERO)
    later = door(tmp_path, server, "run")
    later.ask(ASKED)
    assert accounts(later) == (later.budget.spent_usd, ZERO, ZERO)
    later.close()
