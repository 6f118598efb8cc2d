"""What a call costs: by hand, for each kind of token."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from ragds_pipeline.claude.pricing import PRICES, PriceTable
from ragds_pipeline.claude.requests import Usage
from ragds_pipeline.config import ConfigError, Price

PRICE_TABLE = PriceTable({})


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        ({"input_tokens": 1_000_000}, "2"),
        ({"output_tokens": 1_000_000}, "10"),
        ({"cache_read_input_tokens": 1_000_000}, "0.10"),
        ({"cache_creation_input_tokens": 1_000_000}, "2.5"),
        (
            {
                "cache_creation_input_tokens": 1_000_000,
                "cache_creation": {"ephemeral_5m_input_tokens": 400_000, "ephemeral_1h_input_tokens": 600_000},
            },
            "3.4",
        ),
    ],
)
def test_each_kind_of_token_has_its_price(usage: dict[str, Any], usd: str) -> None:
    counted = Usage.of({"usage": usage})
    assert PRICE_TABLE.cost("claude-sonnet-5-5", counted) == Decimal(usd)
    assert PRICE_TABLE.cost("claude-sonnet-5-5", counted, batch=True) == Decimal(usd) / 2


def test_a_long_prompt_costs_more_where_the_table_says_so() -> None:
    short, long = Usage(100_000), Usage(90_000, 0, 0, 10_001)
    assert PRICE_TABLE.cost("claude-haiku-5-5", short) == Decimal("0.01")
    assert PRICE_TABLE.cost("claude-haiku-5-5", long) == Decimal("0.04550005")


def test_an_own_price_replaces_the_table() -> None:
    own = PriceTable({"claude-haiku-5-5": Price(input=Decimal(1), output=Decimal(2))})
    assert own.cost("claude-haiku-5-5", Usage(1_000_000, 1_000_000, 0, 1_000_000)) == Decimal("3.1")


def test_an_unknown_price_is_an_error_with_the_line_to_add() -> None:
    with pytest.raises(ConfigError, match=r"claude-new-1: \{input: <USD"):
        PRICE_TABLE.cost("claude-new-1", Usage())


def test_every_price_is_whole() -> None:
    for price in PRICES.values():
        assert price.cache_read is not None and 0 < price.cache_read < price.input < price.output
