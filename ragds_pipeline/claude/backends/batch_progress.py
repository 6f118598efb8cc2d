"""What people are told while batches are under way: lines for the event log, with the discount."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.requests import Usage
from ragds_pipeline.config import ClaudeSettings


@dataclass(slots=True)
class _Tally:
    answered: int = 0
    paid: Decimal = Decimal(0)
    list_price: Decimal = Decimal(0)


class Told:
    """Progress as text. Says a thing once, and what changes with time no more often than asked."""

    def __init__(self, say: Callable[[str], None], settings: ClaudeSettings) -> None:
        self._say = say
        self._prices = PriceTable(settings.prices)
        self._tallies: dict[str, _Tally] = {}
        self._said: set[str] = set()
        self._since = time.monotonic()

    def left_behind(self, requests: int) -> None:
        """An earlier run left batches that hold some of the requests."""
        self._once(
            f"{requests} requests are in batches of an earlier run, which are paid for; their results are waited for "
            "(`ragds batches` lists them)"
        )

    def created(self, batch_id: str, requests: int) -> None:
        """A batch was made."""
        self._say(f"batch {batch_id} made with {requests} requests; it ends within 24 hours, mostly within one")

    def unclear(self, requests: int, why: str) -> None:
        """A creation got no clear answer."""
        self._say(f"no clear answer to the creation of a batch of {requests} requests ({why}); looking for it first")

    def found(self, batch_id: str, requests: int) -> None:
        """A batch of unclear creation exists."""
        self._say(f"batch {batch_id} exists and holds the {requests} requests; it is not made again")

    def suspects(self, batch_ids: Sequence[str], requests: int) -> None:
        """A batch may be ours and cannot be told yet."""
        self._once(
            f"waiting for {', '.join(batch_ids)} to end: only its results tell whether it holds the {requests} requests"
        )

    def archived(self, batch_id: str) -> None:
        """The results of a batch are gone."""
        self._say(f"the results of batch {batch_id} are no longer kept; its requests are sent again")

    def waiting(self, batches: int, requests: int) -> None:
        """Nothing moved since the last look."""
        minutes = (time.monotonic() - self._since) / 60
        self._say(f"{batches} batches under way, {requests} requests open, {minutes:.0f} min so far")

    def answered(self, batch_id: str, model: str, message: Mapping[str, Any]) -> None:
        """A reply came out of a batch."""
        usage = Usage.of(message)
        tally = self._tallies.setdefault(batch_id, _Tally())
        tally.answered += 1
        tally.paid += self._prices.cost(model, usage, batch=True)
        tally.list_price += self._prices.cost(model, usage)

    def ended(self, batch_id: str, unanswered: int) -> None:
        """All of a batch has been handed over."""
        tally = self._tallies.pop(batch_id, _Tally())
        self._say(
            f"batch {batch_id} ended: {tally.answered} answered, {unanswered} not; "
            f"${tally.paid:.4f} instead of ${tally.list_price:.4f} without the batch discount"
        )

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)
