"""What a revision of the KB really cost, told by the ledger: every request it asked, who paid for the reply, how much.

A reply is paid once and may serve many revisions. So there are two sums: what was *paid* for a revision, and what all
the replies it rests on *cost*, whoever paid. Recorded replies cost nothing. All money is the ledger's own; nothing is
computed from prices again. What does not belong here: estimates (``estimate``, ``forecast``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import sqlalchemy as sa

from ragds_pipeline.claude.budget import UNITS_PER_USD, dollars
from ragds_pipeline.claude.database import callers, replies, uses
from ragds_pipeline.claude.ledger import Ledger, ledger_url
from ragds_pipeline.claude.requests import Failure, Reply, Request, Usage
from ragds_pipeline.config import Settings

_TOLD = (
    replies.c.model, replies.c.input_tokens, replies.c.output_tokens, replies.c.cache_creation_input_tokens,
    replies.c.cache_read_input_tokens, replies.c.cost_usd, replies.c.partition, replies.c.backend,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a revision, with what its reply cost."""

    key: str
    task: str
    item: str
    model: str
    answered: bool
    """False where the ledger has no reply to it: it failed without one."""
    paid: bool
    """True where this revision paid for the reply; False where another did, or where it is a recording."""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: Decimal = Decimal(0)


@dataclass(slots=True)
class CallSum:
    """Calls added up."""

    calls: int = 0
    replayed: int = 0
    """Answered without paying: from the ledger or a recording."""
    unanswered: int = 0
    input_tokens: int = 0
    """Neither written to the prompt cache nor read from it."""
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    paid_usd: Decimal = Decimal(0)
    cost_usd: Decimal = Decimal(0)
    """What the replies cost, whoever paid for them."""

    def add(self, call: Call) -> None:
        """Count one call in."""
        self.calls += 1
        self.replayed += call.answered and not call.paid
        self.unanswered += not call.answered
        self.input_tokens += call.input_tokens
        self.output_tokens += call.output_tokens
        self.cache_write_tokens += call.cache_write_tokens
        self.cache_read_tokens += call.cache_read_tokens
        self.paid_usd += call.cost_usd if call.paid else 0
        self.cost_usd += call.cost_usd


@dataclass(frozen=True, slots=True)
class Books:
    """What two books of the ledger's database say about one revision; they are kept apart and must agree."""

    calls: tuple[Call, ...]
    replies_usd: Decimal
    """Sum over the replies that were paid for it."""
    accounts_usd: Decimal
    """Sum over the accounts of all callers, which the caps rest on."""
    possibly_paid_usd: Decimal
    """Reserved for calls whose reply was lost, or is in a batch that nobody has collected yet."""
    in_flight_usd: Decimal
    """Reserved for calls under way, or of processes that died."""

    def faults(self) -> list[str]:
        """Return what does not add up, in words; empty where everything does."""
        listed = sum((call.cost_usd for call in self.calls if call.paid), Decimal(0))
        found = []
        if listed != self.replies_usd:
            found.append(f"the calls listed come to ${listed}, the ledger's replies to ${self.replies_usd}")
        # Accounts are integers, rounded up for each reply.
        slack = Decimal(len(self.calls) + 1) / UNITS_PER_USD
        if self.accounts_usd > self.replies_usd + slack:
            twice = self.accounts_usd - self.replies_usd
            found.append(f"${twice} was spent on replies that the ledger does not hold: paid twice, or deleted from it")
        if self.accounts_usd + slack < self.replies_usd:
            less = self.replies_usd - self.accounts_usd
            found.append(f"the accounts know nothing of ${less} of the replies (a ledger of version 0.1 had none)")
        return found


def sums(calls: Iterable[Call]) -> dict[tuple[str, str], CallSum]:
    """Return the calls added up by task and model, in that order."""
    found: dict[tuple[str, str], CallSum] = {}
    for call in calls:
        found.setdefault((call.task, call.model), CallSum()).add(call)
    return dict(sorted(found.items()))


def total(calls: Iterable[Call]) -> CallSum:
    """Return all calls added up."""
    whole = CallSum()
    for call in calls:
        whole.add(call)
    return whole


def read_books(ledger: Ledger, partition: str) -> Books:
    """Return what the ledger knows about a revision, all of it as of one moment."""
    with ledger.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")  # else each SELECT would see a moment of its own
        else:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        calls = tuple(_calls(connection, partition))
        paid = connection.execute(sa.select(replies.c.cost_usd).where(replies.c.partition == partition)).scalars()
        replies_usd = sum((Decimal(cost) for cost in paid), Decimal(0))
        amounts = (sa.func.sum(callers.c[name]) for name in ("spent", "possibly_paid", "in_flight"))
        row = connection.execute(sa.select(*amounts).where(callers.c.partition == partition)).one()
        spent, possibly_paid, in_flight = (dollars(int(amount or 0)) for amount in row)
        connection.rollback()
    return Books(calls, replies_usd, spent, possibly_paid, in_flight)


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long the replies of a task and model, and the requests for them, are on average."""

    replies: int
    usage: Usage
    """Averages, rounded."""

    @property
    def uncached(self) -> Usage:
        """The same if nothing were written to the prompt cache or read from it."""
        usage = self.usage
        prompt = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        return Usage(prompt, usage.output_tokens)


def average_lengths(ledger: Ledger) -> dict[tuple[str, str], Lengths]:
    """Return average lengths by task and model, over all replies that were paid; recordings tell no tokens."""
    columns = (
        replies.c.input_tokens, replies.c.output_tokens, replies.c.cache_creation_input_tokens,
        replies.c.cache_read_input_tokens,
    )  # fmt: skip
    query = (
        sa.select(replies.c.task, replies.c.model, sa.func.count(), *(sa.func.avg(column) for column in columns))
        .where(replies.c.backend != "file")
        .group_by(replies.c.task, replies.c.model)
    )
    with ledger.engine.connect() as connection:
        return {
            (task, model): Lengths(count, Usage(*(round(float(average)) for average in averages)))
            for task, model, count, *averages in connection.execute(query)
        }


def books_of(settings: Settings, partition: str) -> Books | None:
    """Return what the project's ledger knows about a revision; None where there is no ledger yet, or none in reach."""
    url = sa.make_url(ledger_url(settings))
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return None
    try:
        ledger = Ledger(ledger_url(settings))
    except sa.exc.SQLAlchemyError:
        return None
    try:
        return read_books(ledger, partition)
    finally:
        ledger.close()


def _calls(connection: sa.Connection, partition: str) -> Iterator[Call]:
    """Yield what the revision asked, then what was paid for it by runs that were killed before they took note."""
    asked = (
        sa.select(uses.c.key, uses.c.task, uses.c.item, uses.c.model.label("asked_model"), *_TOLD)
        .select_from(uses.outerjoin(replies, replies.c.key == uses.c.key))
        .where(uses.c.partition == partition)
        .order_by(uses.c.task, uses.c.key)
    )
    noted = sa.exists().where(uses.c.key == replies.c.key, uses.c.partition == partition)
    only_paid = (
        sa.select(replies.c.key, replies.c.task, replies.c.item, replies.c.model.label("asked_model"), *_TOLD)
        .where(replies.c.partition == partition, ~noted)
        .order_by(replies.c.task, replies.c.key)
    )
    for query in (asked, only_paid):
        for row in connection.execute(query):
            if row.model is None:
                yield Call(row.key, row.task, row.item, row.asked_model, answered=False, paid=False)
                continue
            yield Call(
                row.key, row.task, row.item, row.asked_model, True,
                row.partition == partition and row.backend != "file",
                row.input_tokens, row.output_tokens, row.cache_creation_input_tokens, row.cache_read_input_tokens,
                Decimal(row.cost_usd),
            )  # fmt: skip


@dataclass(slots=True)
class StepCosts:
    """What one step of a run has asked so far, by task and model."""

    by_task: dict[tuple[str, str], CallSum] = field(default_factory=dict)

    def note(self, requests: Mapping[str, Request], outcomes: Mapping[str, Reply | Failure]) -> None:
        """Count in what ``ask`` returned."""
        for key, request in requests.items():
            outcome, name = outcomes[key], (request.task, request.model)
            whole = self.by_task.get(name)
            if whole is None:
                whole = self.by_task[name] = CallSum()
            usage = outcome.usage
            # A failure that is no message was not paid, as far as anyone knows.
            answered = isinstance(outcome, Reply) or bool(outcome.model)
            whole.calls += 1
            whole.replayed += answered and outcome.replayed
            whole.unanswered += not answered
            whole.input_tokens += usage.input_tokens
            whole.output_tokens += usage.output_tokens
            whole.cache_write_tokens += usage.cache_creation_input_tokens
            whole.cache_read_tokens += usage.cache_read_input_tokens
            whole.cost_usd += outcome.cost_usd
            if answered and not outcome.replayed:
                whole.paid_usd += outcome.cost_usd

    @property
    def paid_usd(self) -> Decimal:
        """What was paid in this step."""
        return sum((each.paid_usd for each in self.by_task.values()), Decimal(0))
