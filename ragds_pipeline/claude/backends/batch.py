"""The batch backend: Message Batches, at half the price, resumable after a kill at any point.

Every request is in one of three states, and each look at them moves some on: not in a batch (put into one, after its
intent is committed), in a batch that may or may not exist (found out, ``batch_find``), in a batch that does exist
(polled, then read item by item). All of it is read back from the store, so a run that was killed, and a second process
that asks the same, take part in the same batches.

Bounds: a request goes into at most ``batch_attempts`` batches in one run, and a batch that cannot be reached several
times in a row gives its requests up for this run; the next run finds it again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anthropic

from ragds_pipeline.claude.backends.batch_create import CHECKED_AT_MOST, grouped, rejected_first
from ragds_pipeline.claude.backends.batch_existence import Existence
from ragds_pipeline.claude.backends.batch_failures import PASSING, failure_of
from ragds_pipeline.claude.backends.batch_progress import Told
from ragds_pipeline.claude.backends.batch_results import Item, read_items
from ragds_pipeline.claude.batch_store import BatchStore, Intent
from ragds_pipeline.claude.caching import NO_CACHING, plan_caching
from ragds_pipeline.claude.requests import STOPS_THE_RUN, Failure, FailureReason, Request
from ragds_pipeline.claude.retry import asked_wait
from ragds_pipeline.config import ClaudeSettings

RESULTS_KEPT_S = 29 * 24 * 3600
"""The API keeps results for 29 days."""

LOST_LOOKS = 10
"""So many looks at a batch that fail in a row, and this run gives it up; at the default intervals, after minutes."""

_UNKNOWN_BATCH = (
    "batch {0} holds this request and is not known to this key: it was made in another workspace, or deleted. Use the "
    "key that made it; or let go of it with: ragds batches forget {0} --yes, and pay for its requests again"
)

OnMessage = Callable[[Request, dict[str, Any], str], None]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What a run asks and tells its caller; see ``run_batches``."""

    admit: Callable[[Request], Failure | None]
    on_message: OnMessage
    on_failure: Callable[[Request, Failure], None]


def run_batches(
    requests: Sequence[Request], settings: ClaudeSettings, api_key: str, store: BatchStore,
    admit: Callable[[Request], Failure | None], on_message: OnMessage,
    on_failure: Callable[[Request, Failure], None], on_progress: Callable[[str], None],
) -> None:  # fmt: skip
    """Answer every request through message batches; hand each over as exactly one message or one failure.

    Args:
        admit: Asked before a request is put into a batch; may refuse it. One that is over budget waits while batches
            are under way, and is asked about again. It is not asked for requests that are in a batch of an earlier
            run: these are paid whatever happens, and ``on_message`` comes for them all the same.
        on_message: Called with (request, message, batch id); the reply must be durable when it returns.
        on_failure: Called with (request, failure).
        on_progress: Called with a line of text for people.
    """
    callbacks = Callbacks(admit, on_message, on_failure)
    _run(requests, settings, api_key, store, callbacks, on_progress, submits=True)


def collect_batches(
    requests: Sequence[Request], settings: ClaudeSettings, api_key: str, store: BatchStore, on_message: OnMessage,
    on_failure: Callable[[Request, Failure], None], on_progress: Callable[[str], None],
) -> list[Request]:  # fmt: skip
    """Hand over those of the requests that are in a batch of an earlier run, and return the others in their order.

    Such a batch is paid whatever happens, so it is waited for, whichever backend asks now. What it ended without
    answering was not paid and is among the requests returned. Arguments as of ``run_batches``.
    """
    if not store.holds_any():
        return list(requests)
    callbacks = Callbacks(lambda request: None, on_message, on_failure)
    left = {r.key for r in _run(requests, settings, api_key, store, callbacks, on_progress, submits=False)}
    return [request for request in requests if request.key in left]


def _run(
    requests: Sequence[Request], settings: ClaudeSettings, api_key: str, store: BatchStore, callbacks: Callbacks,
    say: Callable[[str], None], submits: bool,
) -> list[Request]:  # fmt: skip
    # The SDK's own retries are off: it would make a batch twice after a timeout, and sleep as long as a server says.
    with anthropic.Anthropic(
        api_key=api_key, base_url=settings.base_url, max_retries=0, timeout=settings.timeout_s
    ) as client:
        existence = Existence(client, store, settings, told := Told(say, settings))
        run = _BatchRun(requests, settings, client, store, existence, told, callbacks, submits)
        try:
            run.to_the_end()
        finally:
            existence.let_go()
    return run.left


class _BatchRun:
    """The requests of one call of ``run_batches`` and where each of them is."""

    def __init__(
        self, requests: Sequence[Request], settings: ClaudeSettings, client: anthropic.Anthropic, store: BatchStore,
        existence: Existence, told: Told, callbacks: Callbacks, submits: bool,
    ) -> None:  # fmt: skip
        self._settings, self._client, self._store = settings, client, store
        self._existence, self._told, self._callbacks = existence, told, callbacks
        self._submits = submits
        self._open = {request.key: request for request in requests}
        self.left: list[Request] = []
        """What is in no batch, where nothing is put into one."""
        self._following: dict[str, set[str]] = {}
        """Keys of open requests by the intent they are in."""
        self._admitted: set[str] = set()
        self._tries: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._asked_wait_s = 0.0
        self._checked = not settings.batch_check_first

    def to_the_end(self) -> None:
        """Work until every request has been handed over."""
        wait = self._settings.batch_poll_s
        while self._open:
            self._follow()
            if self._submits:
                self._submit()
            else:
                self._hand_back()
            self._follow()
            moved = [self._look(intent_id) for intent_id in list(self._following)]
            if any(moved) or not self._open:
                wait = self._settings.batch_poll_s
                continue
            self._told.waiting(len(self._following), len(self._open))
            longest = max(self._settings.batch_poll_s, self._settings.batch_poll_max_s)
            # What is unclear is looked at more often, and a server that asks for patience gets it, within bounds.
            pause = self._settings.batch_poll_s if self._existence.unsettled else wait
            time.sleep(max(pause, min(self._asked_wait_s, longest)))
            self._asked_wait_s = 0.0
            wait = min(wait * 1.25, longest)

    def _untied(self) -> list[Request]:
        followed = set().union(*self._following.values())
        return [request for key, request in self._open.items() if key not in followed]

    def _follow(self) -> None:
        """Take part in the batches that hold open requests: of this run, an earlier one, or another process."""
        ties = self._store.intents_of((request.key for request in self._untied()), self._existence.server)
        for key, intent_id in ties.items():
            self._following.setdefault(intent_id, set()).add(key)

    def _hand_back(self) -> None:
        """Let go of what is in no batch."""
        self.left += (untied := self._untied())
        for request in untied:
            del self._open[request.key]
        if self._open:
            self._told.left_behind(len(self._open))

    def _submit(self) -> None:
        """Put what is in no batch into one."""
        requests = self._admissible()
        plan = plan_caching(requests, "1h") if self._settings.caching else NO_CACHING
        bodies = {request.key: plan.body(request) for request in requests}
        if requests and not self._checked:
            requests = self._check(requests, bodies)
        for group in grouped(requests, bodies, self._settings):
            if isinstance(group, Failure):
                self._fail(group.key, group)
            elif (failure := self._existence.make(group)) is not None:
                # What every further batch would meet as well is the end of all that is in none.
                stops = failure.reason in STOPS_THE_RUN
                self._fail_all((r.key for r in (self._untied() if stops else group.requests)), failure)
                if stops:
                    return

    def _admissible(self) -> list[Request]:
        """Return what is in no batch and may be put into one now."""
        chosen: list[Request] = []
        waits = False
        for request in self._untied():
            if request.key in self._admitted:
                chosen.append(request)
            elif waits:
                continue
            elif (refused := self._callbacks.admit(request)) is None:
                self._admitted.add(request.key)
                chosen.append(request)
            elif refused.reason is FailureReason.OVER_BUDGET and (self._following or chosen):
                waits = True  # what is under way may cost less than it could: ask again when it has ended
            else:
                self._fail(request.key, refused)
        return chosen

    def _check(self, requests: list[Request], bodies: Mapping[str, Mapping[str, Any]]) -> list[Request]:
        self._checked = True
        rejected = rejected_first(self._client, requests, bodies)
        for failure in rejected:
            self._fail(failure.key, failure)
        if len(rejected) == CHECKED_AT_MOST:
            self._fail_all(
                (r.key for r in requests), Failure("", rejected[0].reason, f"not sent: {rejected[0].detail}")
            )
        return [request for request in requests if request.key in self._open]

    def _look(self, intent_id: str) -> bool:
        """Look at one batch; return whether anything moved on."""
        intent = self._store.intent(intent_id)
        if intent is None or not self._following[intent_id] & self._open.keys():
            self._following.pop(intent_id)
            return True
        try:
            if intent.batch_id is not None:
                moved: Failure | bool = self._read(intent, intent.batch_id)
            else:
                moved = self._existence.find_out(intent)
        except PASSING as error:
            self._lost[intent_id] += 1
            failure = failure_of("", error)
            if isinstance(error, anthropic.APIStatusError):
                self._asked_wait_s = max(self._asked_wait_s, asked_wait(error.response.headers) or 0.0)
            if self._lost[intent_id] < LOST_LOOKS and failure.reason not in STOPS_THE_RUN:
                return False
            what = intent.batch_id or "(created, perhaps)"
            detail = f"batch {what}: {failure.detail}; nothing is lost, the next run looks again"
            moved = Failure("", failure.reason, detail, possibly_paid=True)
        else:
            self._lost[intent_id] = 0
        if isinstance(moved, Failure):
            self._fail_all(self._following.pop(intent_id), moved)
            return True
        return moved

    def _read(self, intent: Intent, batch_id: str) -> Failure | bool:
        """Poll a batch and hand over what it has, once it has ended."""
        try:
            batch = self._client.messages.batches.retrieve(batch_id)
        except anthropic.NotFoundError:
            if time.time() - intent.created_at < RESULTS_KEPT_S:
                return Failure("", FailureReason.REJECTED, _UNKNOWN_BATCH.format(batch_id), possibly_paid=True)
            batch = None
        if batch is not None and getattr(batch, "id", None) != batch_id:
            raise anthropic.AnthropicError("what came back is no batch")
        if batch is not None and batch.processing_status != "ended":
            return False
        if batch is None or batch.results_url is None:
            self._told.archived(batch_id)
            self._store.lose(intent)
            return True
        self._collect(intent, batch_id)
        return True

    def _collect(self, intent: Intent, batch_id: str) -> None:
        """Hand over the results of a batch one by one, whatever their order."""
        left = self._following[intent.id] & self._open.keys()
        unpaid: list[Item] = []
        try:
            for item in read_items(self._client, batch_id):
                if item.key not in left:
                    continue
                left.discard(item.key)
                if item.message is None:
                    unpaid.append(item)
                else:
                    request = self._open.pop(item.key)
                    self._told.answered(batch_id, request.model, item.message)
                    self._callbacks.on_message(request, item.message, batch_id)
        finally:
            self._store.untie(intent, [item.key for item in unpaid])
            for item in unpaid:
                self._following[intent.id].discard(item.key)
                self._send_again_or_fail(item)
        if left:
            raise anthropic.AnthropicError(f"its results lack {len(left)} of its requests")
        self._told.ended(batch_id, len(unpaid))

    def _send_again_or_fail(self, item: Item) -> None:
        self._tries[item.key] += 1
        if not self._submits:
            return  # it was not paid, and whoever collects has another way to ask
        if not item.again or self._tries[item.key] >= self._settings.batch_attempts:
            self._fail(item.key, Failure(item.key, item.reason, item.detail))

    def _fail_all(self, keys: Iterable[str], failure: Failure) -> None:
        for key in list(keys):
            self._fail(key, failure)

    def _fail(self, key: str, failure: Failure) -> None:
        request = self._open.pop(key, None)
        if request is not None:
            self._callbacks.on_failure(request, replace(failure, key=key))
