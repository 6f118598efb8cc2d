"""What happened: requests received, messages answered, tokens by model. Written by the event loop, read by
the test thread; one lock guards both."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ragds_pipeline_tests.loopback.jsonkinds import is_object

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "proxy-authorization"})


def body_hash(body: Any) -> str:
    """The canonical hash of a request body. `stream` is left out: it changes the delivery, not the request.
    A batch item's `params` hash to the same value as the body of the plain call."""
    if is_object(body):
        body = {key: value for key, value in body.items() if key != "stream"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class RecordedRequest:
    """One request as it arrived, credentials left out; `status` and `fault` are filled when it is
    answered."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    hash: str
    attempt: int
    status: int | None = None
    fault: str | None = None


@dataclass
class ModelUsage:
    """Token totals of one model and tier."""

    messages: int = 0
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0
    batch_messages: int = 0


@dataclass
class Books:
    """The server's memory.

    Attributes:
        paid: Body hash to the number of times a message was made for it, batch items included: what a
            provider would bill, whether or not the client received it.
        abandoned: The part of `paid` whose client had gone before the answer was written.
        problems: Exceptions raised by the responder, as text.
    """

    record: bool = True
    requests: list[RecordedRequest] = field(default_factory=list[RecordedRequest])
    usage: dict[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    paid: Counter[str] = field(default_factory=Counter[str])
    abandoned: Counter[str] = field(default_factory=Counter[str])
    attempts: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])
    calls: int = 0
    open_now: int = 0
    open_most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def arrived(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: Any
    ) -> RecordedRequest:
        """Records a request and counts the attempts of its body."""
        shown = {key: value for key, value in headers.items() if key not in SECRET_HEADERS}
        digest = body_hash(body) if body is not None else body_hash([method, path, query])
        with self.lock:
            self.attempts[digest] += 1
            record = RecordedRequest(method, path, query, shown, body, digest, self.attempts[digest])
            if self.record:
                self.requests.append(record)
        return record

    def entered(self) -> None:
        """A message request is being worked on."""
        with self.lock:
            self.open_now += 1
            self.open_most = max(self.open_most, self.open_now)

    def left(self) -> None:
        """It no longer is."""
        with self.lock:
            self.open_now -= 1

    def answered(self, digest: str, message: dict[str, Any], *, batch: bool = False, abandoned: bool = False) -> None:
        """A message was made: count it and its tokens."""
        usage = message["usage"]
        with self.lock:
            self.paid[digest] += 1
            if abandoned:
                self.abandoned[digest] += 1
            total = self.usage.setdefault(message["model"], ModelUsage())
            if batch:
                total.batch_messages += 1
            else:
                self.calls += 1
                total.messages += 1
            total.input_tokens += usage["input_tokens"]
            total.cache_creation_input_tokens += usage["cache_creation_input_tokens"]
            total.cache_read_input_tokens += usage["cache_read_input_tokens"]
            total.output_tokens += usage["output_tokens"]

    def stats(self) -> dict[str, Any]:
        """The totals as JSON, for a test in another process."""
        with self.lock:
            return {
                "calls": self.calls,
                "requests": sum(self.attempts.values()),
                "paid": dict(self.paid),
                "abandoned": dict(self.abandoned),
                "most_concurrent": self.open_most,
                "problems": list(self.problems),
                "usage": {model: dict(vars(total)) for model, total in self.usage.items()},
            }
