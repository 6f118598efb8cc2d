"""The ledger: every reply, durable before anything else sees it, under the hash of its request.

What is in the ledger is never sent again. SQLite by default, PostgreSQL by URL. It holds requests and replies, which
hold documents' text; it never holds a key.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pydantic_core
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ragds_pipeline.claude.accounts import is_answered
from ragds_pipeline.claude.database import Prepared, Writer, open_engine, replies, select_by_key, uses
from ragds_pipeline.claude.requests import Request, Usage
from ragds_pipeline.config import Settings
from ragds_pipeline.records import canonical_json
from ragds_pipeline.storage.schemas import MONEY

_INSERT = Prepared(replies.insert(), [column.name for column in replies.c])

_LOOKUP_CHUNK = 500
"""Keys in one SELECT; SQLite allows 32,766 variables, older builds 999."""

_BODIES = frozenset({"request", "message"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply in the ledger."""

    key: str
    message: dict[str, Any]
    cost_usd: Decimal
    backend: str


class Ledger:
    """Content-addressed store of replies."""

    def __init__(self, url: str) -> None:
        self.engine = open_engine(url)
        self.writer = Writer(self.engine)

    def get(self, keys: Iterable[str]) -> dict[str, Entry]:
        """Return the entries there are for ``keys``."""
        return {entry.key: entry for entry in self.entries(keys)}

    def entries(self, keys: Iterable[str]) -> Iterator[Entry]:
        """Yield the entries there are for ``keys``, each once and in no order, a few hundred in memory at a time."""
        columns = ("key", "message", "cost_usd", "backend")
        for rows in self._rows_of(keys, columns):
            for key, message, cost, backend in rows:
                yield Entry(key, _opened(message), Decimal(cost), backend)

    def holds(self, keys: Iterable[str]) -> set[str]:
        """Return those of ``keys`` that there is a reply to."""
        return {key for rows in self._rows_of(keys, ("key",)) for (key,) in rows}

    def _rows_of(self, keys: Iterable[str], columns: Sequence[str]) -> Iterator[list[Any]]:
        wanted = list(dict.fromkeys(keys))
        with self.engine.connect() as connection:
            for at in range(0, len(wanted), _LOOKUP_CHUNK):
                yield select_by_key(connection, replies, columns, wanted[at : at + _LOOKUP_CHUNK])

    def put(
        self,
        request: Request,
        message: Mapping[str, Any],
        cost_usd: Decimal,
        backend: str,
        run_id: str,
        request_id: str,
        partition: str = "",
        settle: Callable[[sa.Connection, bool], None] | None = None,
    ) -> bool:
        """Store a reply; it is on disk when this returns. A key that is already there keeps its first reply.

        Args:
            settle: Told in the same transaction whether the reply is new, to settle accounts with it.

        Returns:
            Whether the reply is new.
        """
        row = _row(request, message, cost_usd, backend, run_id, request_id, partition)

        def store(connection: sa.Connection) -> bool:
            new = not is_answered(connection, request.key)
            if new:
                _INSERT.on(connection, row)
            if settle is not None:
                settle(connection, new)
            return new

        return self.writer.run(store, durable=True)

    def note_uses(self, partition: str, requests: Iterable[Request]) -> None:
        """Note that a revision asked these requests, whoever pays or paid for the replies."""
        rows = [
            {"partition": partition, "key": each.key, "task": each.task, "item": each.item, "model": each.model}
            for each in requests
        ]

        def note(connection: sa.Connection) -> None:
            kind = postgresql if connection.dialect.name == "postgresql" else sqlite
            connection.execute(kind.insert(uses).on_conflict_do_nothing(), rows)

        if rows:
            self.writer.run(note)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every entry as a plain mapping, oldest first, for export."""
        yield from self._select(list(replies.c))

    def export_jsonl(self, path: Path) -> int:
        """Write every entry to ``path``, a JSON object a line, request and message as objects; return how many."""
        path.parent.mkdir(parents=True, exist_ok=True)
        count = 0
        with path.open("w", encoding="utf-8", newline="\n") as out:
            for row in self.rows():
                opened = {name: json.loads(value) if name in _BODIES else value for name, value in row.items()}
                out.write(json.dumps(opened, ensure_ascii=False) + "\n")
                count += 1
        return count

    def ledger_table(self) -> pa.Table:
        """Return every entry without the bodies of request and message, oldest first, for DuckDB and Parquet."""
        return pa.Table.from_batches(self.batches(), schema=TABLE_SCHEMA)

    def batches(self, rows: int = 20_000) -> Iterator[pa.RecordBatch]:
        """Yield what ``ledger_table`` returns, so many rows at a time."""
        shown = self._select([column for column in replies.c if column.name not in _BODIES])
        while chunk := list(itertools.islice(shown, rows)):
            for row in chunk:
                row["cost_usd"] = Decimal(row["cost_usd"]).quantize(_SMALLEST)
                row["created_at"] = dt.datetime.fromisoformat(row["created_at"])
            yield pa.RecordBatch.from_pylist(chunk, schema=TABLE_SCHEMA)

    def _select(self, columns: list[sa.Column[Any]]) -> Iterator[dict[str, Any]]:
        query = sa.select(*columns).order_by(replies.c.created_at, replies.c.key)
        with self.engine.connect().execution_options(stream_results=True) as connection:
            for row in connection.execute(query).mappings():
                yield dict(row)

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()


def _opened(message: str) -> dict[str, Any]:
    # Most of the time of a replay; the standard library takes twice as long, and reads what this one refuses.
    try:
        return dict(pydantic_core.from_json(message))
    except ValueError:
        return dict(json.loads(message))


def ledger_url(settings: Settings) -> str:
    """Return the URL of the project's ledger, a relative SQLite path made absolute."""
    url = sa.make_url(settings.claude.ledger)
    if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
        url = url.set(database=str(settings.path(url.database)))
    return url.render_as_string(hide_password=False)


_SMALLEST = Decimal("1e-12")
"""USD; finer than the price of a single token."""

TABLE_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("task", pa.string()),
        ("item", pa.string()),
        ("model", pa.string()),
        ("prompt_version", pa.string()),
        ("backend", pa.string()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cache_creation_input_tokens", pa.int64()),
        ("cache_read_input_tokens", pa.int64()),
        ("cost_usd", MONEY),
        ("request_id", pa.string()),
        ("run_id", pa.string()),
        ("partition", pa.string()),
        ("created_at", pa.timestamp("s", tz="UTC")),
    ]
)


def _row(
    request: Request, message: Mapping[str, Any], cost_usd: Decimal, backend: str, run_id: str, request_id: str,
    partition: str,
) -> dict[str, Any]:  # fmt: skip
    usage = Usage.of(message)
    return {
        "key": request.key,
        "task": request.task,
        "item": request.item,
        "model": request.model,
        "prompt_version": request.prompt_version,
        "backend": backend,
        "request": canonical_json(request.params),
        "message": canonical_json(message),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cost_usd": str(cost_usd),
        "request_id": request_id,
        "run_id": run_id,
        "partition": partition,
        "created_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }
