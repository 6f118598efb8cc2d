"""What a revision cost, in SQLite and in PostgreSQL: who paid, what was replayed, what does not add up."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ragds_pipeline.claude.admission import Admission
from ragds_pipeline.claude.batch_store import BatchStore
from ragds_pipeline.claude.budget import Budget, units
from ragds_pipeline.claude.ledger import Ledger
from ragds_pipeline.claude.spending import average_lengths, read_books, sums, total
from ragds_pipeline.claude.views import write_all_views
from ragds_pipeline_tests.claude.asking import request, settings


@pytest.fixture
def ledger(ledger_url: str) -> Any:
    opened = Ledger(ledger_url)
    yield opened
    opened.close()


def message(tokens: int) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 3, "cache_read_input_tokens": 2}
    return {"type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}


def pay(ledger: Ledger, text: str, cost: str, partition: str, backend: str = "api") -> None:
    """Put a reply as a run does: the accounts are settled in the same transaction."""
    one, usd = request(text), Decimal(cost)
    with Admission(ledger.writer, Budget(Decimal(9)), "run", partition, backend) as admission:
        assert admission.admit(one, usd, wait=False) is None
        ledger.put(
            one,
            message(10),
            usd,
            backend,
            "run",
            "req",
            partition,
            lambda c, new: admission.settle(c, one.key, usd, new),
        )
        admission.settled(one.key, usd)


def test_paid_replayed_recorded_and_unanswered_calls_are_told_apart(ledger: Ledger) -> None:
    pay(ledger, "a", "0.25", "rev-1")
    pay(ledger, "b", "0.5", "rev-2")
    pay(ledger, "killed", "0.125", "rev-2")  # the run died before it took note of what it had asked
    ledger.put(request("recorded"), message(0), Decimal(0), "file", "run", "", "rev-2")
    ledger.note_uses("rev-1", [request("a")])
    for _ in range(2):  # a step that runs again asks the same
        ledger.note_uses("rev-2", [request(text) for text in ("a", "b", "recorded", "failed")])
    books = read_books(ledger, "rev-2")
    whole = total(books.calls)
    assert (whole.calls, whole.replayed, whole.unanswered) == (5, 2, 1)
    assert (whole.paid_usd, whole.cost_usd) == (Decimal("0.625"), Decimal("0.875"))
    assert (whole.input_tokens, whole.output_tokens, whole.cache_read_tokens) == (30, 12, 8)
    assert books.replies_usd == books.accounts_usd == Decimal("0.625") and not books.faults()
    assert list(sums(books.calls)) == [("test", "claude-haiku-5-5")]
    assert total(read_books(ledger, "rev-3").calls).calls == 0
    lengths = average_lengths(ledger)["test", "claude-haiku-5-5"]
    assert (lengths.replies, lengths.usage.input_tokens, lengths.uncached.input_tokens) == (3, 10, 12)


def test_books_that_differ_are_told(ledger: Ledger) -> None:
    pay(ledger, "a", "0.25", "rev-1")
    ledger.put(request("b"), message(1), Decimal("0.5"), "api", "run", "req", "rev-1")  # no account knows of it
    (fault,) = read_books(ledger, "rev-1").faults()
    assert "know nothing of $0.5" in fault
    with Admission(ledger.writer, Budget(Decimal(9)), "run", "rev-2", "api") as admission:
        one = request("d")
        assert admission.admit(one, Decimal("0.1"), wait=False) is None
        ledger.put(one, message(1), Decimal("0.1"), "api", "run", "req", "rev-3")  # somebody was faster
        ledger.put(
            one, message(1), Decimal("0.1"), "api", "run", "req", "rev-2",
            lambda c, new: admission.settle(c, one.key, Decimal("0.1"), new),
        )  # fmt: skip
    (fault,) = read_books(ledger, "rev-2").faults()
    assert fault.startswith("$0.1") and "paid twice" in fault


def test_open_batches_are_told_with_what_counts_for_them(ledger: Ledger) -> None:
    store, asked = BatchStore(ledger.engine), [request(f"q{n}") for n in range(3)]
    with Admission(ledger.writer, Budget(Decimal(9)), "run", "rev", "batch") as admission:
        assert all(admission.admit(one, Decimal("0.5"), wait=False) is None for one in asked)
        intent = store.open_intent([one.key for one in asked], "http://one", "", 60)
        assert intent is not None
        store.created(intent, "msgbatch_1")
    ledger.put(asked[0], message(1), Decimal("0.1"), "batch", "run", "req", "rev")
    (batch,) = store.open_batches()
    assert (batch.batch_id, batch.requests, batch.unanswered, batch.counted) == ("msgbatch_1", 3, 2, units(Decimal(1)))
    assert read_books(ledger, "rev").possibly_paid_usd == Decimal("1.5")
    store.untie(intent, [asked[1].key])
    assert read_books(ledger, "rev").possibly_paid_usd == Decimal("1.0") and store.holds_any()
    store.void(intent)
    assert read_books(ledger, "rev").possibly_paid_usd == 0 and not store.holds_any() and not store.open_batches()


def test_the_ledger_is_a_view_wherever_it_is(ledger: Ledger, ledger_url: str, tmp_path: Path) -> None:
    pay(ledger, "見出し", "0.25", "rev-1")
    (tmp_path / "data" / "tables").mkdir(parents=True)
    made = write_all_views(settings(tmp_path, None, ledger=ledger_url))
    with duckdb.connect(str(made), read_only=True) as connection:
        rows = connection.execute("select item, cost_usd, partition from ledger").fetchall()
    assert rows == [("見出し", Decimal("0.25"), "rev-1")]


def test_a_ledger_out_of_reach_leaves_the_views_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "data" / "tables").mkdir(parents=True)
    given = settings(tmp_path, None, ledger="postgresql://nobody@127.0.0.1:1/none")
    pytest.importorskip("psycopg2", reason="psycopg2 is not installed (the extra postgres)")
    with duckdb.connect(str(write_all_views(given)), read_only=True) as connection:
        assert connection.execute("select count(*) from duckdb_views() where not internal").fetchone() == (0,)
