"""The ledger's database: how it is opened, its tables, and how several threads share one commit.

SQLite (WAL) or PostgreSQL. Every change goes through :class:`Writer`, one transaction at a time in all processes
together, so that what is checked in a transaction still holds when it is committed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from ragds_pipeline.config import ConfigError

T = TypeVar("T")

metadata = sa.MetaData()

replies = sa.Table(
    "replies",
    metadata,
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
    sa.Column("partition", sa.Text, nullable=False, server_default=""),
)
"""One row a reply, for ever."""

callers = sa.Table(
    "callers",
    metadata,
    sa.Column("caller", sa.String(32), primary_key=True),
    sa.Column("process", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False, index=True),
    sa.Column("partition", sa.Text, nullable=False, index=True),
    sa.Column("beat", sa.BigInteger, nullable=False),
    sa.Column("spent", sa.BigInteger, nullable=False),
    sa.Column("in_flight", sa.BigInteger, nullable=False),
    sa.Column("possibly_paid", sa.BigInteger, nullable=False),
)
"""One row for whoever has sent something: its money in units of 1e-12 USD, and a heartbeat that others watch."""

claims = sa.Table(
    "claims",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("caller", sa.String(32), nullable=False, index=True),
    sa.Column("backend", sa.Text, nullable=False),
    sa.Column("reserved", sa.BigInteger, nullable=False),
)
"""One row a request that is under way, and who has it in hand."""

owed = sa.Table(
    "owed",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("caller", sa.String(32), nullable=False, index=True),
    sa.Column("amount", sa.BigInteger, nullable=False),
)
"""One row a request in a batch that nobody follows just now: what its caller counts as possibly paid, until somebody
collects the batch and it is known."""

uses = sa.Table(
    "uses",
    metadata,
    sa.Column("partition", sa.Text, primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
)
"""One row a request and revision that asked it, whoever paid for the reply and whether there is one."""

batches = sa.Table(
    "batches",
    metadata,
    sa.Column("intent", sa.String(32), primary_key=True),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("batch_id", sa.Text, unique=True),
    sa.Column("newest_before", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("lease_until", sa.Float, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("state", sa.String(8), nullable=False),
)
"""One row a message batch that was to be made; see ``batch_store``."""

batch_items = sa.Table(
    "batch_items",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("intent", sa.String(32), nullable=False, index=True),
)
"""One row a request and server: the batch that it is in."""

_WRITE_LOCK = 7_236_101_940
"""Number of the advisory lock that makes PostgreSQL take one writer at a time, as SQLite does by itself."""

_TRIES = 4
"""How often a transaction is tried when the database is away for a moment; a paid reply hangs on it."""


def open_engine(url: str) -> sa.Engine:
    """Open the database at ``url`` and make or complete its tables.

    Raises:
        ConfigError: If the URL names no database that can serve as a ledger, or its driver is not installed.
    """
    address = sa.make_url(url)
    kind = address.get_backend_name()
    if kind not in ("sqlite", "postgresql"):
        raise ConfigError(f"claude.ledger: {kind} is not supported; use sqlite:///… or postgresql://…")
    if address.drivername == "postgresql":
        address = address.set(drivername="postgresql+psycopg2")  # plain means psycopg 3 to SQLAlchemy 2.1
    try:
        engine = _sqlite(address) if kind == "sqlite" else sa.create_engine(address, pool_size=2, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise ConfigError(f"claude.ledger: {error}; install it with: pip install 'ragds[postgres]'") from error
    Writer(engine).run(_complete_tables, durable=True)
    return engine


def _sqlite(address: sa.URL) -> sa.Engine:
    if address.database in (None, "", ":memory:"):
        engine = sa.create_engine(address, poolclass=sa.StaticPool, connect_args={"check_same_thread": False})
    else:
        Path(str(address.database)).parent.mkdir(parents=True, exist_ok=True)
        engine = sa.create_engine(address)
    sa.event.listen(engine, "connect", _sqlite_pragmas)
    sa.event.listen(engine, "checkin", _sync_again)
    return engine


def _sqlite_pragmas(connection: Any, _record: Any) -> None:
    # WAL lets readers and one writer work at once; FULL makes a commit survive a power cut, not only a kill. The
    # time to wait comes first, because two processes that open a new ledger at once both switch it to WAL.
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout=60000")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _sync_again(connection: Any, _record: Any) -> None:
    # The writer turns it down for what need not survive a power cut; whoever gets the connection next counts on it.
    if connection is not None:
        connection.execute("PRAGMA synchronous=FULL")


def _complete_tables(connection: sa.Connection) -> None:
    metadata.create_all(connection)
    present = {column["name"] for column in sa.inspect(connection).get_columns("replies")}
    if "partition" not in present:  # a ledger of version 0.1, which had everything else
        connection.exec_driver_sql("ALTER TABLE replies ADD COLUMN \"partition\" TEXT NOT NULL DEFAULT ''")


class Prepared:
    """A statement that is compiled once for each kind of database, for what is run for every call or every reply.

    SQLAlchemy works for longer on such a statement, each time, than the database does. Parameters are given by name and
    results come as the driver's own tuples.
    """

    def __init__(self, statement: sa.sql.ClauseElement, columns: Sequence[str] | None = None) -> None:
        self._statement = statement
        self._columns = columns
        self._compiled: dict[str, tuple[str, list[str] | None]] = {}

    def on(self, connection: sa.Connection, parameters: Mapping[str, Any]) -> sa.CursorResult[Any]:
        """Run it."""
        name = connection.dialect.name
        if name not in self._compiled:
            made: Any = self._statement.compile(dialect=connection.dialect, column_keys=self._columns)
            self._compiled[name] = (made.string, made.positiontup if made.positional else None)
        text, order = self._compiled[name]
        given: Any = parameters if order is None else tuple([parameters[each] for each in order])
        return connection.exec_driver_sql(text, given)


def select_by_key(connection: sa.Connection, table: sa.Table, columns: Sequence[str], keys: Sequence[str]) -> list[Any]:
    """Return the rows of ``table`` with these keys, in no order; ``keys`` are few enough for one statement."""
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    names = ", ".join(columns)
    # Names of our own columns and table; the keys are parameters.
    text = f"SELECT {names} FROM {table.name} WHERE key IN ({', '.join([mark] * len(keys))})"  # noqa: S608
    return list(connection.exec_driver_sql(text, tuple(keys)).fetchall())


class _Work(Generic[T]):
    """A change that waits to be committed, and what came of it."""

    def __init__(self, change: Callable[[sa.Connection], T], durable: bool) -> None:
        self.change = change
        self.durable = durable
        self.done = False
        self.value: T | None = None
        self.error: Exception | None = None


class Writer:
    """Commits changes, those of several threads together: a commit waits for the disk, and many can wait at once."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._waiting: deque[_Work[Any]] = deque()
        self._turn = threading.Lock()

    def run(self, change: Callable[[sa.Connection], T], durable: bool = False) -> T:
        """Run ``change`` in a transaction and return what it returns, once that is committed.

        Args:
            change: Gets a connection on which nothing else writes, in this or any other process. It may be run
                again on a new connection, so it must not change anything but the database.
            durable: Whether the commit must survive a power cut (a reply). What is not durable survives a kill.
        """
        work = _Work(change, durable)
        self._waiting.append(work)
        with self._turn:
            if not work.done:  # else the thread that had the turn before took it along
                group = [self._waiting.popleft() for _ in range(len(self._waiting))]
                try:
                    self._commit(group)
                finally:  # interrupted: whoever has the turn next takes the others along
                    self._waiting.extendleft(other for other in group if not other.done and other is not work)
        if work.error is not None:
            raise work.error
        return work.value  # type: ignore[return-value]

    def _commit(self, group: list[_Work[Any]]) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                self._transaction(group)
                break
            except Exception as error:
                if len(group) > 1:  # one of them is at fault; the others must not pay for it
                    for work in group:
                        self._commit([work])
                    return
                if attempt == _TRIES or not isinstance(error, sa.exc.OperationalError):
                    group[0].error = error
                    break
                time.sleep(0.2 * attempt)
        for work in group:
            work.done = True

    def _transaction(self, group: list[_Work[Any]]) -> None:
        durable = any(work.durable for work in group)
        with self.engine.connect() as connection, connection.begin():
            if connection.dialect.name == "sqlite":
                if not durable:
                    connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
                # A transaction that reads before it writes must have the write lock from its first statement.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                if not durable:
                    connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")
            for work in group:
                work.value = work.change(connection)
