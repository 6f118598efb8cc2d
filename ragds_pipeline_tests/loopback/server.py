"""The server: one event loop in a background thread, bound to 127.0.0.1, with the books open to the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from ragds_pipeline_tests.loopback.answers import Responder, echo_responder
from ragds_pipeline_tests.loopback.batches import BatchPlan
from ragds_pipeline_tests.loopback.books import Books, ModelUsage, RecordedRequest
from ragds_pipeline_tests.loopback.errors import ApiError
from ragds_pipeline_tests.loopback.faults import Fault, FaultPlan
from ragds_pipeline_tests.loopback.handling import Handling
from ragds_pipeline_tests.loopback.validation import MAX_BYTES
from ragds_pipeline_tests.loopback.wire import HEAD_LIMIT, TooLarge, json_reply, read_request, write_reply

HOST = "127.0.0.1"
BATCH_BYTES = 8 * MAX_BYTES  # 256 MB, for batches only; plain requests are held to 32 MB after they are read


class LoopbackServer:
    """A Messages API on localhost.

    Args:
        responder: What the model says, from the request body; runs in the event loop, so it must not block
            (use `Answer.delay` to wait). Replaceable at any time.
        latency: Seconds before each message answer.
        faults: A `FaultPlan`, or a sequence of faults consumed in the order of arrival.
        batches: How batches go.
        port: 0 for a free one; a fixed one lets a test restart the server at the same URL.
        api_key: The only key accepted; any non-empty Bearer key when None.
        headers: Added to every answer, e.g. `anthropic-ratelimit-requests-remaining`.
        record: Whether `requests` is kept; a benchmark turns it off.
        max_bytes: Size above which a message request gets a 413.

    Use as a context manager, or call `start` and `stop`.
    """

    def __init__(
        self,
        responder: Responder = echo_responder,
        *,
        latency: float = 0.0,
        faults: FaultPlan | Sequence[Fault | None] = (),
        batches: BatchPlan | None = None,
        port: int = 0,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        record: bool = True,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._books = Books(record=record)
        self._handling = Handling(
            responder=responder,
            latency=latency,
            faults=_as_plan(faults),
            batches=batches or BatchPlan(),
            books=self._books,
            api_key=api_key,
            headers=dict(headers or {}),
        )
        self._port = port
        self._max_bytes = max_bytes
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        """The `base_url` for the SDK."""
        return self._handling.base_url

    @property
    def port(self) -> int:
        """The port in use."""
        return self._port

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests in the order of arrival, faulted and rejected ones included; credentials left out."""
        with self._books.lock:
            return list(self._books.requests)

    @property
    def calls(self) -> int:
        """Plain /v1/messages calls answered with a message (200)."""
        with self._books.lock:
            return self._books.calls

    @property
    def paid(self) -> dict[str, int]:
        """`body_hash` of a request to the messages made for it: what a provider would bill, batch items
        included, and also counted when the client had gone or the delivery was cut by a fault."""
        with self._books.lock:
            return dict(self._books.paid)

    @property
    def abandoned(self) -> dict[str, int]:
        """The part of `paid` whose client had hung up before its answer."""
        with self._books.lock:
            return dict(self._books.abandoned)

    @property
    def usage(self) -> dict[str, ModelUsage]:
        """Token totals by model."""
        with self._books.lock:
            return {model: replace(total) for model, total in self._books.usage.items()}

    @property
    def problems(self) -> list[str]:
        """Tracebacks of exceptions the responder raised; assert it empty when a test scripts its own
        answers."""
        with self._books.lock:
            return list(self._books.problems)

    @property
    def most_concurrent(self) -> int:
        """The most message requests that were open at one time."""
        with self._books.lock:
            return self._books.open_most

    @property
    def responder(self) -> Responder:
        """What the model says."""
        return self._handling.responder

    @responder.setter
    def responder(self, responder: Responder) -> None:
        self._handling.responder = responder

    @property
    def latency(self) -> float:
        """Seconds before each message answer."""
        return self._handling.latency

    @latency.setter
    def latency(self, latency: float) -> None:
        self._handling.latency = latency

    @property
    def faults(self) -> FaultPlan:
        """The plan in force; assigning one starts its count of requests at 1."""
        return self._handling.faults

    @faults.setter
    def faults(self, faults: FaultPlan | Sequence[Fault | None]) -> None:
        self._handling.use_faults(_as_plan(faults))

    @property
    def batch_plan(self) -> BatchPlan:
        """How batches go; a new plan holds for batches that end after it."""
        return self._handling.batches.plan

    @batch_plan.setter
    def batch_plan(self, plan: BatchPlan) -> None:
        self._handling.batches.plan = plan

    def start(self) -> LoopbackServer:
        """Starts the thread and returns once the port is open."""
        self._thread = threading.Thread(target=self._run, name="loopback-messages", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise RuntimeError(f"the loopback server could not start on port {self._port}") from self._failure
        return self

    def stop(self) -> None:
        """Closes every connection and ends the thread."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(timeout=10)

    def wait(self) -> None:
        """Blocks until the server stops."""
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> LoopbackServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:  # handed to the thread that waits in `start`
            self._failure = failure
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, HOST, self._port, limit=HEAD_LIMIT, backlog=1024)
        self._port = int(server.sockets[0].getsockname()[1])
        self._handling.base_url = f"http://{HOST}:{self._port}"
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A plain callback, so that the task is ours to cancel and asyncio does not log its end."""
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def gone() -> bool:
            return reader.at_eof() or reader.exception() is not None or writer.transport.is_closing()

        try:
            while True:
                try:
                    request = await read_request(reader, BATCH_BYTES)
                    if request is None:
                        return
                    if request.path == "/v1/messages" and len(request.body) > self._max_bytes:
                        raise TooLarge(len(request.body))
                except TooLarge:
                    problem = ApiError(413, "Request exceeds the maximum size")
                    await write_reply(writer, json_reply(problem.body("req_too_large"), 413))
                    return
                reply = await self._handling.handle(request, gone)
                if not await write_reply(writer, reply) or not request.keep_alive:
                    return
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            return
        except (ValueError, asyncio.LimitOverrunError):  # not HTTP: hang up
            return
        finally:
            writer.close()


def _as_plan(faults: FaultPlan | Sequence[Fault | None]) -> FaultPlan:
    return faults if isinstance(faults, FaultPlan) else FaultPlan(sequence=tuple(faults))
