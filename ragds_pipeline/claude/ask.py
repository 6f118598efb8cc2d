"""``ask``: the one door to a model."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from ragds_pipeline.claude.admission import Admission
from ragds_pipeline.claude.backends.file import ResultsTally, read_results, write_requests
from ragds_pipeline.claude.batch_store import BatchStore
from ragds_pipeline.claude.budget import Budget
from ragds_pipeline.claude.clients import API_KEY, credentials
from ragds_pipeline.claude.estimate import Estimate, ceiling, estimate
from ragds_pipeline.claude.forecast import forecast
from ragds_pipeline.claude.ledger import Ledger, ledger_url
from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.progress import AUDIENCE, Progress, ProgressReporter
from ragds_pipeline.claude.requests import Failure, FailureReason, Reply, Request, Usage, outcome
from ragds_pipeline.claude.spending import StepCosts
from ragds_pipeline.config import ClaudeSettings, ConfigError, Settings

Outcome = Reply | Failure

_LOOK_FIRST_S = 0.1
_LOOK_AT_MOST_S = 2.0
"""Between two looks for a reply that another process has in hand."""

_SAY_AGAIN_S = 30.0


class RepliesMissing(RuntimeError):
    """The run needs replies that it cannot get: no key, or requests for which nothing is recorded."""

    def __init__(self, message: str, estimate: Estimate) -> None:
        super().__init__(message)
        self.estimate = estimate


class Claude:
    """Asks a model, through ledger, budget and backend."""

    def __init__(
        self,
        settings: Settings,
        run_id: str = "",
        on_progress: Callable[[Progress], None] | None = None,
        partition: str = "",
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._settings = settings.claude
        self._recorded = settings.path(settings.claude.recorded)
        self._outbox = settings.path(settings.claude.outbox)
        self._run_id = run_id
        self._partition = partition
        self._on_progress = on_progress
        self._tell = say or logging.getLogger("ragds_pipeline.claude").info
        if settings.claude.backend == "batch" and settings.claude.provider != "anthropic":
            raise ConfigError(f"claude.backend: {settings.claude.provider} has no Message Batches; use api")
        self.prices = PriceTable(settings.claude.prices)
        judges = settings.filters.judges
        self._answering = tuple(judges.closed_book_models) if "closed_book" in judges.enabled else ()
        for model in (*settings.claude.models.ids, *self._answering):
            self.prices.of(model)  # an unknown price stops the run here, before anything is sent
        # Without a partition there is nothing a partition's cap could hold for.
        partition_cap = settings.claude.partition_budget_usd if partition else None
        self.budget = Budget(settings.claude.budget_usd, partition_cap)
        self.ledger = Ledger(ledger_url(settings))
        self.costs = StepCosts()

    def ask(self, requests: Sequence[Request], batch_above: int | None = None) -> dict[str, Outcome]:
        """Return a reply or a typed failure for each request, by its key.

        Equal requests are sent once; what is in the ledger is not sent, and what another process is asking just now is
        waited for. A single failed call never costs the others.

        Args:
            requests: What is asked.
            batch_above: With the ``api`` backend, more requests than this that have to be sent go as a batch.

        Raises:
            RepliesMissing: The requests cannot be answered at all; the open ones are in the outbox.
        """
        by_key = {request.key: request for request in requests}
        found: dict[str, Outcome] = {}
        self._replay(by_key, found)
        missing = [request for key, request in by_key.items() if key not in found]
        if missing and self._settings.backend == "file":
            self._from_files(missing, found)
        elif missing:
            self._from_model(missing, found, self._sent_with(len(missing), batch_above))
        self.costs.note(by_key, found)
        if self._partition:
            self.ledger.note_uses(self._partition, by_key.values())
        return {key: found[key] for key in by_key}

    def known(self, requests: Sequence[Request]) -> dict[str, Outcome]:
        """Return the outcomes there are already, by key: in the ledger or, with the ``file`` backend, recorded.

        Nothing is sent and nothing is written.
        """
        by_key = {request.key: request for request in requests}
        found: dict[str, Outcome] = {}
        self._replay(by_key, found)
        open_ = by_key.keys() - found.keys()
        if open_ and self._settings.backend == "file":
            for key, message in read_results(self._recorded, open_):
                found[key] = outcome(key, message, Decimal(0), replayed=True)
        return found

    def estimate(self, requests: Sequence[Request], batch_above: int | None = None) -> Estimate:
        """Return what would have to be paid for those of the requests that are not in the ledger; as ``ask`` does."""
        known = self.ledger.holds(request.key for request in requests)
        fresh = {request.key: request for request in requests if request.key not in known}
        api_key = credentials(self._settings) or ""
        return forecast(list(fresh.values()), self._sent_with(len(fresh), batch_above), self.prices, api_key)

    def _sent_with(self, count: int, batch_above: int | None) -> ClaudeSettings:
        """Return the settings that so many requests are sent with: a batch is half the price where one can wait."""
        settings = self._settings
        many = batch_above is not None and count > batch_above
        if many and settings.backend == "api" and settings.provider == "anthropic":
            return settings.model_copy(update={"backend": "batch"})
        return settings

    def _say(self, text: str) -> None:
        self._tell(text)
        AUDIENCE.said(text)

    def _replay(self, keys: Sequence[str] | dict[str, Request], found: dict[str, Outcome]) -> None:
        # One by one, so that no more than a text is kept of each message.
        for entry in self.ledger.entries(keys):
            found[entry.key] = outcome(entry.key, entry.message, entry.cost_usd, replayed=True)

    def _from_files(self, missing: list[Request], found: dict[str, Outcome]) -> None:
        wanted, tally = {request.key: request for request in missing}, ResultsTally()
        for key, message in read_results(self._recorded, wanted, tally):
            # Recorded elsewhere and paid for there, if at all: here it costs nothing.
            self.ledger.put(wanted[key], message, Decimal(0), "file", self._run_id, "", self._partition)
            found[key] = outcome(key, message, Decimal(0), replayed=True)
        self._say(f"recordings: {tally}, for {len(missing)} requests")
        still = [request for request in missing if request.key not in found]
        if still:
            path = self._write_outbox(still)
            cost = estimate(still, self.prices)
            raise RepliesMissing(
                f"{len(still)} of {len(missing)} requests have no recorded reply. They are in {path} as "
                f"Message-Batches JSONL: have them answered and put the results into {self._recorded}, "
                "or set claude.backend: api "
                f"(estimated cost ${cost.cost_usd:.2f}).",
                cost,
            )

    def _from_model(self, missing: list[Request], found: dict[str, Outcome], settings: ClaudeSettings) -> None:
        api_key = credentials(settings)
        if api_key is None:
            cost = estimate(missing, self.prices)
            path = self._write_outbox(missing)
            raise RepliesMissing(
                f"{len(missing)} calls are needed (estimated cost ${cost.cost_usd:.2f}) and {API_KEY} is not set. "
                f"Set it, or have the requests in {path} answered elsewhere and use claude.backend: file.",
                cost,
            )
        backend = settings.backend
        if backend != self._settings.backend:
            self._say(f"{len(missing)} requests go as a batch: half the price, most done within the hour")
        if settings.check_models and settings.provider == "anthropic":
            from ragds_pipeline.claude.capabilities import check_models, stop_on_problems

            longest = max(int(request.params["max_tokens"]) for request in missing)
            for warning in stop_on_problems(check_models(settings, api_key, longest, self._answering)):
                self._say(warning)
        task = ", ".join(dict.fromkeys(request.task for request in missing))
        progress = ProgressReporter(len(missing), lambda: self.budget.spent_usd, self._on_progress, task)
        with Admission(self.ledger.writer, self.budget, self._run_id, self._partition, backend) as admission:
            still = missing
            while still:
                admission.start_round()
                exchange = _Exchange(self, settings, admission, progress, found)
                exchange.send(still, api_key)
                still = self._wait_for_others(exchange.elsewhere, admission, progress, found)

    def _wait_for_others(
        self, elsewhere: list[Request], admission: Admission, progress: ProgressReporter, found: dict[str, Outcome]
    ) -> list[Request]:
        """Wait for replies that other processes have in hand; return the requests that these let go of unanswered."""
        open_ = {request.key: request for request in elsewhere}
        pause, said = _LOOK_FIRST_S, float("-inf")
        while open_:
            free = admission.free(open_)  # before looking for replies: a reply comes before its claim ends
            answered: dict[str, Outcome] = {}
            self._replay(open_, answered)
            for key, reply in answered.items():
                found[key] = reply
                progress.count(isinstance(reply, Failure))
                del open_[key]
            if free & open_.keys():
                break
            if open_ and time.monotonic() - said > _SAY_AGAIN_S:
                said = time.monotonic()
                self._say(f"waiting for {len(open_)} replies that another process is asking for")
            if open_:
                time.sleep(pause)
                pause = min(pause * 1.5, _LOOK_AT_MOST_S)
        return list(open_.values())

    def _write_outbox(self, requests: list[Request]) -> Path:
        path = self._outbox / f"{requests[0].task}.jsonl"
        write_requests(requests, path)
        return path

    def close(self) -> None:
        """Give the ledger's connections back."""
        self.ledger.close()


class _Exchange:
    """One round of calls: the callbacks of a backend, tied to ledger, budget and progress."""

    def __init__(
        self,
        claude: Claude,
        settings: ClaudeSettings,
        admission: Admission,
        progress: ProgressReporter,
        found: dict[str, Outcome],
    ) -> None:
        self._claude = claude
        self._settings = settings
        self._admission = admission
        self._progress = progress
        self._found = found
        self.elsewhere: list[Request] = []
        """Requests that another process has in hand."""

    def send(self, requests: list[Request], api_key: str) -> None:
        """Hand the requests to the configured backend."""
        # Here and not above: the SDK takes seconds to load, and whoever only replays has no use for it.
        from ragds_pipeline.claude.backends.api import Callbacks, call_all
        from ragds_pipeline.claude.backends.batch import collect_batches, run_batches

        store, say = BatchStore(self._claude.ledger.engine), self._claude._say
        if self._settings.backend == "batch":
            run_batches(
                requests, self._settings, api_key, store, self._admit_at_once, self._from_batch, self._batch_failed, say
            )
            return
        if self._settings.provider == "anthropic":
            requests = collect_batches(
                requests, self._settings, api_key, store, self._from_batch, self._batch_failed, say
            )
        callbacks = Callbacks(
            self._admit, self._from_call, self._on_failure, self._admission.lost, self._admission.stop_waiting
        )
        if requests:
            call_all(requests, self._settings, api_key, callbacks)

    def _admit(self, request: Request) -> Failure | None:
        return self._admission.admit(request, self._most(request), wait=True)

    def _admit_at_once(self, request: Request) -> Failure | None:
        return self._admission.admit(request, self._most(request), wait=False)

    def _most(self, request: Request) -> Decimal:
        batch = self._settings.backend == "batch"
        return ceiling(request, self._claude.prices, batch=batch, caching=self._settings.caching)

    def _from_call(self, request: Request, message: dict[str, Any], request_id: str) -> None:
        self._on_message(request, message, request_id, batch=False)

    def _from_batch(self, request: Request, message: dict[str, Any], batch_id: str) -> None:
        self._on_message(request, message, batch_id, batch=True)

    def _on_message(self, request: Request, message: dict[str, Any], request_id: str, batch: bool) -> None:
        claude, admission = self._claude, self._admission
        cost = claude.prices.cost(request.model, Usage.of(message), batch=batch)
        claude.ledger.put(
            request, message, cost, "batch" if batch else "api", claude._run_id, request_id, claude._partition,
            lambda connection, new: admission.settle(connection, request.key, cost, new, batch),
        )  # fmt: skip
        admission.settled(request.key, cost)
        self._found[request.key] = outcome(request.key, message, cost, replayed=False)
        self._progress.count(isinstance(self._found[request.key], Failure))

    def _batch_failed(self, request: Request, failure: Failure) -> None:
        if failure.possibly_paid:
            self._admission.owe(request)
        self._on_failure(request, failure)

    def _on_failure(self, request: Request, failure: Failure) -> None:
        if failure.reason is FailureReason.ELSEWHERE:
            self.elsewhere.append(request)
            return
        self._admission.failed(request)
        self._found[request.key] = failure
        self._progress.count(failed=True)


def open_claude(
    settings: Settings,
    run_id: str = "",
    on_progress: Callable[[Progress], None] | None = None,
    partition: str = "",
    say: Callable[[str], None] | None = None,
) -> Claude:
    """Return a Claude for one step of a run.

    Args:
        settings: The project's.
        run_id: Run that pays; its cap holds for all processes that give the same. "": a run of its own.
        on_progress: Told how far a list of requests has come; the log by default.
        partition: Partition that pays, for its own cap and for the ledger.
        say: Told in a line of text what else people may want to know (batches, waiting); the log by default.

    Raises:
        ConfigError: A model's price is unknown, or ledger or provider cannot be used.
    """
    return Claude(settings, run_id, on_progress, partition, say)
