"""How far a list of requests has come, told about every twentieth of the way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

STEPS = 20


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a list of requests has come."""

    done: int
    total: int
    failed: int
    spent_usd: Decimal
    calls_per_s: float = 0.0
    seconds_left: float | None = None
    """At the rate so far; None while nothing is done."""

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", about {_duration(self.seconds_left)} left"
        return (
            f"{self.done} of {self.total} calls, {self.failed} failed, {self.calls_per_s:.1f}/s, "
            f"${self.spent_usd:.4f} spent{left}"
        )


class ProgressReporter:
    """Counts outcomes and tells about them: the first, every twentieth part, and the last."""

    def __init__(
        self, total: int, spent: Callable[[], Decimal], tell: Callable[[Progress], None] | None = None
    ) -> None:
        self._total = total
        self._spent = spent
        self._tell = tell or log_progress
        self._done = self._failed = 0
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def count(self, failed: bool) -> None:
        """Count one outcome."""
        with self._lock:
            self._done += 1
            self._failed += failed
            if self._done in (1, self._total) or self._done % max(1, self._total // STEPS) == 0:
                self._tell(self._now())

    def _now(self) -> Progress:
        elapsed = max(time.monotonic() - self._began, 1e-9)
        rate = self._done / elapsed
        return Progress(
            self._done, self._total, self._failed, self._spent(), rate, (self._total - self._done) / rate
        )  # fmt: skip


def log_progress(progress: Progress) -> None:
    """Tell the log, for runs outside Dagster."""
    logging.getLogger("ragds_pipeline.claude").info("%s", progress)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
