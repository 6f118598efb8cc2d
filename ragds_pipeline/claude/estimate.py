"""What requests would cost, told without a network. These are estimates and are called so wherever they are shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.requests import Request, Usage

CHARS_PER_TOKEN = 3.0
"""Characters of Latin script in a token: the current tokenizers make about 30 % more tokens of a text than earlier
ones, which were near 4. Erring low makes the estimate err high."""

TOKENS_PER_WIDE_CHAR = 1.2
"""Tokens for a character of a script without spaces (Japanese, Chinese, Korean)."""

EXPECTED_OUTPUT_TOKENS = 2_500
"""Reply with thinking, for the estimate only; the budget reserves the whole of ``max_tokens``."""


def text_tokens(text: str) -> int:
    """Return roughly how many tokens ``text`` has, leaning to too many."""
    wide = sum(1 for char in text if char >= "\u2e80")
    return int((len(text) - wide) / CHARS_PER_TOKEN + wide * TOKENS_PER_WIDE_CHAR) + 1


def prompt_tokens(params: Mapping[str, Any]) -> int:
    """Return roughly how many input tokens a request body has."""
    shown = {k: v for k, v in params.items() if k in ("system", "messages", "tools", "output_config")}
    return text_tokens(json.dumps(shown, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Number of calls with their estimated tokens and cost."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal


def estimate(requests: Iterable[Request], prices: PriceTable) -> Estimate:
    """Return what the requests would cost at list price, without caching or batch discount."""
    calls = input_tokens = output_tokens = 0
    cost = Decimal(0)
    for request in requests:
        expected = min(EXPECTED_OUTPUT_TOKENS, int(request.params.get("max_tokens", EXPECTED_OUTPUT_TOKENS)))
        usage = Usage(prompt_tokens(request.params), expected)
        calls += 1
        input_tokens += usage.input_tokens
        output_tokens += usage.output_tokens
        cost += prices.cost(request.model, usage)
    return Estimate(calls, input_tokens, output_tokens, cost)


def ceiling(request: Request, prices: PriceTable) -> Decimal:
    """Return the most that a request can cost: its prompt and the whole of ``max_tokens``."""
    usage = Usage(prompt_tokens(request.params), int(request.params["max_tokens"]))
    return prices.cost(request.model, usage)
