"""Whether a batch exists whose creation got no clear answer: a timeout, a torn connection, a kill in between.

The API lists batches with their size and time but without the ``custom_id`` of what is in them. So:

1. Before each creation the newest batch's id is stored with the intent. Ours, if it exists, is newer. (Ids, not
   clocks: those of two machines differ.) If that marker has been deleted since, a day before the intent is the end.
2. Of the newer batches, those that belong to another intent or have another number of requests are none of ours.
3. One that has ended is ours if its results have exactly our ``custom_id``s; these are hashes of the requests, so there
   is no chance agreement. One that is still under way cannot be told; it has to be waited for, because making another
   batch while that one may be ours could pay for everything twice.
4. If none is left, and the list has been asked long enough after the creation, there is no batch.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import anthropic
from anthropic.types.messages import MessageBatch

from ragds_pipeline.claude.batch_store import Intent

CLOCKS_DIFFER_S = 24 * 3600
"""How far back the list is read where the marker is gone."""


@dataclass(frozen=True, slots=True)
class Search:
    """What the list of batches says about an intent."""

    batch_id: str | None
    """The batch, where it was found."""
    suspects: tuple[str, ...] = ()
    """Batches that may be it, and can be told only when they have ended."""


def find(client: anthropic.Anthropic, intent: Intent, keys: Set[str], known: Set[str]) -> Search:
    """Look for the batch of an intent.

    Args:
        keys: Keys of the requests in the intent.
        known: Ids of batches that belong to an intent already.

    Raises:
        anthropic.APIError: The list or the results could not be read; nothing is known then.
    """
    suspects: list[str] = []
    for batch in client.messages.batches.list(limit=100):
        if batch.id == intent.newest_before or batch.created_at.timestamp() < intent.created_at - CLOCKS_DIFFER_S:
            break
        if batch.id in known or _size(batch) != intent.size:
            continue
        if batch.processing_status != "ended":
            batch = client.messages.batches.retrieve(batch.id)  # a list may lag behind
        if batch.processing_status != "ended":
            suspects.append(batch.id)
        elif _holds(client, batch, keys):
            return Search(batch.id)
    return Search(None, tuple(suspects))


def _size(batch: MessageBatch) -> int:
    counts = batch.request_counts
    return counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired


def _holds(client: anthropic.Anthropic, batch: MessageBatch, keys: Set[str]) -> bool:
    if batch.results_url is None:
        return False  # archived: whatever it was, nothing can be had from it
    results = client.messages.batches.results(batch.id)
    left = set(keys)
    try:
        for result in results:
            if result.custom_id not in left:
                return False
            left.discard(result.custom_id)
    finally:
        results.close()
    return not left
