"""The ledger: every reply, durable before anything else sees it, under the hash of its request.

What is in the ledger is never sent again. SQLite by default, any database by SQLAlchemy URL. It holds requests
and replies, which hold documents' text; it never holds a key.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ragds_pipeline.claude.requests import Request, Usage
from ragds_pipeline.records import canonical_json

_metadata = sa.MetaData()

_replies = sa.Table(
    "replies",
    _metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("prompt_version", sa.Text, nullable=False),
    sa.Column("backend", sa.Text, nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cache_creation_input_tokens", sa.Integer, nullable=False),
    sa.Column("cache_read_input_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Text, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("created_at", sa.Text, nullable=False),
)

_LOOKUP_CHUNK = 500
"""Keys in one SELECT; SQLite allows 32,766 variables, older builds 999."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply in the ledger."""

    key: str
    message: dict[str, Any]
    cost_usd: Decimal
    backend: str


@dataclass(frozen=True, slots=True)
class Spending:
    """What one task cost with one model."""

    task: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal


class Ledger:
    """Content-addressed store of replies."""

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(url)
        if self._engine.dialect.name == "sqlite":
            database = self._engine.url.database
            if database:
                Path(database).parent.mkdir(parents=True, exist_ok=True)
            sa.event.listen(self._engine, "connect", _sqlite_pragmas)
        _metadata.create_all(self._engine)

    def get(self, keys: Iterable[str]) -> dict[str, Entry]:
        """Return the entries there are for ``keys``."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Entry] = {}
        columns = (_replies.c.key, _replies.c.message, _replies.c.cost_usd, _replies.c.backend)
        with self._engine.connect() as connection:
            for at in range(0, len(wanted), _LOOKUP_CHUNK):
                query = sa.select(*columns).where(_replies.c.key.in_(wanted[at : at + _LOOKUP_CHUNK]))
                for key, message, cost, backend in connection.execute(query):
                    found[key] = Entry(key, json.loads(message), Decimal(cost), backend)
        return found

    def put(
        self,
        request: Request,
        message: Mapping[str, Any],
        cost_usd: Decimal,
        backend: str,
        run_id: str,
        request_id: str,
    ) -> None:
        """Store a reply; it is on disk when this returns. A key that is already there keeps its first reply."""
        usage = Usage.of(message)
        row = {
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
            "created_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        }
        with self._engine.begin() as connection:
            if not connection.execute(sa.select(_replies.c.key).where(_replies.c.key == request.key)).first():
                try:
                    with connection.begin_nested():
                        connection.execute(_replies.insert(), row)
                except sa.exc.IntegrityError:
                    pass  # another process stored the same reply a moment ago

    def spending(self, run_ids: Iterable[str] | None = None) -> list[Spending]:
        """Return what was paid, by task and model, for some runs or for all."""
        query = sa.select(
            _replies.c.task,
            _replies.c.model,
            _replies.c.input_tokens + _replies.c.cache_creation_input_tokens + _replies.c.cache_read_input_tokens,
            _replies.c.output_tokens,
            _replies.c.cost_usd,
        )
        if run_ids is not None:
            query = query.where(_replies.c.run_id.in_(list(run_ids)))
        sums: dict[tuple[str, str], list[Any]] = {}
        with self._engine.connect() as connection:
            for task, model, prompt, output, cost in connection.execute(query):
                total = sums.setdefault((task, model), [0, 0, 0, Decimal(0)])
                total[0] += 1
                total[1] += prompt
                total[2] += output
                total[3] += Decimal(cost)
        return [Spending(task, model, *values) for (task, model), values in sorted(sums.items())]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every entry as a plain mapping, oldest first, for export."""
        query = sa.select(_replies).order_by(_replies.c.created_at, _replies.c.key)
        with self._engine.connect().execution_options(stream_results=True) as connection:
            for row in connection.execute(query).mappings():
                yield dict(row)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


def _sqlite_pragmas(connection: Any, _record: Any) -> None:
    # WAL lets readers and one writer work at once; FULL makes a commit survive a power cut, not only a kill.
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA busy_timeout=60000")
    cursor.close()
