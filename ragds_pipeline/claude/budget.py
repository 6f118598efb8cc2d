"""The hard cap: what is spent and what is in flight never exceed it."""

from __future__ import annotations

import threading
from decimal import Decimal


class Budget:
    """Spending of one run. Reserve the most a call can cost before it is sent; settle with what it did cost."""

    def __init__(self, cap_usd: Decimal) -> None:
        self.cap_usd = cap_usd
        self.spent_usd = Decimal(0)
        self._in_flight = Decimal(0)
        self._lock = threading.Lock()

    def reserve(self, amount: Decimal) -> bool:
        """Set ``amount`` aside; False if it does not fit under the cap."""
        with self._lock:
            if self.spent_usd + self._in_flight + amount > self.cap_usd:
                return False
            self._in_flight += amount
            return True

    def settle(self, reserved: Decimal, spent: Decimal) -> None:
        """Replace a reservation by what was really spent."""
        with self._lock:
            self._in_flight -= reserved
            self.spent_usd += spent
