"""What is known of message batches, durable beside the ledger, so that no request is ever in two of them.

A batch begins as an *intent*: a row, and a row for each request in it, committed before the API is asked to make the
batch. It becomes *created* when the API's id for it is committed, before anything is polled. A request stays tied to
the batch that answered it, so a process that comes later, or one that was killed while it collected, reads the answer
from there instead of paying for another. What was not paid (expired, errored, canceled) is untied and may be sent anew.

One row a request and server is the lock between processes: whoever inserts it first sends the request, everyone else
follows that batch. What does not belong here: talking to the API.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa

from ragds_pipeline.claude.database import Writer
from ragds_pipeline.claude.process_identity import is_gone, this_process

T = TypeVar("T")

_metadata = sa.MetaData()

_batches = sa.Table(
    "batches",
    _metadata,
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

_items = sa.Table(
    "batch_items",
    _metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("intent", sa.String(32), nullable=False, index=True),
)

_CHUNK = 500
"""Keys in one statement; SQLite allows 32,766 variables, older builds 999."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch that is to be made, or was."""

    id: str
    batch_id: str | None
    """The API's id; None while it is not known whether the batch exists."""
    newest_before: str
    """Id of the newest batch there was when the intent was written, "" if there was none: ours is newer."""
    size: int
    created_at: float
    owner: str
    lease_until: float


class BatchStore:
    """Batches and the requests in them, in the ledger's database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._writer = Writer(engine)
        self._write(_metadata.create_all)

    def _write(self, change: Callable[[sa.Connection], T]) -> T:
        # All of it must survive a power cut: what is lost here is paid twice.
        return self._writer.run(change, durable=True)

    def intents_of(self, keys: Iterable[str], server: str) -> dict[str, str]:
        """Return the id of the intent that holds each of ``keys``, for those that are in one."""
        wanted = list(keys)
        found: dict[str, str] = {}
        with self._engine.connect() as connection:
            for chunk in _chunks(wanted):
                query = sa.select(_items.c.key, _items.c.intent).where(
                    _items.c.server == server, _items.c.key.in_(chunk)
                )
                found.update((key, intent) for key, intent in connection.execute(query))
        return found

    def open_intent(self, keys: Sequence[str], server: str, newest_before: str, lease_s: float) -> Intent | None:
        """Commit the intent to make a batch of ``keys``, owned by this process; it is on disk when this returns.

        Returns:
            None, with nothing written, if another process holds one of the keys by now.
        """
        now = _now()
        intent = Intent(uuid.uuid4().hex, None, newest_before, len(keys), now, this_process(), now + lease_s)
        row = {
            "intent": intent.id, "server": server, "batch_id": None, "newest_before": newest_before, "size": len(keys),
            "owner": intent.owner, "lease_until": intent.lease_until, "created_at": now, "state": "intent",
        }  # fmt: skip
        # Sorted, so that two processes with overlapping keys wait for each other in the same order.
        items = [{"key": key, "server": server, "intent": intent.id} for key in sorted(keys)]

        def change(connection: sa.Connection) -> None:
            connection.execute(_batches.insert(), row)
            connection.execute(_items.insert(), items)

        try:
            self._write(change)
        except sa.exc.IntegrityError:
            return None
        return intent

    def intent(self, intent_id: str) -> Intent | None:
        """Return an intent, or None if it was given up because its batch never existed."""
        query = sa.select(_batches).where(_batches.c.intent == intent_id, _batches.c.state != "void")
        with self._engine.connect() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        return Intent(
            row["intent"], row["batch_id"], row["newest_before"], row["size"], row["created_at"], row["owner"],
            row["lease_until"],
        )  # fmt: skip

    def keys(self, intent_id: str) -> set[str]:
        """Return the keys of the requests in an intent."""
        with self._engine.connect() as connection:
            return set(connection.execute(sa.select(_items.c.key).where(_items.c.intent == intent_id)).scalars())

    def known_batches(self, server: str) -> set[str]:
        """Return the ids of all batches that belong to an intent."""
        query = sa.select(_batches.c.batch_id).where(_batches.c.server == server, _batches.c.batch_id.is_not(None))
        with self._engine.connect() as connection:
            return {str(batch_id) for batch_id in connection.execute(query).scalars()}

    def created(self, intent: Intent, batch_id: str) -> None:
        """Commit that the intent's batch exists under ``batch_id``; it is on disk when this returns."""
        change = _batches.update().where(_batches.c.intent == intent.id, _batches.c.state == "intent")
        self._write(lambda connection: connection.execute(change.values(batch_id=batch_id, state="created", owner="")))

    def take_over(self, intent: Intent, lease_s: float) -> bool:
        """Make this process the one that finds out about ``intent``, if its owner has died or let go of it.

        Returns:
            False if the owner still works on it, or another process was faster.
        """
        if intent.owner and _now() < intent.lease_until and not is_gone(intent.owner):
            return False
        change = (
            _batches.update()
            .where(_batches.c.intent == intent.id, _batches.c.state == "intent")
            .where(_batches.c.owner == intent.owner, _batches.c.lease_until == intent.lease_until)
            .values(owner=this_process(), lease_until=_now() + lease_s)
        )
        return self._write(lambda connection: connection.execute(change).rowcount == 1)

    def extend(self, intent: Intent, lease_s: float) -> None:
        """Keep hold of an intent for ``lease_s`` more seconds."""
        self._hold(intent, this_process(), _now() + lease_s)

    def let_go(self, intent: Intent) -> None:
        """Leave an intent that could not be settled to whoever comes next."""
        self._hold(intent, "", 0.0)

    def _hold(self, intent: Intent, owner: str, until: float) -> None:
        change = _batches.update().where(_batches.c.intent == intent.id, _batches.c.owner == this_process())
        self._write(lambda connection: connection.execute(change.values(owner=owner, lease_until=until)))

    def void(self, intent: Intent) -> None:
        """Commit that the intent's batch does not exist, or can no longer be read; its requests are free again."""
        self._write(lambda connection: _give_up(connection, intent.id))

    def untie(self, intent: Intent, keys: Sequence[str]) -> None:
        """Free the requests that the intent's batch ended without answering, which costs nothing."""

        def change(connection: sa.Connection) -> None:
            for chunk in _chunks(keys):
                connection.execute(_items.delete().where(_items.c.intent == intent.id, _items.c.key.in_(chunk)))

        if keys:
            self._write(change)

    def forget(self, batch_id: str) -> int:
        """Free all requests of a batch that cannot be reached any more; return how many. They may be paid again."""

        def change(connection: sa.Connection) -> int:
            query = sa.select(_batches.c.intent).where(_batches.c.batch_id == batch_id)
            intent_id = connection.execute(query).scalar()
            return 0 if intent_id is None else _give_up(connection, intent_id)

        return self._write(change)


def _give_up(connection: sa.Connection, intent_id: str) -> int:
    freed = connection.execute(_items.delete().where(_items.c.intent == intent_id)).rowcount
    connection.execute(_batches.update().where(_batches.c.intent == intent_id).values(state="void"))
    return int(freed)


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(keys), _CHUNK):
        yield keys[at : at + _CHUNK]


def _now() -> float:
    return dt.datetime.now(dt.UTC).timestamp()
