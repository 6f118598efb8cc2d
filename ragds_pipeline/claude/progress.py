"""How far a list of requests has come: told about every twentieth of the way and every half minute, and shown live.

Whoever tells (the event log of a run) gets a line now and then; whoever watches (a terminal) gets every single outcome,
from all steps of this process, and what else is said to people. What does not belong here: how a terminal shows it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

STEPS = 20

AT_LEAST_EVERY_S = 30.0
"""A twentieth of a long way may take an hour; nobody should wait so long for a word."""


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
    task: str = ""
    """What the requests are for."""

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", about {_duration(self.seconds_left)} left"
        return (
            f"{self.done} of {self.total} calls, {self.failed} failed, {self.calls_per_s:.1f}/s, "
            f"${self.spent_usd:.4f} spent{left}"
        )


class Watcher(Protocol):
    """Somebody who looks on while a run goes. Its methods are called in threads, one at a time."""

    def step(self, name: str) -> None:
        """A step of the run begins."""

    def progress(self, progress: Progress) -> None:
        """One more outcome has come."""

    def said(self, text: str) -> None:
        """A line of text for people: batches, waiting, recordings."""


class Audience:
    """Who watches in this process."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._lock = threading.RLock()

    @contextmanager
    def joined_by(self, watcher: Watcher) -> Iterator[None]:
        """Let ``watcher`` look on for as long as the context is open."""
        with self._lock:
            self._watchers.append(watcher)
        try:
            yield
        finally:
            with self._lock:
                self._watchers.remove(watcher)

    def step(self, name: str) -> None:
        """Tell all that a step begins."""
        with self._lock:
            for watcher in self._watchers:
                watcher.step(name)

    def progress(self, now: Callable[[], Progress]) -> None:
        """Tell all how far it is; ``now`` is asked only where somebody watches."""
        if self._watchers:
            with self._lock:
                for watcher in self._watchers:
                    watcher.progress(now())

    def said(self, text: str) -> None:
        """Tell all what was said."""
        with self._lock:
            for watcher in self._watchers:
                watcher.said(text)


AUDIENCE = Audience()
"""Of this process: a run's steps follow one another in it, and one terminal shows them all."""


class ProgressReporter:
    """Counts outcomes and tells about them: the first, every twentieth part, every half minute, and the last."""

    def __init__(
        self,
        total: int,
        spent: Callable[[], Decimal],
        tell: Callable[[Progress], None] | None = None,
        task: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._spent = spent
        self._tell = tell or log_progress
        self._task = task
        self._clock = clock
        self._done = self._failed = 0
        self._began = self._told = clock()
        self._lock = threading.Lock()

    def count(self, failed: bool) -> None:
        """Count one outcome."""
        with self._lock:
            self._done += 1
            self._failed += failed
            due = self._done in (1, self._total) or self._done % max(1, self._total // STEPS) == 0
            if due or self._clock() - self._told >= AT_LEAST_EVERY_S:
                self._told = self._clock()
                self._tell(self._now())
            AUDIENCE.progress(self._now)

    def _now(self) -> Progress:
        elapsed = max(self._clock() - self._began, 1e-9)
        rate = self._done / elapsed
        left = (self._total - self._done) / rate
        return Progress(self._done, self._total, self._failed, self._spent(), rate, left, self._task)


def log_progress(progress: Progress) -> None:
    """Tell the log, for runs outside Dagster."""
    logging.getLogger("ragds_pipeline.claude").info("%s", progress)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
