"""Who may send what: one request, one sender, and never more money than there is.

Each :class:`Admission` is a *caller*: it has a row of accounts in the ledger's database and claims the requests it
sends, so that another process waits for the reply instead of sending the same again. A claim of a caller that is gone
is taken over: at once where its process is seen to be gone, else when its heartbeat has not moved for a minute. What
it had in flight stays counted as possibly paid. What does not belong here: how requests are sent, what caps mean.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from types import TracebackType

import sqlalchemy as sa

from ragds_pipeline.claude import accounts
from ragds_pipeline.claude.budget import Budget, Fit, Sums, dollars, units
from ragds_pipeline.claude.database import Writer
from ragds_pipeline.claude.process_identity import is_gone, this_process
from ragds_pipeline.claude.requests import Failure, FailureReason, Request

HEARTBEAT_S = 10.0
EXPIRY_S = 60.0
"""A caller whose heartbeat stands still for so long, as the one who waits for it measures, counts as gone. Clocks of
two machines are never compared."""

LOOK_AGAIN_S = 0.5
"""Between two looks at what other processes have in flight."""


class _Elsewhere(Enum):
    ELSEWHERE = "elsewhere"


_Verdict = Fit | _Elsewhere


class Admission:
    """One caller. Use as a context: at its end what it still holds is given back.

    Args:
        writer: Of the ledger's database.
        budget: The caps; told of what is spent.
        run_id: Run whose cap holds; "" for a run of its own.
        partition: Partition whose cap holds.
        backend: Name of the backend that sends.
    """

    def __init__(self, writer: Writer, budget: Budget, run_id: str, partition: str, backend: str) -> None:
        self._writer = writer
        self._budget = budget
        self._caller = uuid.uuid4().hex
        self._run_id = run_id or f"none:{self._caller}"
        self._partition = partition
        self._backend = backend
        self._watched = _Watch()
        self._settled = threading.Condition()
        self._settlements = 0
        self._impatient = threading.Event()
        self._closing = threading.Event()
        self._reserved: dict[str, int] = {}

    def __enter__(self) -> Admission:
        self._writer.run(
            lambda connection: accounts.introduce(
                connection, self._caller, this_process(), self._run_id, self._partition
            )
        )
        self._heart = threading.Thread(target=self._beat, name="ragds-ledger-heartbeat", daemon=True)
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_waiting()
        self._closing.set()
        self._heart.join(timeout=HEARTBEAT_S)
        self._writer.run(lambda connection: accounts.write_off_all(connection, self._caller))

    def start_round(self) -> None:
        """Let threads wait for the budget (again)."""
        self._impatient.clear()

    def stop_waiting(self) -> None:
        """Make whoever waits for the budget give up: this round of calls ends."""
        self._impatient.set()
        with self._settled:
            self._settled.notify_all()

    def admit(self, request: Request, most_usd: Decimal, wait: bool) -> Failure | None:
        """Claim a request and reserve the most it can cost; return the reason where it must not be sent.

        Args:
            request: One that is not in the ledger. One that this caller has claimed gets a new reserve, after
                ``lost``.
            most_usd: The most it can cost.
            wait: Wait where calls in flight have reserved what they may not need; else refuse at once.
        """
        amount = units(most_usd)
        while True:
            seen = self._settlements
            verdict, told = self._writer.run(lambda connection: self._try(connection, request.key, amount))
            if verdict is Fit.NOW:
                self._reserved[request.key] = amount
                return None
            if verdict is _Elsewhere.ELSEWHERE:
                return Failure(request.key, FailureReason.ELSEWHERE, told)
            if verdict is Fit.NEVER or not wait or self._impatient.is_set():
                return Failure(request.key, FailureReason.OVER_BUDGET, told)
            with self._settled:
                self._settled.wait_for(lambda: self._settlements != seen or self._impatient.is_set(), LOOK_AGAIN_S)  # noqa: B023

    def settle(self, connection: sa.Connection, key: str, cost_usd: Decimal, new: bool, batch: bool = False) -> None:
        """Replace a reserve by what was really spent, in the transaction that stores the reply.

        A reply out of a batch settles what an earlier run, or another process, reserved for it as well.
        """
        ended = accounts.end_claim(connection, key, self._caller)
        # A reply that is there already, and that this caller did not claim, was paid by the one who put it there.
        spent = units(cost_usd) if new or ended else 0
        accounts.move(connection, self._caller, spent=spent, in_flight=-self._reserved.get(key, 0) if ended else 0)
        if batch:
            accounts.collected(connection, key)

    def settled(self, key: str, cost_usd: Decimal) -> None:
        """Take note that a settlement is committed."""
        with self._settled:
            self._reserved.pop(key, None)
            self._budget.spent_usd += cost_usd
            self._settlements += 1
            self._settled.notify_all()

    def failed(self, request: Request) -> None:
        """Give back the claim of a request, if it has one, and the reserve of its last attempt, which cost nothing."""
        key = request.key
        if key not in self._reserved:
            return

        def give_back(connection: sa.Connection) -> None:
            if accounts.end_claim(connection, key, self._caller):
                accounts.move(connection, self._caller, in_flight=-self._reserved[key])

        self._writer.run(give_back)
        self.settled(key, Decimal(0))

    def lost(self, request: Request) -> None:
        """Keep the reserve of an attempt as possibly paid: it was sent, and its reply never came."""
        amount = self._reserved[request.key]

        def keep(connection: sa.Connection) -> None:
            if accounts.reserve(connection, request.key, self._caller, -amount):
                accounts.move(connection, self._caller, possibly_paid=amount)
            # else the claim was taken over, and whoever did that has counted it so

        self._writer.run(keep)
        with self._settled:
            self._reserved[request.key] = 0
            self._budget.possibly_paid_usd += dollars(amount)

    def owe(self, request: Request) -> None:
        """Keep the reserve of a request whose batch cannot be reached now, until somebody collects that batch."""
        key = request.key
        if key not in self._reserved:
            return  # it is in a batch of an earlier run, which counts it
        amount = self._reserved[key]
        self._writer.run(lambda connection: accounts.write_off(connection, key, self._caller, amount, "batch"))
        self._budget.possibly_paid_usd += dollars(amount)
        self.settled(key, Decimal(0))

    def free(self, keys: Iterable[str]) -> set[str]:
        """Return those of ``keys`` that no running caller has in hand."""
        wanted = sorted(keys)
        with self._writer.engine.connect() as connection:
            found = list(accounts.claims_on(connection, wanted))
        return set(wanted) - {c.key for c in found if not self._watched.gone(c.caller, c.process, c.beat)}

    def _try(self, connection: sa.Connection, key: str, amount: int) -> tuple[_Verdict, str]:
        claim = accounts.claim_on(connection, key)
        if claim is not None and claim.caller != self._caller:
            if not self._watched.gone(claim.caller, claim.process, claim.beat):
                return _Elsewhere.ELSEWHERE, "another process has it in hand"
            accounts.write_off(connection, key, claim.caller, claim.reserved, claim.backend)
            claim = None
        if claim is None and accounts.is_answered(connection, key):
            return _Elsewhere.ELSEWHERE, "answered by another process in the meantime"
        run, partition = self._sums(connection)
        fit = self._budget.fit(amount, run, partition)
        if fit is not Fit.NOW:
            return fit, self._budget.refusal(amount, run, partition)
        if claim is None:
            accounts.claim(connection, key, self._caller, self._backend, amount)
        else:
            accounts.reserve(connection, key, self._caller, amount)
        return Fit.NOW, ""

    def _sums(self, connection: sa.Connection) -> tuple[Sums, Sums]:
        run, partition = Sums(), Sums()
        capped = None if self._budget.partition_cap_usd is None else self._partition
        for row in accounts.accounts(connection, self._run_id, capped):
            running = row.caller == self._caller or not (
                row.in_flight and self._watched.gone(row.caller, row.process, row.beat)
            )
            for sums, own in ((run, row.run_id == self._run_id), (partition, row.partition == self._partition)):
                if own:
                    sums.add(row.spent, row.in_flight, row.possibly_paid, running)
        return run, partition

    def _beat(self) -> None:
        while not self._closing.wait(HEARTBEAT_S):
            try:
                self._writer.run(lambda connection: accounts.beat(connection, self._caller))
            except Exception:  # the next beat may get through; others wait for a minute of silence
                logging.getLogger(__name__).warning("the heartbeat could not be written to the ledger", exc_info=True)


class _Watch:
    """Heartbeats of others, as they are seen from here."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}

    def gone(self, caller: str, process: str | None, beat: int | None) -> bool:
        """Return whether a caller is gone: its process is, or its heartbeat stands still."""
        if process is None or beat is None or is_gone(process):
            return True
        now = time.monotonic()
        last, since = self._seen.get(caller, (-1, now))
        if beat != last:
            self._seen[caller] = (beat, now)
            return False
        return now - since > EXPIRY_S
