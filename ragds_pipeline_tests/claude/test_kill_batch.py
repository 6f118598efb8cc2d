"""SIGKILL at 20 points of a run in batch mode, and in the run after it: nothing is paid twice, nothing is lost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa

from ragds_pipeline.claude import Request
from ragds_pipeline.claude.budget import units
from ragds_pipeline.claude.database import callers, claims, owed
from ragds_pipeline.claude.ledger import Ledger
from ragds_pipeline_tests.claude.batch_driver import COUNT, Driver, drive, driver, requests_of, run_every_batch
from ragds_pipeline_tests.loopback import BatchPlan, LoopbackServer, body_hash

REQUESTS = 6
GROUPS = {"batch_max_requests": 3, "batch_attempts": 2}
POINTS = 20


@pytest.fixture(scope="module")
def processes() -> Iterator[Driver]:
    with driver() as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    # A tenth of the items expires whenever it is asked: these end as failures, and are never paid.
    with LoopbackServer(batches=BatchPlan(polls=1, shares=[("expired", 0.1)])) as running:
        yield running


@pytest.fixture(scope="module")
def points(processes: Driver, server: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Return at which steps to kill: half anywhere, one in each tenth of a run; a quarter after a batch was asked for
    and before its id is stored, a quarter while results are taken: short moments, in which a kill is worst."""
    whole = processes.run(tmp_path_factory.mktemp("whole"), server.url, "undisturbed", REQUESTS, COUNT, **GROUPS)
    chance, steps = random.Random(20261201), whole["steps"]
    anywhere = [chance.randint(1 + n * steps // 10, (n + 1) * steps // 10) for n in range(10)]
    creating, collecting = whole["within"]["creating"], whole["within"]["collecting"]
    return anywhere + [chance.randint(*chance.choice(spans)) for spans in (creating, collecting) for _ in range(5)]


@pytest.mark.parametrize("number", range(POINTS))
def test_a_killed_run_goes_on_where_it_was(
    processes: Driver, server: LoopbackServer, points: list[int], tmp_path: Path, number: int
) -> None:
    label = f"killed at point {number}"
    # Of every other one, the next run is killed as well, somewhere in its first third: while it finds its way.
    second = random.Random(number).randint(1, max(points) // 3)
    for kill_at in (points[number], second, 0) if number % 2 else (points[number], 0):
        result = processes.run(tmp_path / "run", server.url, label, REQUESTS, kill_at, **GROUPS)
        if result:
            break

    requests = requests_of(label, REQUESTS)
    expected = {r.key: "! timeout" if server.batch_plan.outcome(r.key) else r.item for r in requests}
    assert result["outcomes"] == expected, "rows lost or changed"
    if number % 4 == 0:
        again = processes.run(tmp_path / "run", server.url, label, REQUESTS, **GROUPS)
        assert again["outcomes"] == expected, "what is in the ledger changed"
    run_every_batch(server.url)
    paid = {r.key: server.paid.get(body_hash(r.params), 0) for r in requests}
    assert paid == {key: 0 if text.startswith("!") else 1 for key, text in expected.items()}
    assert settled_once(tmp_path / "run")


def settled_once(folder: Path) -> bool:
    """Return whether nothing is reserved or owed any more, and the accounts of all callers come to the ledger's sum."""
    ledger = Ledger(f"sqlite:///{folder / 'ledger.sqlite'}")
    with ledger.engine.connect() as connection:
        columns = (callers.c.spent, callers.c.in_flight, callers.c.possibly_paid)
        sums = [int(connection.execute(sa.select(sa.func.sum(column))).scalar_one()) for column in columns]
        left = [connection.execute(sa.select(sa.func.count()).select_from(t)).scalar() for t in (claims, owed)]
    paid = units(sum((Decimal(row["cost_usd"]) for row in ledger.rows()), Decimal(0)))
    ledger.close()
    return sums == [paid, 0, 0] and left == [0, 0]


@pytest.mark.parametrize("number", [0, 2, 4, 6, 8, 10, 12, 13, 14, 15, 17, 19])
def test_a_killed_batch_is_collected_by_a_run_through_the_api(
    processes: Driver, server: LoopbackServer, points: list[int], tmp_path: Path, number: int
) -> None:
    label, requests = f"through the api {number}", requests_of(f"through the api {number}", REQUESTS)
    processes.run(tmp_path / "run", server.url, label, REQUESTS, points[number], **GROUPS)
    done = completed(server, requests)
    calls = server.calls
    result = processes.run(tmp_path / "run", server.url, label, REQUESTS, backend="api", check_models=False)
    # What expired in a batch, or was never put into one, is answered by a call; the batches' replies are not asked for.
    assert result["outcomes"] == {r.key: r.item for r in requests}
    run_every_batch(server.url)
    assert all(server.paid.get(body_hash(r.params), 0) == 1 for r in requests)
    assert server.calls - calls <= REQUESTS - len(done)
    assert settled_once(tmp_path / "run")


def completed(server: LoopbackServer, requests: list[Request]) -> set[str]:
    """Let every batch end, and return the keys of the requests that have been paid."""
    run_every_batch(server.url)
    return {r.key for r in requests if server.paid.get(body_hash(r.params), 0)}


def test_a_process_that_waits_for_a_killed_one_finishes_its_work(
    processes: Driver, server: LoopbackServer, points: list[int], tmp_path: Path
) -> None:
    label, requests = "two at once", requests_of("two at once", REQUESTS)
    with driver() as other, ThreadPoolExecutor() as pool:
        killed = pool.submit(processes.run, tmp_path, server.url, label, REQUESTS, points[10], **GROUPS)
        whole = pool.submit(other.run, tmp_path / ".", server.url, label, REQUESTS, **GROUPS)
        killed.result()
        outcomes = whole.result()["outcomes"]
    assert outcomes == {r.key: "! timeout" if server.batch_plan.outcome(r.key) else r.item for r in requests}
    run_every_batch(server.url)
    assert all(server.paid.get(body_hash(r.params), 0) <= 1 for r in requests)


def test_the_key_is_in_no_file(
    server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-very-secret-0123456789")
    outcomes = drive(tmp_path, server.url, requests_of("secret", 3))
    assert len(outcomes) == 3 and "very-secret" not in caplog.text
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"very-secret" not in path.read_bytes(), path
