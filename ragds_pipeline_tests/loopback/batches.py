"""Message batches: accepted at once, validated item by item when they run, results in no particular order.

A batch runs when its last poll as `in_progress` is over, not on a timer, so a test decides how long it takes.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from ragds_pipeline_tests.loopback.errors import ApiError, invalid
from ragds_pipeline_tests.loopback.faults import Fault, draw
from ragds_pipeline_tests.loopback.jsonkinds import is_array, is_object

CUSTOM_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
MAX_REQUESTS = 100_000

ItemOutcome: TypeAlias = Fault | Literal["expired", "canceled"]
RunItem: TypeAlias = Callable[[Any, Fault | None, int], dict[str, Any]]
"""Makes the message of an item from its params, its fault and its number; raises `ApiError` when it is
errored."""


@dataclass(frozen=True)
class BatchPlan:
    """How batches go.

    Args:
        polls: Retrieves answered `in_progress` before the batch has ended. `results()` of the SDK retrieves
            too.
        items: Outcome by `custom_id`: `expired`, `canceled`, a `Fault` with an HTTP status (an errored item)
            or a content fault (a succeeded item with a refusal, malformed text, ...).
        shares: Outcomes with the share of items that get them, drawn from the seed and the `custom_id`.
        seed: Of that draw and of the shuffle.
        shuffle: Whether results come in another order than the requests.
    """

    polls: int = 1
    items: Mapping[str, ItemOutcome] = field(default_factory=dict[str, ItemOutcome])
    shares: Sequence[tuple[ItemOutcome, float]] = ()
    seed: int = 0
    shuffle: bool = True

    def outcome(self, custom_id: str) -> ItemOutcome | None:
        """What happens to an item, None for an ordinary answer."""
        if custom_id in self.items:
            return self.items[custom_id]
        drawn = draw(self.seed, custom_id)
        for outcome, share in self.shares:
            if drawn < share:
                return outcome
            drawn -= share
        return None


@dataclass
class Batch:
    """One batch, with its results once it has ended."""

    id: str
    requests: list[dict[str, Any]]
    created_at: datetime
    polls_left: int
    status: Literal["in_progress", "canceling", "ended"] = "in_progress"
    ended_at: datetime | None = None
    canceled_at: datetime | None = None
    results: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def info(self, base_url: str) -> dict[str, Any]:
        """The batch object; `results_url` points at this server, or the SDK would dial the real API."""
        tally = Counter(str(result["result"]["type"]) for result in self.results)
        ended = self.status == "ended"
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": self.status,
            "request_counts": {
                "processing": 0 if ended else len(self.requests),
                **{kind: tally[kind] for kind in ("succeeded", "errored", "canceled", "expired")},
            },
            "created_at": _stamp(self.created_at),
            "expires_at": _stamp(self.created_at + timedelta(hours=24)),
            "ended_at": _stamp(self.ended_at),
            "cancel_initiated_at": _stamp(self.canceled_at),
            "archived_at": None,
            "results_url": f"{base_url}/v1/messages/batches/{self.id}/results" if ended else None,
        }


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


class Batches:
    """All batches of the server. Used from the event loop only."""

    def __init__(self, plan: BatchPlan, run_item: RunItem) -> None:
        self.plan = plan
        self._run_item = run_item
        self._batches: dict[str, Batch] = {}
        self._made = 0

    def create(self, body: Any) -> Batch:
        """Accepts a batch. Only the envelope is checked here; params are checked when the batch runs."""
        requests = body.get("requests") if is_object(body) else None
        if not is_array(requests):
            raise invalid("requests: Field required")
        if not requests:
            raise invalid("requests: List should have at least 1 item")
        if len(requests) > MAX_REQUESTS:
            raise ApiError(413, f"requests: at most {MAX_REQUESTS} requests are allowed")
        seen: set[str] = set()
        for index, request in enumerate(requests):
            custom_id = request.get("custom_id") if is_object(request) else None
            if not isinstance(custom_id, str) or not CUSTOM_ID.fullmatch(custom_id):
                raise invalid(f"requests.{index}.custom_id: String should match pattern '{CUSTOM_ID.pattern}'")
            if custom_id in seen:
                raise invalid(f"requests.{index}.custom_id: custom_ids must be unique; {custom_id!r} is repeated")
            seen.add(custom_id)
            if not is_object(request.get("params")):
                raise invalid(f"requests.{index}.params: Field required")
        self._made += 1
        batch = Batch(f"msgbatch_{self._made:08d}", requests, datetime.now(UTC), self.plan.polls)
        self._batches[batch.id] = batch
        return batch

    def get(self, batch_id: str) -> Batch:
        """The batch, or the API's 404."""
        batch = self._batches.get(batch_id)
        if batch is None:
            raise ApiError(404, f"batch {batch_id} not found")
        return batch

    def poll(self, batch_id: str) -> Batch:
        """One retrieve: moves the batch on by one poll."""
        batch = self.get(batch_id)
        if batch.status == "canceling":
            self._end(batch, canceled=True)
        elif batch.status == "in_progress":
            if batch.polls_left <= 0:
                self._end(batch)
            batch.polls_left -= 1
        return batch

    def cancel(self, batch_id: str) -> Batch:
        """Starts the cancellation; the next retrieve finds the batch ended and its items canceled."""
        batch = self.get(batch_id)
        if batch.status == "ended":
            raise invalid(f"batch {batch_id} cannot be canceled because it has already ended")
        if batch.status == "in_progress":
            batch.status, batch.canceled_at = "canceling", datetime.now(UTC)
        return batch

    def delete(self, batch_id: str) -> dict[str, Any]:
        """Forgets an ended batch."""
        if self.get(batch_id).status != "ended":
            raise invalid(f"batch {batch_id} cannot be deleted while it is in progress")
        del self._batches[batch_id]
        return {"id": batch_id, "type": "message_batch_deleted"}

    def results(self, batch_id: str) -> list[bytes]:
        """The JSONL lines of an ended batch."""
        batch = self.get(batch_id)
        if batch.status != "ended":
            raise ApiError(404, f"batch {batch_id} has no results yet")
        return [json.dumps(result, ensure_ascii=False).encode() + b"\n" for result in batch.results]

    def newest_first(self) -> list[Batch]:
        """All batches in the order `list` gives them."""
        return list(reversed(self._batches.values()))

    def _end(self, batch: Batch, *, canceled: bool = False) -> None:
        for number, request in enumerate(batch.requests):
            result: dict[str, Any] = {"type": "canceled"} if canceled else self._result(request, number)
            batch.results.append({"custom_id": request["custom_id"], "result": result})
        if self.plan.shuffle:
            _shuffle(batch.results, self.plan.seed)
        batch.status, batch.ended_at = "ended", datetime.now(UTC)

    def _result(self, request: dict[str, Any], number: int) -> dict[str, Any]:
        outcome = self.plan.outcome(request["custom_id"])
        if isinstance(outcome, str):
            return {"type": outcome}
        try:
            error = outcome.error() if outcome is not None else None
            if error is not None:
                raise error
            return {"type": "succeeded", "message": self._run_item(request["params"], outcome, number)}
        except ApiError as problem:
            return {"type": "errored", "error": problem.body(f"req_batch_{number:06d}")}


def _shuffle(rows: list[dict[str, Any]], seed: int) -> None:
    """Shuffles in place, and never into the original order: a test that relies on order must fail every
    time."""
    before = list(rows)
    random.Random(seed).shuffle(rows)
    if len(rows) > 1 and rows == before:
        rows.append(rows.pop(0))


def page(rows: list[dict[str, Any]], query: Mapping[str, str], default_limit: int = 20) -> dict[str, Any]:
    """One page of a list endpoint: `limit`, `after_id` and `before_id` as the API reads them."""
    try:
        limit = int(query.get("limit", default_limit))
    except ValueError:
        limit = 0
    if not 1 <= limit <= 1000:
        raise invalid("limit: Input should be between 1 and 1000")
    ids = [row["id"] for row in rows]
    if "before_id" in query:
        end = ids.index(query["before_id"]) if query["before_id"] in ids else 0
        start = max(0, end - limit)
        more = start > 0
    else:
        start = ids.index(query["after_id"]) + 1 if query.get("after_id") in ids else 0
        end = min(len(rows), start + limit)
        more = end < len(rows)
    data = rows[start:end]
    return {
        "data": data,
        "has_more": more,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }
