"""Dagster's SQLite storage, with its connections kept open.

Dagster makes an engine, a connection and the text of every statement anew for each query, and the last connection that
closes writes the log of the database back: some 7,000 times in a run of 100 steps, which is most of what such a run
takes. Here they are kept, a few databases at a time. Tables and statements are Dagster's own: both kinds of storage
read and write the same files, and ``dagster_home/dagster.yaml`` says which one is used.

What does not belong here: anything that the databases mean.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData

KEPT_DATABASES = 8
"""Each run has a database of its own; a UI that shows many of them is not to hold them all open."""

BUSY_TIMEOUT_S = 20.0
"""How long a process waits for another one's write; Dagster waits as long."""


class Engines:
    """The engines of the databases in use, the ones used longest ago closed."""

    def __init__(self, kept: int = KEPT_DATABASES) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._engines: OrderedDict[tuple[int, str], sa.Engine] = OrderedDict()

    def engine(self, url: str) -> sa.Engine:
        """Return the engine for ``url``; a process that was forked has its own."""
        key = (os.getpid(), url)
        with self._lock:
            engine = self._engines.pop(key, None)
            self._engines[key] = engine = engine or _open(url)
            while len(self._engines) > self._kept:
                _, oldest = self._engines.popitem(last=False)
                oldest.dispose()
            return engine

    def dispose(self) -> None:
        """Close the connections of this process that nobody is using."""
        with self._lock:
            for (process, _), engine in self._engines.items():
                engine.dispose(close=process == os.getpid())
            self._engines.clear()


def _open(url: str) -> sa.Engine:
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S}, max_overflow=-1)

    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, _record: Any) -> None:
        # In WAL mode this loses nothing when a process is killed; a machine that loses power may forget the last
        # events, and then the step is run again.
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


class _EventLog(SqliteEventLogStorage):
    def __init__(self, base_dir: str, engines: Engines) -> None:
        self._kept = engines
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sa.Connection]:
        with self._db_lock:
            engine = self._kept.engine(self.conn_string_for_shard(shard))
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.begin() as connection:
                yield connection


class _KeptOpen:
    """Takes the connections of a storage that has a single database from the engines that are kept."""

    _conn_string: str

    def __init__(self, url: str, engines: Engines) -> None:
        self._kept = engines
        super().__init__(url)  # type: ignore[call-arg]  # that of Dagster's class, which stands beside this one

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        with self._kept.engine(self._conn_string).begin() as connection:
            yield connection


class _Runs(_KeptOpen, SqliteRunStorage):
    pass


class _Schedules(_KeptOpen, SqliteScheduleStorage):
    pass


class KeptOpenSqliteStorage(DagsterSqliteStorage):
    """``storage.custom`` of ``dagster.yaml``: what ``storage.sqlite`` is, and at the same place."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        engines = Engines()
        self._engines = engines
        self._event_log_storage = _EventLog(self._event_log_storage._base_dir, engines)
        self._run_storage = _Runs(self._run_storage._conn_string, engines)
        self._schedule_storage = _Schedules(self._schedule_storage._conn_string, engines)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> KeptOpenSqliteStorage:
        """Return the storage that ``dagster.yaml`` configures."""
        return cls.from_local(inst_data=inst_data, **config_value)

    def dispose(self) -> None:
        """Close everything."""
        super().dispose()
        self._engines.dispose()
