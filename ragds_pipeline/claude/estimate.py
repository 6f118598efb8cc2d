"""What requests would cost: from their lengths, or from counting the tokens of a sample of them.

These are estimates and are called so wherever they are shown; the cap on spending does not rest on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.requests import Request, Usage

if TYPE_CHECKING:
    import anthropic

    from ragds_pipeline.claude.caching import CachePlan

CHARS_PER_TOKEN = 3.0
"""Characters of Latin script in a token: the current tokenizers make about 30 % more tokens of a text than earlier
ones, which were near 4. Erring low makes the estimate err high."""

TOKENS_PER_WIDE_CHAR = 1.2
"""Tokens for a character of a script without spaces (Japanese, Chinese, Korean)."""

EXPECTED_OUTPUT_TOKENS = 2_500
"""Reply with thinking, for the estimate only; the budget reserves the whole of ``max_tokens``."""

COUNTED_REQUESTS = 40
"""Requests of one model that are counted; the others are scaled by what these come to."""

_PROMPT = ("system", "messages", "tools", "output_config")
_COUNTED = frozenset({"model", "thinking", "tool_choice", *_PROMPT})


def text_tokens(text: str) -> int:
    """Return roughly how many tokens ``text`` has, leaning to too many."""
    wide = sum(1 for char in text if char >= "\u2e80")
    return int((len(text) - wide) / CHARS_PER_TOKEN + wide * TOKENS_PER_WIDE_CHAR) + 1


def prompt_tokens(params: Mapping[str, Any]) -> int:
    """Return roughly how many input tokens a request body has."""
    shown = {k: v for k, v in params.items() if k in _PROMPT}
    return text_tokens(json.dumps(shown, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Number of calls with their estimated tokens and cost."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal
    cached_tokens: int = 0
    """The part of ``input_tokens`` that is expected to be read from the prompt cache."""
    basis: str = "estimate from the lengths of the prompts"
    """What it rests on, for whoever reads it."""


def estimate(
    requests: Iterable[Request],
    prices: PriceTable,
    batch: bool = False,
    caching: CachePlan | None = None,
    counted: Mapping[str, float] | None = None,
    output_tokens: int | None = None,
) -> Estimate:
    """Return what the requests would cost.

    Args:
        requests: Those that would be sent.
        prices: The price table.
        batch: With the discount of a batch.
        caching: The marks that would be set; of each shared beginning, the first request writes it and the others
            read it, which is the best case. Without it nothing is taken to be cached.
        counted: By model, the ratio of counted tokens to those told from lengths (``count_sample``).
        output_tokens: What a reply is taken to have, thinking included; ``EXPECTED_OUTPUT_TOKENS`` by default.
    """
    asked = list(requests)
    seen: set[str] = set()
    prompt_sum = reply_sum = cached = 0
    cost = Decimal(0)
    for request in asked:
        ratio = (counted or {}).get(request.model, 1.0)
        usage = _usage(request, caching, seen, ratio, output_tokens or EXPECTED_OUTPUT_TOKENS)
        prompt_sum += usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        cached += usage.cache_read_input_tokens
        reply_sum += usage.output_tokens
        cost += prices.cost(request.model, usage, batch)
    return Estimate(len(asked), prompt_sum, reply_sum, cost, cached, _basis(batch, caching, counted))


def count_sample(requests: Sequence[Request], client: anthropic.Anthropic) -> dict[str, float]:
    """Count the tokens of some requests of each model, spread over all, and return how they compare to their lengths.

    Counting is free, but one call a request; so much of a large run is counted that the rest can be scaled by it. A
    model for which nothing could be counted is left out.
    """
    by_model: dict[str, list[Request]] = {}
    for request in requests:
        by_model.setdefault(request.model, []).append(request)
    ratios: dict[str, float] = {}
    for model, asked in by_model.items():
        step = max(1, -(-len(asked) // COUNTED_REQUESTS))
        counted = told = 0
        for request in asked[::step]:
            tokens = _count(client, request)
            if tokens is not None:
                counted += tokens
                told += prompt_tokens(request.params)
        if told:
            ratios[model] = counted / told
    return ratios


def ceiling(request: Request, prices: PriceTable, batch: bool = False, caching: bool = False) -> Decimal:
    """Return the most that a request can cost: its prompt and the whole of ``max_tokens``.

    Args:
        request: What is asked.
        prices: The price table.
        batch: As part of a batch, where a cache write is kept for an hour.
        caching: With its whole prompt written to the cache, which is dearer than plain input.
    """
    prompt = prompt_tokens(request.params)
    written = prompt if caching else 0
    usage = Usage(prompt - written, int(request.params["max_tokens"]), written, 0, written if batch else 0)
    return prices.cost(request.model, usage, batch)


def _count(client: anthropic.Anthropic, request: Request) -> int | None:
    import anthropic
    import httpx2

    body: dict[str, Any] = {name: value for name, value in request.params.items() if name in _COUNTED}
    try:
        tokens = client.messages.count_tokens(**body).input_tokens
    except (anthropic.APIError, httpx2.HTTPError, AttributeError):
        return None  # an estimate is no reason to stop
    return tokens if isinstance(tokens, int) else None


def _usage(request: Request, caching: CachePlan | None, seen: set[str], ratio: float, reply: int) -> Usage:
    prompt = int(prompt_tokens(request.params) * ratio)
    output = min(reply, int(request.params.get("max_tokens", reply)))
    prefix = caching.prefixes.get(request.key) if caching is not None else None
    if caching is None or prefix is None:
        return Usage(prompt, output)
    shared = min(int(prefix.tokens * ratio), prompt)
    if prefix.id in seen:
        return Usage(prompt - shared, output, 0, shared)
    seen.add(prefix.id)
    return Usage(prompt - shared, output, shared, 0, shared if caching.ttl == "1h" else 0)


def _basis(batch: bool, caching: CachePlan | None, counted: Mapping[str, float] | None) -> str:
    parts = ["estimate from counted tokens" if counted else "estimate from the lengths of the prompts"]
    if batch:
        parts.append("with the discount of batches")
    if caching is not None and caching.prefixes:
        parts.append("with shared beginnings read from the cache")
    return ", ".join(parts)
