"""Pacing: so many requests and tokens a minute, and a pause for everyone when the server asks for one.

One pacer serves all workers of a run in one event loop. A pause is not hammered against by each worker in turn.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

BURST_S = 5.0
"""Seconds' worth of the limit that may go out at once after a quiet time; servers refill their buckets steadily."""

LONGEST_LEARNED_PAUSE_S = 60.0
"""A limit of a minute is full again after a minute; a later reset is a clock that differs from ours."""

_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")


class Bucket:
    """An allowance that fills steadily. What is taken may exceed what is there; the debt is then waited out."""

    def __init__(self, per_minute: float, now: float) -> None:
        self._per_second = per_minute / 60
        self._capacity = max(1.0, self._per_second * BURST_S)
        self._level = self._capacity
        self._at = now

    def delay(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` (or a full bucket, if that is less) is there."""
        self._level = min(self._capacity, self._level + (now - self._at) * self._per_second)
        self._at = now
        return max(0.0, (min(amount, self._capacity) - self._level) / self._per_second)

    def take(self, amount: float) -> None:
        """Take ``amount`` out; a negative one puts back what was taken too much."""
        self._level -= amount


@dataclass(frozen=True, slots=True)
class Limits:
    """Allowances a minute; None: no limit."""

    requests: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None


class Pacer:
    """Gives out turns, first come, first served."""

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        now = clock()
        self._requests = None if limits.requests is None else Bucket(limits.requests, now)
        self._input = None if limits.input_tokens is None else Bucket(limits.input_tokens, now)
        self._output = None if limits.output_tokens is None else Bucket(limits.output_tokens, now)
        self._clock = clock
        self._sleep = sleep
        self._paused_until = now
        self._line = asyncio.Lock()

    def pause(self, seconds: float) -> None:
        """Let nobody send for ``seconds``."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def pause_left(self) -> float:
        """Return the seconds until the pause ends; 0 if there is none."""
        return max(0.0, self._paused_until - self._clock())

    async def turn(self, input_tokens: int, output_tokens: int) -> None:
        """Wait until one more request of this size may be sent."""
        needs = [
            (bucket, amount)
            for bucket, amount in ((self._requests, 1), (self._input, input_tokens), (self._output, output_tokens))
            if bucket is not None
        ]
        async with self._line:
            while (delay := max([self.pause_left(), *(b.delay(n, self._clock()) for b, n in needs)])) > 0:
                await self._sleep(delay)
            for bucket, amount in needs:
                bucket.take(amount)

    def correct(self, input_tokens: int, output_tokens: int) -> None:
        """Take what a call used beyond what was assumed for it (negative: put back)."""
        if self._input is not None:
            self._input.take(input_tokens)
        if self._output is not None:
            self._output.take(output_tokens)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Pause until the limit is full again that the server says is used up, before it has to refuse a call."""
        for kind in _KINDS:
            if headers.get(f"anthropic-ratelimit-{kind}-remaining") != "0":
                continue
            try:
                reset = dt.datetime.fromisoformat(headers[f"anthropic-ratelimit-{kind}-reset"])
                seconds = (reset - dt.datetime.now(dt.UTC)).total_seconds()
            except (KeyError, ValueError, TypeError):
                continue  # no time, or not one that is understood: the server will say 429 if it means it
            self.pause(min(max(seconds, 0.0), LONGEST_LEARNED_PAUSE_S))
