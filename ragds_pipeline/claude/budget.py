"""The hard cap: what is spent, what is in flight and what may have been paid never exceed it together.

A call is sent only after the most that it can cost fits under the caps of its run and of its partition, counting every
process that spends for them. A call whose reply was lost may have been paid, and its whole reserve stays counted.
What does not belong here: the database that the sums come from (``admission``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from enum import Enum

UNITS_PER_USD = 10**12
"""Money is an integer in the database, where sums of it are made: the price of a single token has up to 9 decimals."""


def units(usd: Decimal) -> int:
    """Return an amount in units, rounded up."""
    return int((usd * UNITS_PER_USD).to_integral_value(ROUND_CEILING))


def dollars(amount: int) -> Decimal:
    """Return an amount of units in USD."""
    return Decimal(amount) / UNITS_PER_USD


class Fit(Enum):
    """Whether a call fits under the caps."""

    NOW = "now"
    LATER = "later"
    """Not yet: calls in flight have reserved what they may not need."""
    NEVER = "never"


@dataclass(slots=True)
class Sums:
    """The money of one run or partition, all processes together, in units."""

    spent: int = 0
    in_flight: int = 0
    possibly_paid: int = 0

    def add(self, spent: int, in_flight: int, possibly_paid: int, running: bool) -> None:
        """Count one caller in. What was in flight when a caller died may have been paid."""
        self.spent += spent
        self.in_flight += in_flight if running else 0
        self.possibly_paid += possibly_paid + (0 if running else in_flight)

    def fit(self, amount: int, cap: int) -> Fit:
        """Return whether ``amount`` fits under ``cap``."""
        settled = self.spent + self.possibly_paid + amount
        if settled > cap:
            return Fit.NEVER
        return Fit.NOW if settled + self.in_flight <= cap else Fit.LATER


@dataclass(slots=True)
class Budget:
    """The caps, and what this process has spent under them."""

    cap_usd: Decimal
    """Of the run."""
    partition_cap_usd: Decimal | None = None
    """Of the partition, over all its runs; None: only the run's holds."""
    spent_usd: Decimal = field(default=Decimal(0), init=False)
    possibly_paid_usd: Decimal = field(default=Decimal(0), init=False)
    """Reserved for calls whose reply was lost, or never came, after they had been sent."""

    def fit(self, amount: int, run: Sums, partition: Sums) -> Fit:
        """Return whether a call that may cost ``amount`` units fits under both caps."""
        fits = [run.fit(amount, units(self.cap_usd))]
        if self.partition_cap_usd is not None:
            fits.append(partition.fit(amount, units(self.partition_cap_usd)))
        return next((fit for fit in (Fit.NEVER, Fit.LATER) if fit in fits), Fit.NOW)

    def refusal(self, amount: int, run: Sums, partition: Sums) -> str:
        """Return the sentence that tells why a call is not sent."""
        caps: list[tuple[str, Sums, Decimal]] = [("run", run, self.cap_usd)]
        if self.partition_cap_usd is not None:
            caps.append(("partition", partition, self.partition_cap_usd))
        return f"could cost ${dollars(amount):.4f}; " + "; ".join(_told(*cap) for cap in _tight(caps, amount))


def _tight(caps: list[tuple[str, Sums, Decimal]], amount: int) -> Iterable[tuple[str, Sums, Decimal]]:
    return [cap for cap in caps if cap[1].fit(amount, units(cap[2])) is not Fit.NOW]


def _told(name: str, sums: Sums, cap: Decimal) -> str:
    text = f"of the {name}'s cap of ${cap} ${dollars(sums.spent):.4f} is spent"
    if sums.in_flight:
        text += f", ${dollars(sums.in_flight):.4f} in flight"
    if sums.possibly_paid:
        text += f", ${dollars(sums.possibly_paid):.4f} possibly paid (the replies were lost)"
    return text
