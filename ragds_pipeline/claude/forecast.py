"""What requests would cost with a project's settings: its backend, its caching, its way of counting."""

from __future__ import annotations

from collections.abc import Sequence

from ragds_pipeline.claude.caching import plan_caching
from ragds_pipeline.claude.estimate import Estimate, count_sample, estimate
from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.requests import Request
from ragds_pipeline.config import ClaudeSettings

_COUNT_TIMEOUT_S = 30.0


def forecast(
    requests: Sequence[Request],
    settings: ClaudeSettings,
    prices: PriceTable,
    api_key: str = "",
    output_tokens: int | None = None,
) -> Estimate:
    """Return what the requests would cost if they were sent now, all of them.

    Args:
        requests: Those that are not in the ledger.
        settings: Backend and caching decide the price; ``count_tokens`` whether a sample is counted.
        prices: The price table.
        api_key: Needed for counting only; without one, tokens are told from lengths.
        output_tokens: What a reply is taken to have; a general guess by default.
    """
    batch = settings.backend == "batch"
    caching = plan_caching(requests, "1h" if batch else "5m") if settings.caching else None
    counted: dict[str, float] = {}
    if settings.count_tokens and api_key and settings.backend != "file" and requests:
        import anthropic  # only where something is sent: it takes seconds to load

        with anthropic.Anthropic(
            api_key=api_key, base_url=settings.base_url, max_retries=1, timeout=_COUNT_TIMEOUT_S
        ) as client:
            counted = count_sample(requests, client)
    return estimate(requests, prices, batch, caching, counted, output_tokens)
