"""``ask``: the one door to a model."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ragds_pipeline.claude.backends.api import call_all
from ragds_pipeline.claude.backends.file import read_results, write_requests
from ragds_pipeline.claude.budget import Budget
from ragds_pipeline.claude.estimate import Estimate, ceiling, estimate
from ragds_pipeline.claude.ledger import Ledger
from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.requests import Failure, FailureReason, Reply, Request, Usage, outcome
from ragds_pipeline.config import Settings

API_KEY = "ANTHROPIC_API_KEY"

Outcome = Reply | Failure


class RepliesMissing(RuntimeError):
    """The run needs replies that it cannot get: no key, or requests for which nothing is recorded."""

    def __init__(self, message: str, estimate: Estimate) -> None:
        super().__init__(message)
        self.estimate = estimate


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a list of requests has come."""

    done: int
    total: int
    failed: int
    spent_usd: Decimal


class Claude:
    """Asks a model, through ledger, budget and backend."""

    def __init__(
        self,
        settings: Settings,
        run_id: str = "",
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._settings = settings.claude
        self._recorded = settings.path(settings.claude.recorded)
        self._outbox = settings.path(settings.claude.outbox)
        self._run_id = run_id
        self._on_progress = on_progress or _log_progress
        self.prices = PriceTable(settings.claude.prices)
        for model in (settings.claude.models.generator, settings.claude.models.judge):
            self.prices.of(model)  # an unknown price stops the run here, before anything is sent
        self.budget = Budget(settings.claude.budget_usd)
        self.ledger = Ledger(_ledger_url(settings))

    def ask(self, requests: Sequence[Request]) -> dict[str, Outcome]:
        """Return a reply or a typed failure for each request, by its key.

        Equal requests are sent once; what is in the ledger is not sent. A single failed call never costs the others.
        Raises RepliesMissing, having written the open requests to the outbox, where they cannot be answered at all.
        """
        by_key = {request.key: request for request in requests}
        found: dict[str, Outcome] = {}
        for key, entry in self.ledger.get(by_key).items():
            found[key] = outcome(key, entry.message, entry.cost_usd, replayed=True)
        missing = [request for key, request in by_key.items() if key not in found]
        if missing:
            backend = self._from_files if self._settings.backend == "file" else self._from_api
            backend(missing, found)
        return {key: found[key] for key in by_key}

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """Return what would have to be paid for those of the requests that are not in the ledger."""
        known = self.ledger.get(request.key for request in requests)
        fresh = {request.key: request for request in requests if request.key not in known}
        return estimate(fresh.values(), self.prices)

    def _from_files(self, missing: list[Request], found: dict[str, Outcome]) -> None:
        wanted = {request.key: request for request in missing}
        for key, message in read_results(self._recorded):
            if key in wanted and key not in found:
                # Recorded elsewhere and paid for there, if at all: here it costs nothing.
                self.ledger.put(wanted[key], message, Decimal(0), "file", self._run_id, "")
                found[key] = outcome(key, message, Decimal(0), replayed=True)
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

    def _from_api(self, missing: list[Request], found: dict[str, Outcome]) -> None:
        api_key = os.environ.get(API_KEY, "")
        cost = estimate(missing, self.prices)
        if not api_key:
            path = self._write_outbox(missing)
            raise RepliesMissing(
                f"{len(missing)} calls are needed (estimated cost ${cost.cost_usd:.2f}) and {API_KEY} is not set. "
                f"Set it, or have the requests in {path} answered elsewhere and use claude.backend: file.",
                cost,
            )
        reserved: dict[str, Decimal] = {}

        def admit(request: Request) -> Failure | None:
            amount = ceiling(request, self.prices)
            if not self.budget.reserve(amount):
                spent, cap = self.budget.spent_usd, self.budget.cap_usd
                detail = f"could cost ${amount:.4f}; of the cap of ${cap} ${spent:.4f} is spent and more is in flight"
                return Failure(request.key, FailureReason.OVER_BUDGET, detail)
            reserved[request.key] = amount
            return None

        def on_message(request: Request, message: dict[str, Any], request_id: str) -> None:
            spent = self.prices.cost(request.model, Usage.of(message))
            self.budget.settle(reserved.pop(request.key), spent)
            self.ledger.put(request, message, spent, "api", self._run_id, request_id)
            found[request.key] = outcome(request.key, message, spent, replayed=False)
            self._report(missing, found)

        def on_failure(request: Request, failure: Failure) -> None:
            if request.key in reserved:
                self.budget.settle(reserved.pop(request.key), Decimal(0))
            found[request.key] = failure
            self._report(missing, found)

        call_all(missing, self._settings, api_key, admit, on_message, on_failure)

    def _report(self, missing: list[Request], found: dict[str, Outcome]) -> None:
        done = [found[request.key] for request in missing if request.key in found]
        step = max(1, len(missing) // 20)
        if len(done) % step == 0 or len(done) == len(missing):
            failed = sum(isinstance(item, Failure) for item in done)
            self._on_progress(Progress(len(done), len(missing), failed, self.budget.spent_usd))

    def _write_outbox(self, requests: list[Request]) -> Path:
        path = self._outbox / f"{requests[0].task}.jsonl"
        write_requests(requests, path)
        return path

    def close(self) -> None:
        """Give the ledger's connections back."""
        self.ledger.close()


def _log_progress(progress: Progress) -> None:
    logging.getLogger(__name__).info(
        "%d of %d calls, %d failed, $%.4f", progress.done, progress.total, progress.failed, progress.spent_usd
    )


def _ledger_url(settings: Settings) -> str:
    url = sa.make_url(settings.claude.ledger)
    if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
        url = url.set(database=str(settings.path(url.database)))
    return url.render_as_string(hide_password=False)


def open_claude(settings: Settings, run_id: str = "", on_progress: Callable[[Progress], None] | None = None) -> Claude:
    """Return a Claude for one step of a run; raise ConfigError if a model's price is unknown."""
    return Claude(settings, run_id, on_progress)
