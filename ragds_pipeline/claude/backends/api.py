"""The api backend: direct calls through the SDK, asynchronous, paced and bounded.

Every request ends as exactly one message or one failure. What passes by itself is tried again, within the caller's
deadline and budget; a rate limit pauses all workers; a spend limit or a refused key ends the run. What does not belong
here: ledger and money, which are behind the callbacks.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ragds_pipeline.claude.backends.attempt import Arrived, attempt
from ragds_pipeline.claude.caching import NO_CACHING, plan_caching
from ragds_pipeline.claude.clients import open_client
from ragds_pipeline.claude.estimate import EXPECTED_OUTPUT_TOKENS, prompt_tokens
from ragds_pipeline.claude.rate import Limits, Pacer
from ragds_pipeline.claude.requests import STOPS_THE_RUN, Failure, FailureReason, Request, Usage
from ragds_pipeline.claude.retry import Trouble, backoff, trouble
from ragds_pipeline.config import ClaudeSettings

if TYPE_CHECKING:
    from ragds_pipeline.claude.clients import Client

T = TypeVar("T")

WORKERS_OF_A_CLIENT = 2
"""A client's pool looks at each of its connections, twice for every call: a fifth of a call's time at 32 of them."""

_STOP_NOW, _FAN_OUT, _FRESH, _ALL_DONE = range(4)
"""Order of the queue. A fan-out goes before what is fresh: the prompt cache forgets after five minutes."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What the backend asks and tells. They are called in threads, several at a time, and may block."""

    admit: Callable[[Request], Failure | None]
    """Asked right before a call is sent, and again before it is repeated after ``on_lost``; may refuse it."""
    on_message: Callable[[Request, dict[str, Any], str], None]
    """Called with (request, message, request id) for every complete message."""
    on_failure: Callable[[Request, Failure], None]
    """Called for every request that ends without a message, admitted or not."""
    on_lost: Callable[[Request], None]
    """Called when a request was sent and its reply, perhaps made and billed, did not arrive."""
    on_stop: Callable[[], None]
    """Called when the run ends early, to free whoever is blocked in ``admit``."""


def call_all(
    requests: Sequence[Request], settings: ClaudeSettings, api_key: str, callbacks: Callbacks, seed: int | None = None
) -> None:
    """Send every request; hand each over as exactly one message or one failure.

    After a failure that every further call would meet as well, the rest is not sent and fails with the same reason.

    Args:
        requests: Not sent in a fixed order; one of those that share a long beginning goes before the others.
        settings: Concurrency, rates, deadline, provider.
        api_key: For the provider ``anthropic``.
        callbacks: Where outcomes go. If one of them raises, nothing more is sent, calls under way are still handed
            over, and the exception is raised at the end.
        seed: Of the jitter between attempts.
    """
    asyncio.run(_Run(requests, settings, callbacks, seed).run(api_key))


@dataclass(slots=True)
class _Call:
    """One request on its way."""

    request: Request
    body: dict[str, Any]
    input_tokens: int
    attempts: int = 0
    counted: int = 0
    """Attempts that count against ``max_retries``; rate limits are waited out instead."""
    deadline: float | None = None
    lost: bool = False
    began: float = field(default=0.0)


class _Run:
    def __init__(
        self, requests: Sequence[Request], settings: ClaudeSettings, callbacks: Callbacks, seed: int | None
    ) -> None:
        self._requests = requests
        self._settings = settings
        self._callbacks = callbacks
        self._chance = random.Random(seed)  # noqa: S311  # jitter, nothing secret
        self._caching = plan_caching(requests, "5m") if settings.caching else NO_CACHING
        self._followers: dict[str, list[Request]] = defaultdict(list)
        self._left = len(requests)
        self._number = itertools.count()
        self._stopped: Failure | None = None
        self._bugs: list[Exception] = []
        self._output_guess = float(EXPECTED_OUTPUT_TOKENS)
        self._paces_tokens = bool(settings.input_tokens_per_minute or settings.output_tokens_per_minute)
        self._last_reply = float("-inf")

    async def run(self, api_key: str) -> None:
        self._now = asyncio.get_running_loop().time
        self._queue: asyncio.PriorityQueue[tuple[int, int, Request | None]] = asyncio.PriorityQueue()
        self._pacer = Pacer(
            Limits(
                self._settings.requests_per_minute,
                self._settings.input_tokens_per_minute,
                self._settings.output_tokens_per_minute,
            ),
            self._now,
        )
        self._line_up()
        self._workers = min(self._settings.concurrency, len(self._requests))
        with ThreadPoolExecutor(self._workers, thread_name_prefix="ragds-claude") as self._threads:
            try:
                async with AsyncExitStack() as open_clients:
                    clients: list[Client] = []
                    for _ in range(0, self._workers, WORKERS_OF_A_CLIENT):
                        client = open_client(self._settings, api_key)
                        open_clients.push_async_callback(client.close)
                        clients.append(client)
                    async with asyncio.TaskGroup() as group:
                        for number in range(self._workers):
                            group.create_task(self._work(clients[number // WORKERS_OF_A_CLIENT]))
            finally:
                self._callbacks.on_stop()
        if self._bugs:
            raise self._bugs[0]

    def _line_up(self) -> None:
        """Queue what may be sent now; the rest follows the first request of its shared beginning."""
        leaders = {self._caching.prefixes[leader.key].id: leader for leader in self._caching.leaders(self._requests)}
        for request in self._requests:
            prefix = self._caching.prefixes.get(request.key)
            if prefix is None or leaders[prefix.id] is request:
                self._put(_FRESH, request)
            else:
                self._followers[leaders[prefix.id].key].append(request)

    def _put(self, order: int, request: Request | None) -> None:
        self._queue.put_nowait((order, next(self._number), request))

    async def _work(self, client: Client) -> None:
        while (request := (await self._queue.get())[2]) is not None:
            try:
                await self._hand_over(client, request)
            except Exception as error:
                # A callback failed, so replies may no longer be kept: pay for no more of them.
                self._bugs.append(error)
                self._callbacks.on_stop()
                self._dismiss(_STOP_NOW)
            for follower in self._followers.pop(request.key, ()):
                self._put(_FAN_OUT, follower)
            self._left -= 1
            if not self._left:
                self._dismiss(_ALL_DONE)

    def _dismiss(self, order: int) -> None:
        for _ in range(self._workers):
            self._put(order, None)

    async def _in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    async def _hand_over(self, client: Client, request: Request) -> None:
        refused = self._not_sent(request) or await self._in_thread(self._callbacks.admit, request)
        if refused is not None:
            # Whoever waited for the budget when the run was stopped is told of that, not of the budget.
            outcome: Arrived | Failure = self._not_sent(request) or refused
        else:
            outcome = await self._ask(client, request)
        if isinstance(outcome, Arrived):
            await self._in_thread(self._callbacks.on_message, request, outcome.message, outcome.request_id)
            return
        if outcome.reason in STOPS_THE_RUN and self._stopped is None:
            self._stopped = outcome
            self._callbacks.on_stop()
        await self._in_thread(self._callbacks.on_failure, request, outcome)

    def _not_sent(self, request: Request) -> Failure | None:
        """Return the failure of a request that is not sent because the run was stopped; None if it was not."""
        if self._stopped is None:
            return None
        detail = f"not sent: {self._stopped.detail}"
        return replace(self._stopped, key=request.key, detail=detail, possibly_paid=False)

    async def _ask(self, client: Client, request: Request) -> Arrived | Failure:
        size = prompt_tokens(request.params) if self._paces_tokens else 0
        call = _Call(request, self._caching.body(request), size, began=self._now())
        last = Trouble(FailureReason.RATE_LIMITED, "not sent", again=True)
        while True:
            if not await self._turn(call):
                pause = self._pacer.pause_left()
                detail = (
                    f"{last.detail}; the server asks for a pause that timeout_s has no room for ({pause:.0f} s left)"
                )
                return self._failure(call, replace(last, detail=detail))
            outcome = await self._attempt(client, call)
            if isinstance(outcome, Arrived):
                return outcome
            last = outcome
            if (failure := await self._after(call, outcome)) is not None:
                return failure

    async def _turn(self, call: _Call) -> bool:
        """Wait for the pacer; False where the server's pause does not fit into what is left of the deadline.

        Before the first attempt the configured rates may keep a call as long as they like; only then does its time
        begin.
        """
        output = int(min(self._output_guess, float(call.request.params["max_tokens"])))
        left = self._settings.timeout_s if call.deadline is None else call.deadline - self._now()
        if self._pacer.pause_left() > left:
            return False
        try:
            async with asyncio.timeout_at(call.deadline):
                await self._pacer.turn(call.input_tokens, output)
        except TimeoutError:
            return False
        if call.deadline is None:
            call.deadline = self._now() + self._settings.timeout_s
        return True

    async def _attempt(self, client: Client, call: _Call) -> Arrived | Trouble:
        call.attempts += 1
        try:
            async with asyncio.timeout_at(call.deadline):
                arrived = await attempt(client, call.body)
        except TimeoutError:
            detail = f"no reply within {self._settings.timeout_s:g} s"
            return Trouble(FailureReason.TIMEOUT, detail, again=False, possibly_paid=True)
        except Exception as error:  # whatever reading a strange reply may raise is this one call's failure
            return trouble(error)
        if not arrived.complete:
            detail = "the stream ended before the reply did"
            return Trouble(FailureReason.CONNECTION, detail, again=True, possibly_paid=True)
        self._last_reply = self._now()
        self._pacer.learn(arrived.headers)
        self._correct(call, Usage.of(arrived.message))
        return arrived

    def _correct(self, call: _Call, usage: Usage) -> None:
        if not self._paces_tokens:
            return
        guess = int(min(self._output_guess, float(call.request.params["max_tokens"])))
        sent = usage.input_tokens + usage.cache_creation_input_tokens  # cache reads do not count against the limit
        self._pacer.correct(sent - call.input_tokens, usage.output_tokens - guess)
        self._output_guess += (usage.output_tokens - self._output_guess) / 10

    async def _after(self, call: _Call, bad: Trouble) -> Failure | None:
        """Settle a failed attempt: wait for the next one, or return the call's failure."""
        limited = bad.reason is FailureReason.RATE_LIMITED
        call.counted += not limited
        wait = backoff(call.attempts, self._chance) if bad.wait_s is None else bad.wait_s
        if limited and bad.again:
            self._pacer.pause(wait)
        if bad.possibly_paid:
            call.lost = True
            await self._in_thread(self._callbacks.on_lost, call.request)
        if not bad.again or self._stopped is not None or self._bugs or call.counted > self._settings.max_retries:
            return self._failure(call, bad)
        if self._now() + wait > (call.deadline or 0.0):
            text = f"{bad.detail}; to try again after {wait:.1f} s does not fit into timeout_s"
            return self._failure(call, replace(bad, detail=text))
        if not limited:
            await asyncio.sleep(wait)
        if bad.possibly_paid:
            refused = await self._in_thread(self._callbacks.admit, call.request)
            if refused is not None:
                return self._failure(call, replace(bad, detail=f"{bad.detail}; not tried again: {refused.detail}"))
        return None

    def _failure(self, call: _Call, bad: Trouble) -> Failure:
        reason, detail = bad.reason, bad.detail
        if reason is FailureReason.RATE_LIMITED and call.attempts and bad.wait_s is None:
            own_api = self._settings.provider == "anthropic" and self._settings.base_url is None
            if own_api and self._last_reply < call.began:
                # The cap of an account's tier comes as a 429 without retry-after that goes on and on.
                reason, detail = FailureReason.SPEND_LIMIT, f"{detail}; no call got through meanwhile"
        if call.attempts > 1:
            detail = f"{detail} (after {call.attempts} attempts)"
        return Failure(call.request.key, reason, detail, possibly_paid=call.lost)
