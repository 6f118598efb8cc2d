"""Pacing, on a clock of its own: no window of time sees more than the limit, and a pause holds for all."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.claude.rate import BURST_S, Limits, Pacer
from ragds_pipeline.claude.retry import asked_wait


class Clock:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1e-6)


def run(limits: Limits, work: Callable[[Pacer, Clock], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = Clock()
        await work(Pacer(limits, clock, clock.sleep), clock)

    asyncio.run(main())


@given(st.floats(1, 1000), st.integers(1, 200))
def test_requests_keep_to_the_rate(per_minute: float, calls: int) -> None:
    async def work(pacer: Pacer, clock: Clock) -> None:
        times = []
        for _ in range(calls):
            await pacer.turn(1, 1)
            times.append(clock.now)
        burst = max(1.0, per_minute / 60 * BURST_S)
        for first, begin in enumerate(times):
            for last in range(first, calls):
                assert last - first + 1 <= burst + (times[last] - begin) * per_minute / 60 + 1.01

    run(Limits(requests=per_minute), work)


def test_tokens_keep_to_the_rate_even_where_one_request_is_more_than_a_minute() -> None:
    async def work(pacer: Pacer, clock: Clock) -> None:
        begin = clock.now
        for _ in range(4):
            await pacer.turn(6_000, 10)
        # After the first, which a full bucket lets through, each waits until the debt of the one before is paid.
        assert clock.now - begin >= 3 * 60 * (6_000 - 2 * 250) / 3_000

    run(Limits(input_tokens=3_000), work)


def test_what_was_guessed_too_high_is_given_back() -> None:
    async def work(pacer: Pacer, clock: Clock) -> None:
        await pacer.turn(0, 6_000)
        pacer.correct(0, -6_000)
        begin = clock.now
        await pacer.turn(0, 10)
        assert clock.now == begin

    run(Limits(output_tokens=600), work)


def test_a_pause_holds_for_everyone() -> None:
    async def work(pacer: Pacer, clock: Clock) -> None:
        pacer.pause(30)
        pacer.pause(5)
        begin = clock.now
        await asyncio.gather(*(pacer.turn(1, 1) for _ in range(5)))
        assert clock.now - begin >= 30

    run(Limits(), work)


def test_a_limit_that_is_used_up_is_learned_from_the_headers() -> None:
    async def work(pacer: Pacer, clock: Clock) -> None:
        soon = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=20)).isoformat().replace("+00:00", "Z")
        pacer.learn({"anthropic-ratelimit-requests-remaining": "1", "anthropic-ratelimit-requests-reset": soon})
        pacer.learn({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "soon"})
        assert pacer.pause_left() == 0
        pacer.learn({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": soon})
        assert 15 < pacer.pause_left() <= 20
        late = (dt.datetime.now(dt.UTC) + dt.timedelta(days=1)).isoformat()
        pacer.learn({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": late})
        assert pacer.pause_left() <= 60

    run(Limits(), work)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None), ({"retry-after": "3"}, 3.0), ({"retry-after": "3", "retry-after-ms": "20"}, 0.02),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None), ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None), ({"retry-after": "nan"}, None),
    ],
)  # fmt: skip
def test_what_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(httpx2.Headers(headers)) == seconds
