"""What goes to a model and what comes back: a request, and for it a reply or a typed failure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Any

from ragds_pipeline.records import canonical_json


class FailureReason(StrEnum):
    """Why a request has no usable reply."""

    REFUSED = "refused"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    REJECTED = "rejected"
    TOO_LARGE = "too_large"
    AUTHENTICATION = "authentication"
    OVER_BUDGET = "over_budget"
    SPEND_LIMIT = "spend_limit"
    RATE_LIMITED = "rate_limited"
    SERVER = "server"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    UNREADABLE = "unreadable"
    """What came back is no message: a gateway's page, or a form that the SDK does not know."""
    ELSEWHERE = "elsewhere"
    """Another process has it in hand. Between admission and backends only: ``ask`` waits for that process's reply."""


STOPS_THE_RUN = frozenset({FailureReason.AUTHENTICATION, FailureReason.SPEND_LIMIT})
"""Failures that every further call would meet as well."""


@dataclass(frozen=True)
class Request:
    """One call of the Messages API.

    ``params`` is the body, complete and exactly as sent; ``task`` and ``item`` say what it is for and are not part
    of what the model sees. ``attempt`` tells equal requests apart where the same question is asked several times on
    purpose.
    """

    task: str
    item: str
    params: Mapping[str, Any]
    prompt_version: str
    attempt: int = 0

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical request: 64 hex digits, which also make a valid ``custom_id`` of a batch."""
        content: dict[str, Any] = {"params": self.params}
        if self.attempt:
            content["attempt"] = self.attempt
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()

    @property
    def model(self) -> str:
        """Id of the model that is asked."""
        return str(self.params["model"])


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the API counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_1h_input_tokens: int = 0
    """The part of ``cache_creation_input_tokens`` that is kept for an hour, at a higher price."""

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Usage:
        """Return the usage of a message; missing counts are 0."""
        usage = message.get("usage")
        if not usage:
            return _NO_USAGE
        count = usage.get
        kept = count("cache_creation")
        return cls(
            int(count("input_tokens") or 0),
            int(count("output_tokens") or 0),
            int(count("cache_creation_input_tokens") or 0),
            int(count("cache_read_input_tokens") or 0),
            int(kept.get("ephemeral_1h_input_tokens") or 0) if kept else 0,
        )


_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply."""

    key: str
    text: str
    model: str
    usage: Usage
    cost_usd: Decimal
    replayed: bool
    """True where it came from the ledger or a recording, so that nothing was paid now."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without a usable reply."""

    key: str
    reason: FailureReason
    detail: str
    text: str = ""
    """What there is of a truncated reply."""
    model: str = ""
    usage: Usage = Usage()
    cost_usd: Decimal = Decimal(0)
    replayed: bool = False
    possibly_paid: bool = False
    """True where the request was sent, and a reply may have been made and billed that never arrived."""


def message_text(message: Mapping[str, Any]) -> str:
    """Return a message's text. Blocks are told by type, never by position: thinking comes first."""
    blocks = message.get("content") or []
    return "".join(str(b.get("text") or "") for b in blocks if isinstance(b, dict) and b.get("type") == "text")


def outcome(key: str, message: Mapping[str, Any], cost_usd: Decimal, replayed: bool) -> Reply | Failure:
    """Return what a message is worth: a reply, or the failure that its ``stop_reason`` tells of.

    A missing ``stop_reason`` is a stream that was cut; the SDK raises nothing for it.
    """
    text, model, usage = message_text(message), str(message.get("model", "")), Usage.of(message)
    stop = message.get("stop_reason")
    if stop == "refusal":
        category = (message.get("stop_details") or {}).get("category") or "no category given"
        return Failure(key, FailureReason.REFUSED, f"refusal: {category}", text, model, usage, cost_usd, replayed)
    if stop not in ("end_turn", "stop_sequence"):
        detail = "the reply reached max_tokens" if stop == "max_tokens" else f"the reply ended with {stop}"
        return Failure(key, FailureReason.TRUNCATED, detail, text, model, usage, cost_usd, replayed)
    if not text.strip():
        return Failure(key, FailureReason.EMPTY, "no text in the reply", text, model, usage, cost_usd, replayed)
    return Reply(key, text, model, usage, cost_usd, replayed)
