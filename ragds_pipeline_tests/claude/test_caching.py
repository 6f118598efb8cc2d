"""Marks for the prompt cache: where, when, and what the server makes of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.claude.caching import leader_first, plan_caching, with_breakpoints
from ragds_pipeline.claude.pricing import PriceTable
from ragds_pipeline.claude.requests import Request, Usage
from ragds_pipeline_tests.loopback import LoopbackServer

DOCUMENT = "A long document about travel expenses. " * 120
OTHER = "A long handbook of another department. " * 120
RUBRIC = "You judge questions by these rules. " * 120
MODEL = "claude-sonnet-5-5"


def ask(document: str, question: str, system: str = "Short.", model: str = MODEL, **params: Any) -> Request:
    blocks = [{"type": "text", "text": document}, {"type": "text", "text": question}]
    messages = [{"role": "user", "content": blocks}]
    body = {"model": model, "max_tokens": 400, "system": system, "messages": messages, **params}
    return Request("test", question, body, "p@1")


def marks(body: Any, path: str = "") -> list[str]:
    """Return the places of all marks in a body."""
    if isinstance(body, dict):
        here = [path] if "cache_control" in body else []
        return here + [place for key, value in body.items() for place in marks(value, f"{path}/{key}")]
    if isinstance(body, list):
        return [place for n, value in enumerate(body) for place in marks(value, f"{path}/{n}")]
    return []


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


def test_what_is_shared_is_marked_where_it_ends(server: LoopbackServer) -> None:
    requests = [ask(DOCUMENT, "q1"), ask(DOCUMENT, "q2"), ask(OTHER, "q3")]
    bodies = with_breakpoints(requests)
    assert [marks(body) for body in bodies] == [["/messages/0/content/0"]] * 2 + [[]]


def test_a_rubric_is_marked_where_the_documents_differ() -> None:
    bodies = with_breakpoints([ask(f"{n} {DOCUMENT}", "q", system=RUBRIC) for n in range(3)])
    assert [marks(body) for body in bodies] == [["/system/0"]] * 3


def test_the_longest_shared_beginning_is_marked() -> None:
    requests = [ask(DOCUMENT, "q1", RUBRIC), ask(DOCUMENT, "q2", RUBRIC), ask(OTHER, "q3", RUBRIC)]
    # Only one shares no more than the rubric: a mark of its own would be written and read by nobody.
    assert [marks(b) for b in with_breakpoints(requests)] == [["/messages/0/content/0"]] * 2 + [["/system/0"]]


@pytest.mark.parametrize(
    "requests",
    [
        [ask(DOCUMENT, "q1")],
        [ask("Too short to be cached.", "q1"), ask("Too short to be cached.", "q2")],
        [ask(DOCUMENT, "q1"), ask(DOCUMENT, "q2", model="claude-haiku-5-5")],
        [ask(DOCUMENT, "q1"), ask(DOCUMENT, "q2", output_config={"effort": "low"})],
        [ask(DOCUMENT, "q1", model="claude-opus-4-6"), ask(DOCUMENT, "q2", model="claude-opus-4-6")],
    ],
    ids=["one", "short", "models", "effort", "minimum"],
)
def test_nothing_is_marked_where_nothing_could_be_read(requests: list[Request]) -> None:
    assert with_breakpoints(requests) == [dict(r.params) for r in requests]


def test_own_marks_are_left_alone() -> None:
    block = {"type": "text", "text": DOCUMENT, "cache_control": {"type": "ephemeral"}}
    own = [
        Request("t", "i", {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}, "p", n)
        for n in range(3)
    ]
    assert with_breakpoints(own) == [dict(r.params) for r in own]


def test_a_prompt_as_plain_text_can_be_marked(server: LoopbackServer) -> None:
    params = {"model": MODEL, "max_tokens": 400, "messages": [{"role": "user", "content": DOCUMENT}]}
    votes = [Request("t", "i", params, "p@1", attempt=n) for n in range(3)]
    for body in with_breakpoints(votes):
        assert body["messages"][0]["content"][0]["text"] == DOCUMENT
        anthropic.Anthropic(base_url=server.url, api_key="key").messages.create(**body)
    assert server.usage[MODEL].cache_read_input_tokens > server.usage[MODEL].cache_creation_input_tokens > 0


TEXTS = st.sampled_from([DOCUMENT, OTHER, "short"])


@given(st.lists(st.tuples(TEXTS, st.text(min_size=1, max_size=5), st.sampled_from([RUBRIC, "x"])), max_size=9))
def test_keys_and_parameters_know_nothing_of_marks(parts: list[tuple[str, str, str]]) -> None:
    requests = [ask(document, question, system) for document, question, system in parts]
    before = [(copy.deepcopy(r.params), Request("a", "b", copy.deepcopy(dict(r.params)), "c").key) for r in requests]
    plan = plan_caching(requests, "5m")
    first, rest = leader_first(requests, plan)
    assert sorted(map(id, first + rest)) == sorted(map(id, requests))
    for request, (params, key) in zip(requests, before, strict=True):
        body = plan.body(request)
        assert (request.params, request.key) == (params, key)
        assert len(marks(body)) <= 1
        assert _unmarked(body) == _unmarked(dict(params))


def _unmarked(body: Any) -> Any:
    """Return a body without marks, with texts as blocks: what the model is shown."""
    if isinstance(body, dict):
        out = {key: _unmarked(value) for key, value in body.items() if key != "cache_control"}
        for key in ("system", "content"):
            if isinstance(out.get(key), str):
                out[key] = [{"type": "text", "text": out[key]}]
        return out
    return [_unmarked(value) for value in body] if isinstance(body, list) else body


def test_one_call_a_beginning_comes_before_the_fan_out(server: LoopbackServer) -> None:
    requests = [ask(document, f"q{n}") for n in range(5) for document in (DOCUMENT, OTHER)] + [ask("x", "alone")]
    plan = plan_caching(requests, "5m")
    first, rest = leader_first(requests, plan)
    assert [r.item for r in first] == ["q0", "q0", "alone"] and len(rest) == 8
    client = anthropic.Anthropic(base_url=server.url, api_key="key")
    prices, cost = PriceTable({}), Decimal(0)
    for request in first + rest:
        message = client.messages.create(**plan.body(request))
        usage = Usage.of(message.model_dump())
        cost += prices.cost(MODEL, replace(usage, output_tokens=0))
        assert (usage.cache_creation_input_tokens > 0) == (request in first[:2])
        assert (usage.cache_read_input_tokens > 0) == (request in rest)
    total = server.usage[MODEL]
    everything = total.input_tokens + total.cache_creation_input_tokens + total.cache_read_input_tokens
    assert cost < prices.cost(MODEL, Usage(everything)) / 2


def test_in_a_batch_marks_last_an_hour_and_need_more_sharers(server: LoopbackServer) -> None:
    assert not plan_caching([ask(DOCUMENT, f"q{n}") for n in range(3)], "1h").prefixes
    (body, *_) = with_breakpoints([ask(DOCUMENT, f"q{n}") for n in range(4)], "1h")
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    message = anthropic.Anthropic(base_url=server.url, api_key="key").messages.create(**body)
    usage = Usage.of(message.model_dump())
    assert usage.cache_creation_1h_input_tokens == usage.cache_creation_input_tokens > 0
