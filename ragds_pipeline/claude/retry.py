"""What a failed attempt means: try again or not, after how long, and whether it may have been paid.

The SDK's own retries are off: they sleep for as long as the server says, and nobody learns that a reply was lost.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import anthropic
import httpx2

from ragds_pipeline.claude.requests import FailureReason

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0

_SAYS_SPENDING = ("usage limit", "usage threshold", "spend", "credit balance", "billing")
"""In the message of a 429 that is a spend limit and carries no error code."""

_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_MAY_BE_PAID = frozenset({200, 408, 502, 504})
"""Statuses after which a reply may have been made all the same: an error in the stream, or a gateway that gave up
waiting. Other errors are not billed."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One failed attempt."""

    reason: FailureReason
    detail: str
    again: bool
    """Whether another attempt could succeed."""
    possibly_paid: bool = False
    wait_s: float | None = None
    """What the server asks to wait; None where it does not say."""


def trouble(error: Exception) -> Trouble:
    """Tell what an exception of the SDK (or any other, raised while a reply was read) means."""
    if isinstance(error, anthropic.APIStatusError):
        return _status(error)
    if isinstance(error, anthropic.APITimeoutError):
        sent = not isinstance(error.__cause__, _NEVER_SENT)
        return Trouble(FailureReason.TIMEOUT, _detail(error), again=True, possibly_paid=sent)
    if isinstance(error, anthropic.APIConnectionError):
        sent = not isinstance(error.__cause__, _NEVER_SENT)
        return Trouble(FailureReason.CONNECTION, _detail(error), again=True, possibly_paid=sent)
    if isinstance(error, httpx2.TransportError):  # raised in the middle of a body, where the SDK does not wrap it
        return Trouble(FailureReason.CONNECTION, _detail(error), again=True, possibly_paid=True)
    return Trouble(FailureReason.UNREADABLE, _detail(error), again=False, possibly_paid=True)


def _status(error: anthropic.APIStatusError) -> Trouble:
    status, headers = error.status_code, error.response.headers
    reason, again = _meaning(error)
    told = headers.get("x-should-retry")
    if told in ("true", "false") and reason is not FailureReason.SPEND_LIMIT:
        again = told == "true"
    paid = status in _MAY_BE_PAID
    return Trouble(reason, _detail(error), again=again, possibly_paid=paid, wait_s=asked_wait(headers))


def _meaning(error: anthropic.APIStatusError) -> tuple[FailureReason, bool]:
    status, code = error.status_code, str(getattr(error, "error_code", None) or "")
    if status == 402 or "spend_limit" in code or code == "ramp_limit_exceeded":
        return FailureReason.SPEND_LIMIT, False
    if status in (401, 403):
        return FailureReason.AUTHENTICATION, False
    if status == 413:
        return FailureReason.TOO_LARGE, False
    if status == 429:
        spending = any(words in str(error.message).lower() for words in _SAYS_SPENDING)
        return (FailureReason.SPEND_LIMIT, False) if spending else (FailureReason.RATE_LIMITED, True)
    if status in (200, 408, 409) or status >= 500:  # 200: an error that came in the stream
        return FailureReason.SERVER, True
    return FailureReason.REJECTED, False


def asked_wait(headers: httpx2.Headers) -> float | None:
    """Return the seconds that ``retry-after-ms`` or ``retry-after`` ask for; None without a usable number."""
    for name, per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / per_second
        except (KeyError, ValueError):
            continue  # absent, or a date, which no Anthropic server sends
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def backoff(attempt: int, chance: random.Random) -> float:
    """Return the seconds to wait after the ``attempt``-th attempt (from 1): doubling, with jitter, up to 30."""
    full = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** (attempt - 1))
    return full * chance.uniform(0.5, 1.0)


def _detail(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    request_id = getattr(error, "request_id", None)
    said = str(getattr(error, "message", "") or error) or type(error).__name__
    cause = error.__cause__
    parts = [
        f"HTTP {status}" if status else "",
        said[:300],
        f"[{type(cause).__name__}]" if isinstance(cause, httpx2.HTTPError) else "",
        f"({request_id})" if request_id else "",
    ]
    return " ".join(part for part in parts if part)
