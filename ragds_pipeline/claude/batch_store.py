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

from ragds_pipeline.claude.accounts import forgive
from ragds_pipeline.claude.database import Writer, batch_items, batches, claims, owed, replies
from ragds_pipeline.claude.process_identity import is_gone, this_process

T = TypeVar("T")

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


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch, made or perhaps made, whose replies are not all in the ledger."""

    intent: str
    batch_id: str | None
    """The API's id; None while it is not known whether the batch exists."""
    server: str
    created_at: float
    requests: int
    """How many are tied to it."""
    unanswered: int
    """Those of them that have no reply in the ledger."""
    counted: int
    """What caps count for the unanswered ones, in units of money."""


class BatchStore:
    """Batches and the requests in them, in the ledger's database (opened by ``open_engine``)."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._writer = Writer(engine)

    def _write(self, change: Callable[[sa.Connection], T]) -> T:
        # All of it must survive a power cut: what is lost here is paid twice.
        return self._writer.run(change, durable=True)

    def intents_of(self, keys: Iterable[str], server: str) -> dict[str, str]:
        """Return the id of the intent that holds each of ``keys``, for those that are in one."""
        wanted = list(keys)
        found: dict[str, str] = {}
        with self._engine.connect() as connection:
            for chunk in _chunks(wanted):
                query = sa.select(batch_items.c.key, batch_items.c.intent).where(
                    batch_items.c.server == server, batch_items.c.key.in_(chunk)
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
            connection.execute(batches.insert(), row)
            connection.execute(batch_items.insert(), items)

        try:
            self._write(change)
        except sa.exc.IntegrityError:
            return None
        return intent

    def intent(self, intent_id: str) -> Intent | None:
        """Return an intent, or None if it was given up because its batch never existed."""
        query = sa.select(batches).where(batches.c.intent == intent_id, batches.c.state != "void")
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
            return set(
                connection.execute(sa.select(batch_items.c.key).where(batch_items.c.intent == intent_id)).scalars()
            )

    def known_batches(self, server: str) -> set[str]:
        """Return the ids of all batches that belong to an intent."""
        query = sa.select(batches.c.batch_id).where(batches.c.server == server, batches.c.batch_id.is_not(None))
        with self._engine.connect() as connection:
            return {str(batch_id) for batch_id in connection.execute(query).scalars()}

    def created(self, intent: Intent, batch_id: str) -> None:
        """Commit that the intent's batch exists under ``batch_id``; it is on disk when this returns."""
        change = batches.update().where(batches.c.intent == intent.id, batches.c.state == "intent")
        self._write(lambda connection: connection.execute(change.values(batch_id=batch_id, state="created", owner="")))

    def take_over(self, intent: Intent, lease_s: float) -> bool:
        """Make this process the one that finds out about ``intent``, if its owner has died or let go of it.

        Returns:
            False if the owner still works on it, or another process was faster.
        """
        if intent.owner and _now() < intent.lease_until and not is_gone(intent.owner):
            return False
        change = (
            batches.update()
            .where(batches.c.intent == intent.id, batches.c.state == "intent")
            .where(batches.c.owner == intent.owner, batches.c.lease_until == intent.lease_until)
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
        change = batches.update().where(batches.c.intent == intent.id, batches.c.owner == this_process())
        self._write(lambda connection: connection.execute(change.values(owner=owner, lease_until=until)))

    def void(self, intent: Intent) -> None:
        """Commit that the intent's batch does not exist; its requests are free again, and nothing was paid."""

        def change(connection: sa.Connection) -> None:
            forgive(connection, _give_up(connection, intent.id))

        self._write(change)

    def lose(self, intent: Intent) -> None:
        """Commit that the batch's results can no longer be had; its requests are free, and stay counted as paid."""
        self._write(lambda connection: _lose(connection, intent.id))

    def untie(self, intent: Intent, keys: Sequence[str]) -> None:
        """Free the requests that the intent's batch ended without answering, which costs nothing."""

        def change(connection: sa.Connection) -> None:
            for chunk in _chunks(keys):
                connection.execute(
                    batch_items.delete().where(batch_items.c.intent == intent.id, batch_items.c.key.in_(chunk))
                )
            forgive(connection, keys)

        if keys:
            self._write(change)

    def open_batches(self) -> list[OpenBatch]:
        """Return the batches of all servers whose replies are not all in the ledger, oldest first."""
        unanswered = sa.case((replies.c.key.is_(None), 1), else_=0)
        counted = sa.func.coalesce(owed.c.amount, 0) + sa.func.coalesce(claims.c.reserved, 0)
        found = (
            batches.join(batch_items, batch_items.c.intent == batches.c.intent)
            .outerjoin(replies, replies.c.key == batch_items.c.key)
            .outerjoin(owed, owed.c.key == batch_items.c.key)
            .outerjoin(claims, claims.c.key == batch_items.c.key)
        )
        told = (batches.c.intent, batches.c.batch_id, batches.c.server, batches.c.created_at)
        query = (
            sa.select(*told, sa.func.count(), sa.func.sum(unanswered), sa.func.sum(counted * unanswered))
            .select_from(found)
            .where(batches.c.state != "void")
            .group_by(*told)
            .having(sa.func.sum(unanswered) > 0)
            .order_by(batches.c.created_at, batches.c.intent)
        )
        with self._engine.connect() as connection:
            return [OpenBatch(*row[:4], *(int(number) for number in row[4:])) for row in connection.execute(query)]

    def holds_any(self) -> bool:
        """Return whether there is any request in any batch; quick, so that most runs ask nothing further."""
        with self._engine.connect() as connection:
            return connection.execute(sa.select(batch_items.c.key).limit(1)).first() is not None

    def forget(self, batch: str) -> int:
        """Free all requests of a batch that cannot be reached any more; return how many. They may be paid again.

        What the caps count for them stays counted: that batch may have been paid as well.

        Args:
            batch: The API's id, or that of the intent.
        """

        def change(connection: sa.Connection) -> int:
            named = (batches.c.batch_id == batch) | (batches.c.intent == batch)
            intent_id = connection.execute(sa.select(batches.c.intent).where(named)).scalar()
            return 0 if intent_id is None else _lose(connection, intent_id)

        return self._write(change)


def _give_up(connection: sa.Connection, intent_id: str) -> list[str]:
    """Free the requests of an intent and return their keys."""
    keys = list(connection.execute(sa.select(batch_items.c.key).where(batch_items.c.intent == intent_id)).scalars())
    connection.execute(batch_items.delete().where(batch_items.c.intent == intent_id))
    connection.execute(batches.update().where(batches.c.intent == intent_id).values(state="void"))
    return keys


def _lose(connection: sa.Connection, intent_id: str) -> int:
    keys = _give_up(connection, intent_id)
    for chunk in _chunks(keys):
        connection.execute(owed.delete().where(owed.c.key.in_(chunk)))  # the callers' sums keep it
    return len(keys)


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(keys), _CHUNK):
        yield keys[at : at + _CHUNK]


def _now() -> float:
    return dt.datetime.now(dt.UTC).timestamp()
