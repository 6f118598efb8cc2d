"""Faults on demand: what goes wrong with the n-th request, decided without a clock and without chance.

A plan is a pure function of the request's number, its hash and its attempt, so the same seed gives the same
failures at any concurrency: only the explicit `sequence` and `at` depend on the order of arrival. Carrying a
fault out is the server's work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from ragds_pipeline_tests.loopback.errors import ApiError
from ragds_pipeline_tests.loopback.malformed import MalformedShape

HttpFault = Literal[
    "bad_request",
    "unauthorized",
    "payment_required",
    "forbidden",
    "not_found",
    "request_timeout",
    "conflict",
    "too_large",
    "rate_limited",
    "spend_limit",
    "spend_cap",
    "server_error",
    "unavailable",
    "gateway_timeout",
    "overloaded",
]
TransportFault = Literal["drop", "drop_midway", "truncated_stream", "stream_error", "drip", "hang", "html_502"]
ContentFault = Literal["refusal", "max_tokens", "thinking_only", "no_content", "pause_turn", "malformed"]
FaultKind = HttpFault | TransportFault | ContentFault | Literal["slow"]
FAULT_KINDS: tuple[str, ...] = (
    *get_args(HttpFault),
    *get_args(TransportFault),
    *get_args(ContentFault),
    "slow",
)

Endpoint = Literal[
    "messages",
    "count_tokens",
    "models",
    "batches.create",
    "batches.retrieve",
    "batches.list",
    "batches.results",
    "batches.cancel",
    "batches.delete",
]

HTTP_FAULTS: dict[str, tuple[int, str]] = {
    "bad_request": (400, "messages: injected invalid request"),
    "unauthorized": (401, "invalid bearer token"),
    "payment_required": (402, "Your credit balance is too low to access the API."),
    "forbidden": (403, "Your API key does not have permission to use the specified resource."),
    "not_found": (404, "model: injected-not-found"),
    "request_timeout": (408, "Request timed out"),
    "conflict": (409, "Conflict"),
    "too_large": (413, "Request exceeds the maximum size"),
    "rate_limited": (429, "This request would exceed your organization's rate limit"),
    "spend_limit": (429, "You have reached your monthly API usage threshold"),
    "spend_cap": (429, "You have reached your specified API usage limits"),
    "server_error": (500, "Internal server error"),
    "unavailable": (503, "Service unavailable"),
    "gateway_timeout": (504, "Gateway timeout"),
    "overloaded": (529, "Overloaded"),
}


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Args:
        kind: What happens. `spend_limit` carries `enforced_spend_limit_reached`, `spend_cap` is the tier's
            cap without a code; neither sends `retry-after` unless told to. `truncated_stream` ends the body
            cleanly before `message_stop` (the SDK raises nothing!), `drop_midway` tears the connection.
            `drop` closes before any answer, `hang` keeps silent for `delay` seconds and then drops.
        retry_after: Seconds for the `retry-after` header; left out when None.
        retry_after_ms: Milliseconds for `retry-after-ms`, which the SDK prefers; keeps tests fast.
        should_retry: The `x-should-retry` header.
        delay: Seconds waited before the request is handled, for any kind; `slow` is nothing but this.
        message: Replaces the error message.
        shape: How `malformed` breaks the text.
        category: `stop_details.category` of a refusal.
        after: For `drop_midway` and `truncated_stream`, the share of the body sent first.
        pieces: For `drip`, into how many pieces the body is cut.
        piece_delay: For `drip`, seconds between pieces.
    """

    kind: FaultKind
    retry_after: float | None = None
    retry_after_ms: float | None = None
    should_retry: bool | None = None
    delay: float = 0.0
    message: str | None = None
    shape: MalformedShape = "fenced_with_prose"
    category: str | None = None
    after: float = 0.5
    pieces: int = 8
    piece_delay: float = 0.01

    def __post_init__(self) -> None:
        if self.kind not in FAULT_KINDS:
            raise ValueError(f"unknown fault kind {self.kind!r}; known: {', '.join(FAULT_KINDS)}")

    def error(self) -> ApiError | None:
        """The HTTP error this fault answers with, or None when it is of another family."""
        if self.kind not in HTTP_FAULTS:
            return None
        status, message = HTTP_FAULTS[self.kind]
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["retry-after"] = f"{self.retry_after:g}"
        if self.retry_after_ms is not None:
            headers["retry-after-ms"] = f"{self.retry_after_ms:g}"
        if self.should_retry is not None:
            headers["x-should-retry"] = "true" if self.should_retry else "false"
        code = "enforced_spend_limit_reached" if self.kind == "spend_limit" else None
        return ApiError(status, self.message or message, error_code=code, headers=headers)


@dataclass(frozen=True)
class FaultPlan:
    """Which request gets which fault.

    Args:
        sequence: Consumed in the order of arrival; None lets the request through.
        at: Fault by the request's number, from 1.
        shares: Each fault with the share of requests (0 to 1) that get it, drawn from the seed, the request's
            hash and its attempt: a retry of the same body draws anew.
        seed: Of the draw.
        max_attempts: A body faulted by `shares` this many times is let through, so that a test with a high
            share still ends.
        endpoints: The only endpoints counted and faulted.
    """

    sequence: Sequence[Fault | None] = ()
    at: Mapping[int, Fault] = field(default_factory=dict[int, Fault])
    shares: Sequence[tuple[Fault, float]] = ()
    seed: int = 0
    max_attempts: int | None = None
    endpoints: Sequence[Endpoint] = ("messages",)

    def decide(self, number: int, request_hash: str, attempt: int) -> Fault | None:
        """The fault of the `number`-th request (from 1), which is the `attempt`-th (from 1) of its body."""
        if number in self.at:
            return self.at[number]
        if number <= len(self.sequence):
            return self.sequence[number - 1]
        if self.max_attempts is not None and attempt > self.max_attempts:
            return None
        drawn = draw(self.seed, request_hash, attempt)
        for fault, share in self.shares:
            if drawn < share:
                return fault
            drawn -= share
        return None


def draw(seed: int, *parts: object) -> float:
    """A number in [0, 1) that depends on nothing but its arguments."""
    text = ":".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
