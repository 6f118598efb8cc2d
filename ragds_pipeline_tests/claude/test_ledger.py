"""The ledger's own promises: durable and whole, readable as a table, and good with a file of an earlier version."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import threading
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

from ragds_pipeline.claude.database import Writer, callers
from ragds_pipeline.claude.ledger import Ledger
from ragds_pipeline.config import ConfigError
from ragds_pipeline_tests.claude.asking import request

MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "claude-haiku-5-5", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "見出し\u0000\"'"}], "usage": {"input_tokens": 7, "output_tokens": 3},
}  # fmt: skip

VERSION_0_1 = """CREATE TABLE replies (
    key VARCHAR(64) NOT NULL, task TEXT NOT NULL, item TEXT NOT NULL, model TEXT NOT NULL, prompt_version TEXT NOT NULL,
    backend TEXT NOT NULL, request TEXT NOT NULL, message TEXT NOT NULL, input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL, cache_creation_input_tokens INTEGER NOT NULL,
    cache_read_input_tokens INTEGER NOT NULL, cost_usd TEXT NOT NULL, request_id TEXT NOT NULL, run_id TEXT NOT NULL,
    created_at TEXT NOT NULL, PRIMARY KEY (key))"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path / 'deep' / 'ledger.sqlite'}")


def put(ledger: Ledger, text: str, cost: str = "0.0000001") -> bool:
    return ledger.put(request(text), MESSAGE, Decimal(cost), "api", "run", "req_1", "rev-1")


def test_the_first_reply_stays(ledger: Ledger) -> None:
    one = request("a")
    assert ledger.put(one, MESSAGE, Decimal("0.1"), "api", "run", "req_1")
    assert not ledger.put(one, {**MESSAGE, "id": "other"}, Decimal("0.2"), "api", "run", "req_2")
    entry = ledger.get([one.key, one.key, "unknown"])[one.key]
    assert (entry.message, entry.cost_usd, entry.backend) == (MESSAGE, Decimal("0.1"), "api")


def test_a_file_of_version_0_1_goes_on_working(tmp_path: Path) -> None:
    path, old, new = tmp_path / "ledger.sqlite", request("old"), request("new")
    with sqlite3.connect(path) as connection:
        connection.execute(VERSION_0_1)
        row = (old.key, "t", "i", "m", "p@1", "file", "{}", json.dumps(MESSAGE), 1, 2, 0, 0, "0", "", "", "2026-11-01")
        connection.execute(f"INSERT INTO replies VALUES ({', '.join('?' * len(row))})", row)
    connection.close()
    for _ in range(2):
        ledger = Ledger(f"sqlite:///{path}")
        ledger.put(new, MESSAGE, Decimal(1), "api", "run", "req", "rev-2")
        assert ledger.get([old.key])[old.key].message == MESSAGE
        assert [row["partition"] for row in ledger.rows()] == ["", "rev-2"]
        ledger.close()


def test_it_is_a_table_without_bodies(ledger: Ledger) -> None:
    for text in ("a", "b", "c"):
        put(ledger, text)
    entries = ledger.ledger_table()
    assert {"request", "message"}.isdisjoint(entries.column_names)
    summed = duckdb.sql("SELECT sum(cost_usd), sum(input_tokens), max(created_at), any_value(partition) FROM entries")
    assert summed is not None
    cost, tokens, created, partition = summed.fetchall()[0]
    assert (cost, tokens, partition) == (Decimal("0.0000003"), 21, "rev-1") and isinstance(created, dt.datetime)
    assert entries.num_rows == 3


def test_it_is_exported_as_json_lines(ledger: Ledger, tmp_path: Path) -> None:
    put(ledger, "a")
    put(ledger, "見出し")
    out = tmp_path / "out" / "ledger.jsonl"
    assert ledger.export_jsonl(out) == 2
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {row["item"] for row in rows} == {"a", "見出し"} and all(row["message"] == MESSAGE for row in rows)
    assert rows[0]["request"]["model"] == "claude-haiku-5-5"


def test_an_empty_ledger_is_an_empty_table(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.ledger_table().num_rows == 0 and ledger.export_jsonl(tmp_path / "x.jsonl") == 0


@pytest.mark.parametrize("url", ["mysql://host/db", "oracle://host"])
def test_another_database_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="use sqlite"):
        Ledger(url)


def test_threads_share_commits_and_one_that_fails_costs_no_other(ledger: Ledger) -> None:
    writer, failed, done = Writer(ledger.engine), [], []
    row = {"process": "p", "run_id": "r", "partition": "", "beat": 0, "spent": 0, "in_flight": 0, "possibly_paid": 0}

    def change(number: int) -> None:
        def insert(connection: sa.Connection) -> int:
            connection.execute(callers.insert(), {**row, "caller": str(number)})
            if number % 7 == 0:
                raise ValueError(number)
            return number

        try:
            done.append(writer.run(insert, durable=number % 2 == 0))
        except ValueError as error:
            failed.append(error.args[0])

    threads = [threading.Thread(target=change, args=(n,)) for n in range(70)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(failed) == list(range(0, 70, 7)) and sorted(done) == [n for n in range(70) if n % 7]
    with ledger.engine.connect() as connection:
        stored = {int(name) for name in connection.execute(sa.select(callers.c.caller)).scalars()}
    assert stored == set(done)
