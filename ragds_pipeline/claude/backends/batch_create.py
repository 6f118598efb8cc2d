"""Making one message batch: what goes into it, and whether it was made.

The API gives no idempotency key, and the SDK would send a creation again by itself after a timeout. So a creation is
sent exactly once, and its end is one of three: made, certainly not made, unclear. What is unclear is settled in
``batch_find``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anthropic

from ragds_pipeline.claude.backends.batch_failures import BROKEN_OFF, failure_of
from ragds_pipeline.claude.requests import Failure, FailureReason, Request
from ragds_pipeline.claude.retry import asked_wait
from ragds_pipeline.config import ClaudeSettings

CERTAINLY_NOT_MADE = frozenset({400, 401, 402, 403, 404, 413, 422, 429})
"""Answers that say that the creation was refused. After any other error the batch may exist."""

COUNTED = frozenset({"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"})
"""What ``count_tokens`` takes of a request."""

CHECKED_AT_MOST = 3
"""So many rejections in a row, and the requests as a whole are taken to be wrong."""


@dataclass(frozen=True, slots=True)
class Refused:
    """There certainly is no batch."""

    failure: Failure
    wait_s: float | None
    """Seconds after which the same may be accepted; None where it will not be."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """There may be a batch."""

    failure: Failure
    """What came instead of an answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """Requests that go into one batch, with their entries as sent."""

    requests: tuple[Request, ...]
    entries: tuple[Mapping[str, Any], ...]


def grouped(
    requests: Sequence[Request], bodies: Mapping[str, Mapping[str, Any]], settings: ClaudeSettings
) -> Iterator[Group | Failure]:
    """Yield the requests in groups below the limits of a batch, and a failure for each that is larger than any batch.

    Args:
        bodies: What is sent of each request, by its key.
    """
    chosen: list[Request] = []
    size = 0
    for request in requests:
        entry = {"custom_id": request.key, "params": bodies[request.key]}
        length = len(json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 2
        if length > settings.batch_max_bytes:
            yield Failure(request.key, FailureReason.TOO_LARGE, f"{length} bytes; batch_max_bytes is less")
            continue
        if chosen and (len(chosen) == settings.batch_max_requests or size + length > settings.batch_max_bytes):
            yield _group(chosen, bodies)
            chosen, size = [], 0
        chosen.append(request)
        size += length
    if chosen:
        yield _group(chosen, bodies)


def _group(requests: Sequence[Request], bodies: Mapping[str, Mapping[str, Any]]) -> Group:
    return Group(tuple(requests), tuple({"custom_id": r.key, "params": dict(bodies[r.key])} for r in requests))


def newest_batch(client: anthropic.Anthropic) -> str:
    """Return the id of the newest batch there is, "" if there is none."""
    page = client.messages.batches.list(limit=1)
    return page.data[0].id if page.data else ""


def create(client: anthropic.Anthropic, group: Group) -> str | Refused | Unclear:
    """Ask once for a batch, through a client that does not try again; return its id where an answer tells it."""
    entries: Any = list(group.entries)
    try:
        batch = client.messages.batches.create(requests=entries)
    except BROKEN_OFF as error:
        return Unclear(failure_of("", error))
    except anthropic.APIStatusError as error:
        failure = failure_of("", error)
        if error.status_code not in CERTAINLY_NOT_MADE:
            return Unclear(failure)
        early = failure.reason is FailureReason.RATE_LIMITED
        return Refused(failure, (asked_wait(error.response.headers) or 0.0) if early else None)
    # The SDK reads leniently: an answer that is no batch has no id.
    batch_id = getattr(batch, "id", None)
    if isinstance(batch_id, str) and batch_id:
        return batch_id
    return Unclear(Failure("", FailureReason.UNREADABLE, "the answer to the creation of a batch names none"))


def rejected_first(
    client: anthropic.Anthropic, requests: Sequence[Request], bodies: Mapping[str, Mapping[str, Any]]
) -> list[Failure]:
    """Count the tokens of the first requests until one is accepted; return the failures of those that were not.

    A batch takes requests unread, and a mistake in all of them would show only when it has ended. Counting is free and
    checks a request as a call does, except for ``max_tokens``.
    """
    failures: list[Failure] = []
    for request in requests[:CHECKED_AT_MOST]:
        body: Any = {name: value for name, value in bodies[request.key].items() if name in COUNTED}
        try:
            client.messages.count_tokens(**body)
        except anthropic.APIStatusError as error:
            if error.status_code in (400, 413, 422):  # 404 may be a server that does not count
                failures.append(failure_of(request.key, error))
                continue
        except BROKEN_OFF:
            pass  # it only looks ahead; what is wrong with the connection shows at the creation
        return failures
    return failures
