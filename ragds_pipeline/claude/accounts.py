"""The rows behind admission: what each caller has spent and reserved, and which requests are claimed by whom.

Statements are compiled once: a call needs several, and to compile one takes longer than to run it. Every function here
runs in a transaction of the ledger's ``Writer``; what is decided by them stands in ``admission``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from ragds_pipeline.claude.database import Prepared, batch_items, callers, claims, owed, replies

_LOOKUP_CHUNK = 500

_KEY: sa.BindParameter[str] = sa.bindparam("in_key")
_CALLER: sa.BindParameter[str] = sa.bindparam("in_caller")
_CLAIMED = sa.select(
    claims.c.key, claims.c.caller, claims.c.reserved, claims.c.backend, callers.c.process, callers.c.beat
).outerjoin(callers, callers.c.caller == claims.c.caller)
_CLAIM = Prepared(_CLAIMED.where(claims.c.key == _KEY))
_REPLY = Prepared(sa.select(replies.c.key).where(replies.c.key == _KEY))
_OF_RUN = Prepared(sa.select(callers).where(callers.c.run_id == sa.bindparam("in_run")))
_OF_RUN_OR_PARTITION = Prepared(
    sa.select(callers).where(
        (callers.c.run_id == sa.bindparam("in_run")) | (callers.c.partition == sa.bindparam("in_partition"))
    )
)
_MINE = (claims.c.key == _KEY) & (claims.c.caller == _CALLER)
_RESERVE = Prepared(claims.update().where(_MINE).values(reserved=claims.c.reserved + sa.bindparam("more")))
_END = Prepared(claims.delete().where(_MINE))
_INSERT_CLAIM = Prepared(claims.insert(), ["key", "caller", "backend", "reserved"])
_HELD = sa.select(claims.c.key, claims.c.reserved, claims.c.backend).where(claims.c.caller == _CALLER)
_MOVE = Prepared(
    callers.update()
    .where(callers.c.caller == _CALLER)
    .values(
        spent=callers.c.spent + sa.bindparam("more_spent"),
        in_flight=callers.c.in_flight + sa.bindparam("more_in_flight"),
        possibly_paid=callers.c.possibly_paid + sa.bindparam("more_possibly_paid"),
    )
)
_IN_BATCH = sa.select(batch_items.c.key).where(batch_items.c.key == _KEY).limit(1)
_OWED = sa.select(owed.c.caller, owed.c.amount).where(owed.c.key == _KEY)
_FORGIVE = owed.delete().where(owed.c.key == _KEY)
_HELD_BY_ANYONE = sa.select(claims.c.caller, claims.c.reserved).where(claims.c.key == _KEY)
_BEAT = callers.update().where(callers.c.caller == _CALLER).values(beat=callers.c.beat + 1)


def introduce(connection: sa.Connection, caller: str, process: str, run_id: str, partition: str) -> None:
    """Open the accounts of a new caller."""
    row = {
        "caller": caller, "process": process, "run_id": run_id, "partition": partition,
        "beat": 0, "spent": 0, "in_flight": 0, "possibly_paid": 0,
    }  # fmt: skip
    connection.execute(callers.insert(), row)


def beat(connection: sa.Connection, caller: str) -> None:
    """Show that a caller is alive."""
    connection.execute(_BEAT, {"in_caller": caller})


def claim_on(connection: sa.Connection, key: str) -> Any | None:
    """Return the claim on a request with its caller's process and heartbeat (None if that row is missing)."""
    return _CLAIM.on(connection, {"in_key": key}).first()


def claims_on(connection: sa.Connection, keys: Sequence[str]) -> Iterator[Any]:
    """Yield the claims there are on ``keys``."""
    for at in range(0, len(keys), _LOOKUP_CHUNK):
        yield from connection.execute(_CLAIMED.where(claims.c.key.in_(keys[at : at + _LOOKUP_CHUNK])))


def is_answered(connection: sa.Connection, key: str) -> bool:
    """Return whether the ledger has a reply."""
    return _REPLY.on(connection, {"in_key": key}).first() is not None


def accounts(connection: sa.Connection, run_id: str, partition: str | None) -> Iterable[Any]:
    """Return the rows of all callers of a run and, where one is given, of a partition."""
    if partition is None:
        return _OF_RUN.on(connection, {"in_run": run_id})
    return _OF_RUN_OR_PARTITION.on(connection, {"in_run": run_id, "in_partition": partition})


def claim(connection: sa.Connection, key: str, caller: str, backend: str, amount: int) -> None:
    """Claim a request and reserve ``amount`` for it."""
    _INSERT_CLAIM.on(connection, {"key": key, "caller": caller, "backend": backend, "reserved": amount})
    move(connection, caller, in_flight=amount)


def reserve(connection: sa.Connection, key: str, caller: str, amount: int) -> bool:
    """Reserve more (negative: less) for a request; False, with nothing changed, if ``caller`` has no claim on it."""
    claimed = _RESERVE.on(connection, {"in_key": key, "in_caller": caller, "more": amount}).rowcount > 0
    if claimed:
        move(connection, caller, in_flight=amount)
    return claimed


def end_claim(connection: sa.Connection, key: str, caller: str) -> bool:
    """Delete a claim; False if ``caller`` has none."""
    return _END.on(connection, {"in_key": key, "in_caller": caller}).rowcount > 0


def move(connection: sa.Connection, caller: str, spent: int = 0, in_flight: int = 0, possibly_paid: int = 0) -> None:
    """Add to a caller's accounts."""
    amounts = {"more_spent": spent, "more_in_flight": in_flight, "more_possibly_paid": possibly_paid}
    _MOVE.on(connection, {"in_caller": caller, **amounts})


def write_off(connection: sa.Connection, key: str, caller: str, reserved: int, backend: str) -> None:
    """End a claim whose outcome is not known; what was reserved counts as possibly paid.

    A request that is in a batch is collected by whoever comes next, so its amount is kept by key and taken off again
    when that is done. One that was meant for a batch and is in none was never sent.
    """
    if not end_claim(connection, key, caller):
        return  # somebody took it over and has counted it
    if backend != "batch":
        move(connection, caller, in_flight=-reserved, possibly_paid=reserved)
    elif connection.execute(_IN_BATCH, {"in_key": key}).first() is None:
        move(connection, caller, in_flight=-reserved)
    else:
        forgive(connection, [key])
        connection.execute(owed.insert(), {"key": key, "caller": caller, "amount": reserved})
        move(connection, caller, in_flight=-reserved, possibly_paid=reserved)


def write_off_all(connection: sa.Connection, caller: str) -> None:
    """End every claim that a caller still has."""
    for key, reserved, backend in connection.execute(_HELD, {"in_caller": caller}).all():
        write_off(connection, key, caller, reserved, backend)


def forgive(connection: sa.Connection, keys: Iterable[str]) -> None:
    """Take off what is owed for requests in batches: it is known now what became of them."""
    for key in keys:
        for caller, amount in connection.execute(_OWED, {"in_key": key}).all():
            connection.execute(_FORGIVE, {"in_key": key})
            move(connection, caller, possibly_paid=-amount)


def collected(connection: sa.Connection, key: str) -> None:
    """Take off all that anybody reserved or owes for a request whose reply came out of a batch."""
    forgive(connection, [key])
    for caller, reserved in connection.execute(_HELD_BY_ANYONE, {"in_key": key}).all():
        end_claim(connection, key, caller)
        move(connection, caller, in_flight=-reserved)
