"""The api backend: direct calls through the SDK, asynchronous and bounded.

The SDK retries what is worth retrying and honours ``retry-after``; a deadline around the whole call keeps that from
lasting longer than the caller agreed to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import anthropic

from ragds_pipeline.claude.requests import STOPS_THE_RUN, Failure, FailureReason, Request
from ragds_pipeline.config import ClaudeSettings

STREAM_ABOVE_TOKENS = 16_000
"""The SDK refuses plain calls from 21,334 output tokens on, and long silent connections are cut on the way."""

OnMessage = Callable[[Request, dict[str, Any], str], None]
"""Called with (request, message, request id) for every message, before the next call is started in its place."""


def call_all(
    requests: Sequence[Request], settings: ClaudeSettings, api_key: str, admit: Callable[[Request], Failure | None],
    on_message: OnMessage, on_failure: Callable[[Request, Failure], None],
) -> None:  # fmt: skip
    """Send every request; hand each over as exactly one message or one failure.

    ``admit`` is asked right before a call is sent and may refuse it (the budget). After a failure that every further
    call would meet as well, the rest is not sent and fails with the same reason.
    """
    asyncio.run(_call_all(requests, settings, api_key, admit, on_message, on_failure))


async def _call_all(
    requests: Sequence[Request], settings: ClaudeSettings, api_key: str, admit: Callable[[Request], Failure | None],
    on_message: OnMessage, on_failure: Callable[[Request, Failure], None],
) -> None:  # fmt: skip
    waiting = asyncio.Queue[Request]()
    for request in requests:
        waiting.put_nowait(request)
    stopped: list[Failure] = []

    async def work(client: anthropic.AsyncAnthropic) -> None:
        while not waiting.empty():
            request = waiting.get_nowait()
            if stopped:
                detail = f"not sent: {stopped[0].detail}"
                on_failure(request, Failure(request.key, stopped[0].reason, detail))
                continue
            if (refused := admit(request)) is not None:
                on_failure(request, refused)
                continue
            outcome = await _call(client, request, settings.timeout_s)
            if isinstance(outcome, Failure):
                if outcome.reason in STOPS_THE_RUN:
                    stopped.append(outcome)
                on_failure(request, outcome)
            else:
                on_message(request, *outcome)

    async with (
        anthropic.AsyncAnthropic(
            api_key=api_key, base_url=settings.base_url, max_retries=settings.max_retries, timeout=settings.timeout_s
        ) as client,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(min(settings.concurrency, len(requests))):
            group.create_task(work(client))


async def _call(
    client: anthropic.AsyncAnthropic, request: Request, timeout_s: float
) -> tuple[dict[str, Any], str] | Failure:
    body: dict[str, Any] = dict(request.params)
    try:
        async with asyncio.timeout(timeout_s):
            if int(body["max_tokens"]) > STREAM_ABOVE_TOKENS:
                async with client.messages.stream(**body) as stream:
                    message = await stream.get_final_message()
                    request_id = stream.request_id or ""
            else:
                message = await client.messages.create(**body)
                request_id = message._request_id or ""
    except TimeoutError:
        return Failure(request.key, FailureReason.TIMEOUT, f"no reply within {timeout_s:g} s")
    except anthropic.APIError as error:
        return Failure(request.key, _reason(error), _detail(error))
    return message.model_dump(mode="json", exclude_none=True), request_id


def _reason(error: anthropic.APIError) -> FailureReason:
    if isinstance(error, anthropic.APITimeoutError):
        return FailureReason.TIMEOUT
    if isinstance(error, anthropic.APIConnectionError):
        return FailureReason.CONNECTION
    if not isinstance(error, anthropic.APIStatusError):
        return FailureReason.CONNECTION  # a reply that is no message: cut or mangled on the way
    status, code = error.status_code, str(getattr(error, "error_code", None) or "")
    if status == 402 or "spend" in code:
        return FailureReason.SPEND_LIMIT
    if status in (401, 403):
        return FailureReason.AUTHENTICATION
    if status == 413:
        return FailureReason.TOO_LARGE
    if status == 429:
        # A spend cap of the account's tier comes without retry-after and goes on failing.
        return FailureReason.RATE_LIMITED if error.response.headers.get("retry-after") else FailureReason.SPEND_LIMIT
    if status == 200 or status >= 500:
        return FailureReason.SERVER
    return FailureReason.REJECTED


def _detail(error: anthropic.APIError) -> str:
    status = getattr(error, "status_code", None)
    request_id = getattr(error, "request_id", None)
    parts = [f"HTTP {status}" if status else "", str(error.message)[:300], f"({request_id})" if request_id else ""]
    return " ".join(part for part in parts if part)
