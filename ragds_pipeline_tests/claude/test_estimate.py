"""Estimates: that they say what they rest on, err on the side of caution, and follow discount, cache and count."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.claude.caching import plan_caching
from ragds_pipeline.claude.estimate import (
    COUNTED_REQUESTS,
    Estimate,
    ceiling,
    count_sample,
    estimate,
    prompt_tokens,
    text_tokens,
)  # fmt: skip
from ragds_pipeline.claude.forecast import forecast
from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.requests import Usage
from ragds_pipeline.config import ClaudeSettings
from ragds_pipeline_tests.claude.batch_driver import request, requests_of
from ragds_pipeline_tests.claude.test_caching import DOCUMENT, ask
from ragds_pipeline_tests.loopback import Fault, FaultPlan, LoopbackServer

PRICES = PriceTable({})


def test_an_estimate_adds_up() -> None:
    requests = [request("x" * 3000), request("y" * 6000)]
    found = estimate(requests, PRICES)
    assert found.calls == 2 and found.output_tokens == 2 * 400
    assert found.input_tokens == sum(prompt_tokens(r.params) for r in requests)
    assert found.cost_usd == PRICES.cost("claude-haiku-5-5", Usage(found.input_tokens, found.output_tokens))
    assert estimate([], PRICES).cost_usd == 0


def test_a_batch_is_half() -> None:
    requests = requests_of("q", 5)
    whole, half = estimate(requests, PRICES), estimate(requests, PRICES, batch=True)
    assert half.cost_usd == whole.cost_usd / 2 and "discount of batches" in half.basis


def test_what_is_cached_is_told_and_cheaper() -> None:
    requests = [ask(DOCUMENT, f"q{n}") for n in range(10)]
    plain, cached = estimate(requests, PRICES), estimate(requests, PRICES, caching=plan_caching(requests, "5m"))
    assert (plain.calls, plain.input_tokens) == (cached.calls, cached.input_tokens)
    assert plain.cached_tokens == 0 < cached.cached_tokens < cached.input_tokens
    assert cached.cost_usd < plain.cost_usd and "from the cache" in cached.basis


def test_counting_scales_the_rest_by_a_sample() -> None:
    requests = [request(f"{n} " + "word " * (10 + n)) for n in range(COUNTED_REQUESTS * 3)]
    with LoopbackServer() as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="key")
        ratios = count_sample(requests, client)
        real = sum(client.messages.count_tokens(model=r.model, messages=r.params["messages"]).input_tokens
                   for r in requests)  # fmt: skip
        assert len(server.requests) <= COUNTED_REQUESTS + len(requests) and server.calls == 0
    counted = estimate(requests, PRICES, counted=ratios)
    assert abs(counted.input_tokens - real) < real * 0.1
    assert "counted tokens" in counted.basis and "estimate" in counted.basis


@pytest.mark.parametrize("kind", ["not_found", "drop", "html_502"])
def test_what_cannot_be_counted_is_told_from_lengths(kind: Any) -> None:
    faults = FaultPlan(shares=[(Fault(kind), 1.0)], endpoints=["count_tokens"])
    with LoopbackServer(faults=faults) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="key", max_retries=0)
        assert count_sample(requests_of("q", 3), client) == {}
    assert "lengths" in estimate(requests_of("q", 3), PRICES, counted={}).basis


@given(st.text(max_size=200))
def test_a_text_has_at_least_one_token_for_four_characters(text: str) -> None:
    assert len(text) // 4 < text_tokens(text) <= len(text) * 1.2 + 1


def test_the_ceiling_holds_whatever_is_cached() -> None:
    one = ask(DOCUMENT, "q", max_tokens=1000)
    tokens = prompt_tokens(one.params)
    for batch, hour in ((False, 0), (True, tokens)):
        worst = PRICES.cost(one.model, Usage(0, 1000, tokens, 0, hour), batch)
        assert ceiling(one, PRICES, batch, caching=True) == worst > ceiling(one, PRICES, batch) > Decimal(0)


def test_a_forecast_follows_the_settings() -> None:
    requests = [ask(DOCUMENT, f"q{n}") for n in range(8)]
    with LoopbackServer() as server:

        def cost(key: str = "", **claude: Any) -> Estimate:
            return forecast(requests, ClaudeSettings.model_validate({"base_url": server.url, **claude}), PRICES, key)

        plain = cost(caching=False)
        assert cost().cost_usd < plain.cost_usd
        assert cost(backend="batch", caching=False).cost_usd == plain.cost_usd / 2
        assert not server.requests, "nothing is asked unless it is wanted"
        assert "counted" in cost(key="key", count_tokens=True).basis and server.requests
        assert "counted" not in cost(count_tokens=True).basis
