"""The results of an ended batch, one by one, each as a message, a final failure, or a request to send again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anthropic

from ragds_pipeline.claude.requests import FailureReason


@dataclass(frozen=True, slots=True)
class Item:
    """What became of one request of a batch. Only one with a message was paid."""

    key: str
    message: dict[str, Any] | None
    reason: FailureReason = FailureReason.SERVER
    detail: str = ""
    again: bool = False
    """True where another batch may well answer it."""


def read_items(client: anthropic.Anthropic, batch_id: str) -> Iterator[Item]:
    """Yield the items of an ended batch in the order they come in, which is none.

    Raises:
        anthropic.APIError, httpx2.HTTPError, json.JSONDecodeError: The results were cut on the way. They can be read
            again from the start.
    """
    results = client.messages.batches.results(batch_id)
    try:
        for line in results:
            if (item := _item(line.custom_id, line.result, batch_id)) is not None:
                yield item
    finally:
        results.close()


def _item(key: str, result: Any, batch_id: str) -> Item | None:
    """Return what a line says; None where it is no result, so that its request counts as missing."""
    kind = getattr(result, "type", None)
    if kind == "succeeded" and result.message is not None:
        return Item(key, result.message.model_dump(mode="json", exclude_none=True))
    if kind == "errored" and result.error is not None:
        error = result.error.error
        detail = f"{batch_id}: {error.type}: {str(error.message)[:300]}"
        # Anything but an invalid request is the server's and passes.
        if error.type == "invalid_request_error":
            return Item(key, None, FailureReason.REJECTED, detail)
        return Item(key, None, FailureReason.SERVER, detail, again=True)
    if kind == "expired":
        return Item(key, None, FailureReason.TIMEOUT, f"{batch_id}: expired before it was answered", again=True)
    if kind == "canceled":
        return Item(key, None, FailureReason.REJECTED, f"{batch_id}: canceled; run again to send it anew")
    return None
