"""One request to one reply: routes, rejections, faults carried out, the books kept.

Runs in the event loop of `server`; knows nothing of sockets and threads.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from ragds_pipeline_tests.loopback.answers import Answer, Responder, as_answer
from ragds_pipeline_tests.loopback.batches import Batches, BatchPlan, page
from ragds_pipeline_tests.loopback.books import Books, RecordedRequest, body_hash
from ragds_pipeline_tests.loopback.errors import ApiError, invalid
from ragds_pipeline_tests.loopback.faults import Endpoint, Fault, FaultPlan
from ragds_pipeline_tests.loopback.messages import build_message, faulted, sse_events, sse_text
from ragds_pipeline_tests.loopback.models import MODELS
from ragds_pipeline_tests.loopback.tokens import PromptCache, input_tokens
from ragds_pipeline_tests.loopback.validation import check_headers, check_message_body
from ragds_pipeline_tests.loopback.wire import Reply, Request, json_reply

BATCHES = "/v1/messages/batches"
T = TypeVar("T")


class Handling:
    """Answers requests. `responder`, `latency`, `faults` and `headers` may be replaced while it runs."""

    def __init__(
        self,
        *,
        responder: Responder,
        latency: float,
        faults: FaultPlan,
        batches: BatchPlan,
        books: Books,
        api_key: str | None,
        headers: dict[str, str],
    ) -> None:
        self.responder = responder
        self.latency = latency
        self.faults = faults
        self.books = books
        self.api_key = api_key
        self.headers = headers
        self.base_url = ""
        self.batches = Batches(batches, self._batch_item)
        self._cache = PromptCache()
        self._numbers: Counter[str] = Counter()
        self._request_ids = itertools.count(1)

    def use_faults(self, plan: FaultPlan) -> None:
        """Replaces the plan and starts counting requests anew."""
        self.faults = plan
        self._numbers = Counter()

    async def handle(self, request: Request, gone: Callable[[], bool]) -> Reply:
        """The reply to a request; `gone` tells whether its client has hung up."""
        request_id = f"req_{next(self._request_ids):012d}"
        if request.path == "/_loopback/stats":
            return json_reply(self.books.stats())
        body: Any = None
        broken = False
        if request.body:
            try:
                body = json.loads(request.body)
            except ValueError:
                broken = True
        record = self.books.arrived(request.method, request.path, request.query, request.headers, body)
        try:
            check_headers(request.headers, self.api_key)
            if broken:
                raise invalid("The request body is not valid JSON")
            reply = await self._answer(request, body, record, gone)
        except ApiError as problem:
            reply = json_reply(problem.body(request_id), problem.status, problem.headers)
        except Exception as problem:  # a hole in this server must not look like a lost connection
            self._note_problem()
            told = ApiError(500, f"the loopback server failed: {problem!r}", headers={"x-should-retry": "false"})
            reply = json_reply(told.body(request_id), told.status, told.headers)
        reply.headers.update({"request-id": request_id, **self.headers})
        record.status = None if reply.delivery == "drop" else reply.status
        return reply

    async def _answer(self, request: Request, body: Any, record: RecordedRequest, gone: Callable[[], bool]) -> Reply:
        endpoint, name = route(request.method, request.path)
        fault = self._fault(endpoint, record)
        if fault is not None:
            await asyncio.sleep(fault.delay)
            stopped = _stopped_by(fault)
            if stopped is not None:
                return stopped
            error = fault.error()
            if error is not None:
                await asyncio.sleep(self.latency if endpoint == "messages" else 0)
                raise error
        if endpoint == "messages":
            self.books.entered()
            try:
                return await self._message(body, request.headers, record, fault, gone)
            finally:
                self.books.left()
        return _delivered(self._other(endpoint, name, request, body), fault)

    def _fault(self, endpoint: Endpoint, record: RecordedRequest) -> Fault | None:
        if endpoint not in self.faults.endpoints:
            return None
        self._numbers["all"] += 1
        fault = self.faults.decide(self._numbers["all"], record.hash, record.attempt)
        record.fault = fault.kind if fault is not None else None
        return fault

    async def _message(
        self,
        body: Any,
        headers: dict[str, str],
        record: RecordedRequest,
        fault: Fault | None,
        gone: Callable[[], bool],
    ) -> Reply:
        model = check_message_body(body, headers)
        used = self._cache.look(body, model)
        answer = faulted(self._said(body), fault)
        await asyncio.sleep(self.latency + answer.delay)
        message = self._built(lambda: build_message(answer, body, model, used, key=f"{record.hash}:{record.attempt}"))
        streamed = bool(body.get("stream"))
        if fault is not None and fault.kind == "stream_error" and not streamed:
            raise ApiError(529, fault.message or "Overloaded")
        self._cache.keep(used)
        self.books.answered(record.hash, message, abandoned=gone())
        if not streamed:
            return _delivered(json_reply(message), fault)
        events = [sse_text(event) for event in sse_events(message)]
        if fault is not None and fault.kind == "stream_error":
            error = ApiError(529, fault.message or "Overloaded").body("req_in_stream")
            events = [*events[: max(1, int(len(events) * fault.after))], sse_text(error)]
        return _delivered(Reply(200, events, content_type="text/event-stream", streamed=True), fault)

    def _batch_item(self, params: Any, fault: Fault | None, number: int) -> dict[str, Any]:
        """The message of one batch item; its params get the checks a plain call gets, and two more."""
        if params.get("stream"):
            raise invalid("stream: streaming is not supported in batches")
        if params.get("max_tokens") == 0:
            raise invalid("max_tokens: 0 is not supported in batches")
        model = check_message_body(params, {"anthropic-version": "2026-10-21"})
        used = self._cache.look(params, model)
        answer = faulted(self._said(params), fault)
        digest = body_hash(params)
        message = self._built(
            lambda: build_message(answer, params, model, used, key=f"{digest}:batch:{number}", tier="batch")
        )
        self._cache.keep(used)
        self.books.answered(digest, message, batch=True)
        return message

    def _said(self, body: dict[str, Any]) -> Answer:
        return self._built(lambda: as_answer(self.responder(body)))

    def _built(self, work: Callable[[], T]) -> T:
        """Runs what the test scripted. Its mistakes become a 500 the SDK does not retry, kept in
        `problems`."""
        try:
            return work()
        except ApiError:
            raise
        except Exception as problem:  # whatever a responder raises is the test's to see
            self._note_problem()
            text = f"the responder raised {type(problem).__name__}: {problem}"
            raise ApiError(500, text, headers={"x-should-retry": "false"}) from problem

    def _note_problem(self) -> None:
        with self.books.lock:
            self.books.problems.append(traceback.format_exc())

    def _other(self, endpoint: Endpoint, name: str, request: Request, body: Any) -> Reply:
        """Everything that is not a message."""
        if endpoint == "count_tokens":
            check_message_body(body, request.headers, counting=True)
            return json_reply({"input_tokens": input_tokens(body)})
        if endpoint == "models":
            if not name:
                return json_reply(page([model.info() for model in MODELS.values()], request.query))
            if name not in MODELS:
                raise ApiError(404, f"model: {name}")
            return json_reply(MODELS[name].info())
        if endpoint == "batches.list":
            infos = [batch.info(self.base_url) for batch in self.batches.newest_first()]
            return json_reply(page(infos, request.query))
        if endpoint == "batches.results":
            return Reply(200, [b"".join(self.batches.results(name))], content_type="application/x-jsonl")
        if endpoint == "batches.delete":
            return json_reply(self.batches.delete(name))
        if endpoint == "batches.create":
            batch = self.batches.create(body)
        elif endpoint == "batches.cancel":
            batch = self.batches.cancel(name)
        else:
            batch = self.batches.poll(name)
        return json_reply(batch.info(self.base_url))


def route(method: str, path: str) -> tuple[Endpoint, str]:
    """The endpoint of a path and the id in it."""
    fixed: dict[tuple[str, str], Endpoint] = {
        ("POST", "/v1/messages"): "messages",
        ("POST", "/v1/messages/count_tokens"): "count_tokens",
        ("POST", BATCHES): "batches.create",
        ("GET", BATCHES): "batches.list",
        ("GET", "/v1/models"): "models",
    }
    if (method, path) in fixed:
        return fixed[method, path], ""
    if method == "GET" and path.startswith("/v1/models/"):
        return "models", path.removeprefix("/v1/models/")
    if path.startswith(BATCHES + "/"):
        name, _, action = path.removeprefix(BATCHES + "/").partition("/")
        actions: dict[tuple[str, str], Endpoint] = {
            ("GET", ""): "batches.retrieve",
            ("GET", "results"): "batches.results",
            ("POST", "cancel"): "batches.cancel",
            ("DELETE", ""): "batches.delete",
        }
        if (method, action) in actions:
            return actions[method, action], name
    raise ApiError(404, f"Not found: {method} {path}")


def _stopped_by(fault: Fault) -> Reply | None:
    """The reply of a fault that comes before the request is even looked at."""
    if fault.kind in ("drop", "hang"):
        return Reply(delivery="drop")
    if fault.kind == "html_502":
        return Reply(502, [b"<html><body><h1>502 Bad Gateway</h1></body></html>"], content_type="text/html")
    return None


def _delivered(reply: Reply, fault: Fault | None) -> Reply:
    """The reply with a delivery fault carried out."""
    if fault is None:
        return reply
    if fault.kind == "drip":
        reply.delivery, reply.pieces, reply.piece_delay = "drip", fault.pieces, fault.piece_delay
    elif fault.kind == "drop_midway":
        reply.delivery, reply.after = "cut", fault.after
    elif fault.kind == "truncated_stream":
        reply.delivery, reply.after = "cut_cleanly", fault.after
    return reply
