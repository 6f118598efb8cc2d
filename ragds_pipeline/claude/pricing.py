"""Prices of the models, with their date and source, and what a call costs.

An unknown price stops a run at its start, with the line to add: a cost that is silently zero is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from ragds_pipeline.claude.requests import Usage
from ragds_pipeline.config import ConfigError, Price

PRICES_AS_OF = "2026-11-30"
PRICES_SOURCE = "Anthropic's model documentation"

_CACHE_WRITE_5M = Decimal("1.25")
_CACHE_WRITE_1H = Decimal(2)
"""What a cache write costs, as a multiple of plain input, by how long it is kept."""

_BATCH = Decimal("0.5")
"""A batch costs half of everything, cache writes and reads included."""

_MILLION = Decimal(1_000_000)


def _price(input_: str, output: str, cache_read: str) -> Price:
    return Price(input=Decimal(input_), output=Decimal(output), cache_read=Decimal(cache_read))


PRICES: dict[str, Price] = {
    "claude-fable-5-1": _price("10", "50", "0.25"),
    "claude-opus-5-5": _price("4", "20", "0.20"),
    "claude-sonnet-5-5": _price("2", "10", "0.10"),
    "claude-haiku-5-5": _price("0.10", "0.50", "0.01"),
    "claude-opus-5": _price("5", "25", "0.50"),
    "claude-opus-4-8": _price("5", "25", "0.50"),
    "claude-opus-4-7": _price("5", "25", "0.50"),
    "claude-opus-4-6": _price("5", "25", "0.50"),
    "claude-sonnet-5": _price("2", "10", "0.20"),
    "claude-sonnet-4-6": _price("3", "15", "0.30"),
    "claude-haiku-4-5": _price("1", "5", "0.10"),
}
"""USD per million tokens. Prompts of more than 100,000 tokens cost five times as much on Haiku 5.5."""

_LONG_PROMPT = {"claude-haiku-5-5": (100_000, _price("0.50", "2.50", "0.05"))}


class PriceTable:
    """The dated table with a project's own prices laid over it."""

    def __init__(self, overrides: Mapping[str, Price]) -> None:
        self._overrides = dict(overrides)

    def of(self, model: str, prompt_tokens: int = 0) -> Price:
        """Return a model's price; raise ConfigError, with the line to add, where it is unknown."""
        if model in self._overrides:
            return self._overrides[model]
        if model in _LONG_PROMPT and prompt_tokens > _LONG_PROMPT[model][0]:
            return _LONG_PROMPT[model][1]
        if model not in PRICES:
            raise ConfigError(
                f"the price of {model} is not known (table of {PRICES_AS_OF}). Add to ragds.yaml:\n"
                f"  claude:\n    prices:\n      {model}: {{input: <USD per million tokens>, output: <USD>}}"
            )
        return PRICES[model]

    def cost(self, model: str, usage: Usage, batch: bool = False) -> Decimal:
        """Return what a call with this usage costs, in USD; as part of a batch if ``batch``."""
        prompt = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        price = self.of(model, prompt)
        read = price.cache_read if price.cache_read is not None else price.input / 10
        hour = min(usage.cache_creation_1h_input_tokens, usage.cache_creation_input_tokens)
        total = (
            price.input * usage.input_tokens
            + price.input * _CACHE_WRITE_5M * (usage.cache_creation_input_tokens - hour)
            + price.input * _CACHE_WRITE_1H * hour
            + read * usage.cache_read_input_tokens
            + price.output * usage.output_tokens
        )
        return total / _MILLION * (_BATCH if batch else 1)
