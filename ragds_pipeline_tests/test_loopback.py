"""The loopback server driven by the real SDK: if the SDK is content with it, the pipeline's tests mean
something.

No test here asserts a time; waits are driven by `retry-after-ms` and kept to milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pydantic
import pytest

from ragds_pipeline_tests.loopback import (
    MALFORMED_SHAPES,
    Answer,
    BatchPlan,
    Cite,
    Fault,
    FaultPlan,
    LoopbackServer,
    Part,
    Script,
    Task,
    ToolUse,
    body_hash,
    malform,
    tokens_of,
)

MODEL = "claude-haiku-5-5"
SONNET = "claude-sonnet-5-5"
OLD = "claude-haiku-4-5"
HELLO: list[Any] = [{"role": "user", "content": "hello"}]


class Verdict(pydantic.BaseModel):
    """A structured answer as a judge would give it."""

    rationale: str
    verdict: str
    score: int


VERDICT = {"rationale": "short", "verdict": "yes", "score": 3}
VERDICT_FORMAT: Any = {"format": {"type": "json_schema", "schema": anthropic.transform_schema(Verdict)}}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ANTHROPIC_") or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


def client_of(server: LoopbackServer, retries: int = 0, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="test-key", max_retries=retries, **options)


def say(client: anthropic.Anthropic, **changes: Any) -> anthropic.types.Message:
    request: dict[str, Any] = {"model": MODEL, "max_tokens": 500, "messages": HELLO, **changes}
    message: anthropic.types.Message = client.messages.create(**request)
    return message


def text_of(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


# Messages


def test_a_message_leads_with_thinking_and_accounts_for_every_token(server: LoopbackServer) -> None:
    message = say(client_of(server), system="Be brief.")
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert text_of(message) == "hello" and message.stop_reason == "end_turn"
    thinking = tokens_of("Considering the request.")
    assert message.usage.input_tokens == tokens_of("Be brief.") + tokens_of("hello")
    assert message.usage.output_tokens == thinking + tokens_of("hello")
    assert message.usage.output_tokens_details and message.usage.output_tokens_details.thinking_tokens == thinking
    total = server.usage[MODEL]
    assert (total.messages, total.output_tokens) == (1, message.usage.output_tokens)
    assert server.calls == 1 and server.problems == []


def test_requests_are_recorded_without_the_key(server: LoopbackServer) -> None:
    say(client_of(server))
    (record,) = server.requests
    assert (record.method, record.path, record.status, record.attempt) == ("POST", "/v1/messages", 200, 1)
    assert record.headers["anthropic-version"] == "2026-10-21"
    assert "test-key" not in json.dumps(record.headers)
    assert server.paid == {body_hash(record.body): 1} == {record.hash: 1}


def test_strict_validation_accepts_every_shape() -> None:
    def responder(body: dict[str, Any]) -> Answer:
        if "tools" in body:
            return Answer(text="looking", tool_uses=[ToolUse("look", {"q": "x"})])
        return Answer(text="fine")

    with LoopbackServer(responder, batches=BatchPlan(polls=0)) as server:
        client = client_of(server, _strict_response_validation=True)
        say(client)
        say(client, tools=[{"name": "look", "input_schema": {"type": "object"}}])
        with client.messages.stream(model=MODEL, max_tokens=50, messages=HELLO) as stream:
            assert stream.get_final_text() == "fine"
        client.messages.count_tokens(model=MODEL, messages=HELLO)
        client.models.list()
        client.models.retrieve(MODEL)
        batch = client.messages.batches.create(
            requests=[{"custom_id": "a", "params": {"model": MODEL, "max_tokens": 9, "messages": HELLO}}]
        )
        client.messages.batches.list()
        assert [line.result.type for line in client.messages.batches.results(batch.id)] == ["succeeded"]
        server.faults = [Fault("refusal", category="bio")]
        assert say(client).stop_reason == "refusal"


def test_streaming_gives_the_same_message(server: LoopbackServer) -> None:
    server.responder = lambda _body: Answer(text="word " * 40, tool_uses=[ToolUse("look", {"q": "ä" * 40})])
    client = client_of(server)
    tools: Any = [{"name": "look", "input_schema": {"type": "object"}}]
    plain = say(client, tools=tools)
    with client.messages.stream(model=MODEL, max_tokens=500, messages=HELLO, tools=tools) as stream:
        deltas = list(stream.text_stream)
        streamed = stream.get_final_message()
    assert len(deltas) > 3 and "".join(deltas) == text_of(plain)
    assert streamed.stop_reason == plain.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == plain.usage.output_tokens
    assert [b.type for b in streamed.content] == [b.type for b in plain.content]
    assert list(server.paid.values()) == [2], "streamed and plain are the same request"


def test_async_client_runs_requests_side_by_side() -> None:
    messages: list[list[Any]] = [[{"role": "user", "content": f"n{i}"}] for i in range(64)]

    async def ask(url: str) -> None:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
            answers = await asyncio.gather(
                *(client.messages.create(model=MODEL, max_tokens=99, messages=m) for m in messages)
            )
            assert [text_of(a) for a in answers] == [f"n{i}" for i in range(64)]
            async with client.messages.stream(model=MODEL, max_tokens=99, messages=HELLO) as stream:
                assert await stream.get_final_text() == "hello"

    with LoopbackServer(latency=0.05) as server:
        asyncio.run(ask(server.url))
        assert server.calls == 65 and server.most_concurrent > 8
        assert set(server.paid.values()) == {1}


def test_max_tokens_cuts_the_text_and_can_leave_only_thinking(server: LoopbackServer) -> None:
    server.responder = lambda _body: "x" * 400
    cut = say(client_of(server), max_tokens=30)
    assert cut.stop_reason == "max_tokens" and 0 < len(text_of(cut)) < 400 and cut.usage.output_tokens == 30
    bare = say(client_of(server), max_tokens=3)
    assert [block.type for block in bare.content] == ["thinking"] and bare.stop_reason == "max_tokens"
    warm = say(client_of(server), max_tokens=0)
    assert warm.content == []


def test_stop_sequences_and_thinking_off(server: LoopbackServer) -> None:
    server.responder = lambda _body: "one END two"
    message = say(client_of(server), stop_sequences=["END"], thinking={"type": "disabled"})
    assert (text_of(message), message.stop_reason, message.stop_sequence) == ("one ", "stop_sequence", "END")
    assert [block.type for block in message.content] == ["text"]


def test_script_dispatches_by_task_and_names_what_it_does_not_know(server: LoopbackServer) -> None:
    script = Script([("judge", lambda _b: VERDICT), Task.when_text("chunk 7", lambda _b: "seven")])
    server.responder = script
    client = client_of(server)
    assert json.loads(text_of(say(client, system="You judge answers."))) == VERDICT
    assert text_of(say(client, messages=[{"role": "user", "content": "chunk 7"}])) == "seven"
    with pytest.raises(anthropic.InternalServerError, match="no task of the script"):
        say(anthropic.Anthropic(base_url=server.url, api_key="k"), system="other")
    assert len(server.problems) == 1, "not retried"
    script.default = lambda _b: "default"
    assert text_of(say(client, system="other")) == "default"


# Structured output, tools, citations, cache, counting, models


def test_parse_validates_a_pydantic_model(server: LoopbackServer) -> None:
    client = client_of(server)
    echoed = client.messages.parse(model=MODEL, max_tokens=500, messages=HELLO, output_format=Verdict)
    assert isinstance(echoed.parsed_output, Verdict), "the echo fits the schema by itself"
    server.responder = lambda _body: VERDICT
    scripted = client.messages.parse(model=MODEL, max_tokens=500, messages=HELLO, output_format=Verdict)
    assert scripted.parsed_output == Verdict.model_validate(VERDICT)


def test_tool_loop_by_hand() -> None:
    def responder(body: dict[str, Any]) -> Answer | str:
        last = body["messages"][-1]["content"]
        if isinstance(last, list) and last[0]["type"] == "tool_result":
            return f"found {last[0]['content']}"
        return Answer(tool_uses=[ToolUse("search_kb", {"pattern": "x"})])

    tools: Any = [{"name": "search_kb", "input_schema": {"type": "object", "properties": {}}}]
    with LoopbackServer(responder) as server:
        client = client_of(server)
        first = say(client, tools=tools)
        (use,) = [block for block in first.content if block.type == "tool_use"]
        assert first.stop_reason == "tool_use" and use.input == {"pattern": "x"}
        result: Any = {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "7"}],
        }
        second = say(client, tools=tools, messages=[*HELLO, first.to_param(), result])
        assert text_of(second) == "found 7"
        with pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks"):
            say(client, tools=tools, messages=[*HELLO, first.to_param(), {"role": "user", "content": "no"}])


def test_tool_runner_falls_back_from_threads() -> None:
    @anthropic.beta_tool
    def search_kb(pattern: str) -> str:
        """Searches.

        Args:
            pattern: What for.
        """
        return f"hit for {pattern}"

    def responder(body: dict[str, Any]) -> Answer | str:
        return "done" if len(body["messages"]) > 1 else Answer(tool_uses=[ToolUse("search_kb", {"pattern": "x"})])

    with LoopbackServer(responder) as server:
        runner = client_of(server).beta.messages.tool_runner(
            model=MODEL, max_tokens=300, tools=[search_kb], messages=HELLO
        )
        final = runner.until_done()
        assert [block.type for block in final.content][-1] == "text"
        assert [r.status for r in server.requests] == [400, 200, 200]


def test_citations_point_at_the_words(server: LoopbackServer) -> None:
    text = "Zürich lies by a lake. Bern is the seat of government."
    content: Any = [
        {
            "type": "document",
            "title": "Towns",
            "source": {"type": "text", "media_type": "text/plain", "data": text},
            "citations": {"enabled": True},
        },
        {
            "type": "search_result",
            "source": "kb://d#1",
            "title": "Chunk",
            "content": [{"type": "text", "text": "Basel lies by the Rhine."}],
            "citations": {"enabled": True},
        },
        {"type": "text", "text": "Where?"},
    ]
    quote = "Bern is the seat of government."
    server.responder = lambda _body: Answer(
        parts=[Part("Bern.", [Cite(quote)]), Part(" Basel.", [Cite("Basel", search_result=0)]), Part(" So.")]
    )
    client = client_of(server)
    message = say(client, messages=[{"role": "user", "content": content}])
    blocks = [block for block in message.content if block.type == "text"]
    found = (blocks[0].citations or [])[0]
    assert found.type == "char_location" and text[found.start_char_index : found.end_char_index] == quote
    other = (blocks[1].citations or [])[0]
    assert other.type == "search_result_location" and other.source == "kb://d#1" and blocks[2].citations is None
    with client.messages.stream(model=MODEL, max_tokens=500, messages=[{"role": "user", "content": content}]) as stream:
        streamed = stream.get_final_message()
    assert [b.to_dict() for b in streamed.content][1]["citations"] == [found.to_dict()]
    with pytest.raises(anthropic.BadRequestError, match="citations"):
        say(client, messages=[{"role": "user", "content": content}], output_config=VERDICT_FORMAT)
    content[1]["citations"] = {"enabled": False}
    with pytest.raises(anthropic.BadRequestError, match="all documents or none"):
        say(client, messages=[{"role": "user", "content": content}])


def test_cache_is_created_once_and_read_afterwards(server: LoopbackServer) -> None:
    client = client_of(server)
    prompt = "p" * 4000

    def ask(question: str, text: str = prompt, ttl: str = "1h") -> anthropic.types.Usage:
        system = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}}]
        return say(client, system=system, messages=[{"role": "user", "content": question}]).usage

    first, second, short = ask("a"), ask("b"), ask("c", "short")
    assert (first.cache_creation_input_tokens, first.cache_read_input_tokens) == (1001, 0)
    assert first.cache_creation and first.cache_creation.ephemeral_1h_input_tokens == 1001
    assert (second.cache_creation_input_tokens, second.cache_read_input_tokens) == (0, 1001)
    assert first.input_tokens == second.input_tokens == tokens_of("a")
    assert (short.cache_creation_input_tokens, short.cache_read_input_tokens) == (0, 0)


def test_count_tokens_is_what_the_call_then_costs(server: LoopbackServer) -> None:
    client = client_of(server)
    tools: Any = [{"name": "look", "input_schema": {"type": "object"}}]
    counted = client.messages.count_tokens(model=MODEL, messages=HELLO, tools=tools, output_config=VERDICT_FORMAT)
    assert counted.input_tokens == say(client, tools=tools, output_config=VERDICT_FORMAT).usage.input_tokens
    assert server.calls == 1, "counting is not a call"


def test_models_tell_their_capabilities(server: LoopbackServer) -> None:
    client = client_of(server)
    info = client.models.retrieve(SONNET)
    assert info.lifecycle == "active" and info.max_tokens == 128_000 and info.capabilities is not None
    assert info.capabilities.structured_outputs.supported and info.capabilities.citations.supported
    types = info.capabilities.thinking.types
    assert types.between_tools.supported and not types.disabled.supported and not types.enabled.supported
    assert info.capabilities.effort.supported and info.capabilities.effort.high.supported
    assert {model.id for model in client.models.list(limit=3)} >= {MODEL, SONNET, OLD}, "pages on by itself"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-nonesuch")


# Rejections

OPEN_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
RECURSIVE: dict[str, Any] = {
    "$ref": "#/$defs/N",
    "$defs": {
        "N": {
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/N"}},
            "required": [],
            "additionalProperties": False,
        }
    },
}
TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]


def formatted(schema: Any) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra_body": {"temperature": 1.0}}, "temperature: Extra inputs"),
        ({"extra_body": {"top_p": 0.9}}, "top_p: Extra inputs"),
        (
            {"extra_body": {"temperature": 0}, "extra_headers": {"anthropic-version": "2023-06-01"}},
            "deprecated",
        ),
        ({"extra_body": {"nonsense": 1}}, "nonsense: Extra inputs"),
        ({"extra_body": {"max_tokens": None}}, "max_tokens: Input should be"),
        ({"max_tokens": 200_000, "timeout": 5}, "maximum allowed number"),
        ({"messages": []}, "at least one message"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "{"}]}, "prefill"),
        ({"messages": [{"role": "user", "content": ""}]}, "non-empty"),
        ({"messages": [{"role": "assistant", "content": "x"}, *HELLO]}, "first message"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
        ({"model": SONNET, "tools": TOOLS, "tool_choice": {"type": "any"}}, "not supported for this model"),
        (
            {"model": SONNET, "tools": TOOLS, "tool_choice": {"type": "tool", "name": "look"}},
            "not supported for this model",
        ),
        ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "other"}}, "not found"),
        ({"tools": TOOLS * 2}, "unique"),
        ({"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}, "pattern"),
        (formatted(OPEN_SCHEMA), "additionalProperties"),
        (formatted({"type": "array", "items": OPEN_SCHEMA}), "additionalProperties"),
        (formatted({"type": "integer", "minimum": 1}), "minimum"),
        (formatted(RECURSIVE), "recursive"),
        ({"model": SONNET, "thinking": {"type": "disabled"}}, "thinking.type"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking.type"),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}}, "thinking off"),
        ({"output_config": {"effort": "huge"}}, "effort"),
        ({"cache_control": {"type": "ephemeral", "ttl": "9h"}}, "ttl"),
    ],
)
def test_rejects_what_the_api_rejects(server: LoopbackServer, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=message) as caught:
        say(client_of(server), **changes)
    assert caught.value.type == "invalid_request_error" and caught.value.request_id
    assert server.calls == 0 and server.paid == {}


def test_old_models_take_what_new_ones_refuse(server: LoopbackServer) -> None:
    old = {"anthropic-version": "2023-06-01"}
    client = client_of(server)
    say(client, model=OLD, extra_body={"temperature": 0}, extra_headers=old)
    say(client, model=OLD, messages=[*HELLO, {"role": "assistant", "content": "{"}])
    say(client, tools=TOOLS, tool_choice={"type": "any"})


def test_rejects_bad_envelopes(server: LoopbackServer) -> None:
    good = {"model": MODEL, "max_tokens": 9, "messages": HELLO}
    version, bearer = {"anthropic-version": "2026-10-21"}, {"authorization": "Bearer k"}

    def post(headers: dict[str, str], body: Any) -> tuple[int, str]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = httpx2.post(f"{server.url}/v1/messages", headers=headers, content=raw)
        return answer.status_code, answer.json().get("error", {}).get("message", "")

    assert post({**version, **bearer}, good)[0] == 200
    assert post(version, good)[0] == 401
    assert post({**version, "x-api-key": "k"}, good)[0] == 401
    assert post(bearer, good) == (400, "anthropic-version: header is required")
    assert post({**version, **bearer}, b"{not json")[0] == 400
    assert post({**version, **bearer}, b"[]")[0] == 400
    without = {key: value for key, value in good.items() if key != "max_tokens"}
    assert post({**version, **bearer}, without) == (400, "max_tokens: Field required")
    assert post({**version, **bearer}, {**good, "model": "gpt-5"})[0] == 404
    for key in ("messages", "tools", "system", "thinking", "output_config", "tool_choice", "max_tokens"):
        for wrong in (7, "x", [7], [None], {"a": 1}, [{"role": "user", "content": [7]}]):
            status, _ = post({**version, **bearer}, {**good, key: wrong})
            assert status == 400 or (key, wrong) in (("system", "x"), ("max_tokens", 7)), (key, wrong)
    assert server.problems == []


def test_oversized_body_and_wrong_key() -> None:
    with LoopbackServer(max_bytes=2000, api_key="right") as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="right", max_retries=0)
        with pytest.raises(anthropic.ContentTooLargeError):
            say(client, system="x" * 4000)
        with pytest.raises(anthropic.AuthenticationError):
            say(client_of(server))


# Faults


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("bad_request", anthropic.BadRequestError),
        ("unauthorized", anthropic.AuthenticationError),
        ("payment_required", anthropic.APIStatusError),
        ("forbidden", anthropic.PermissionDeniedError),
        ("not_found", anthropic.NotFoundError),
        ("request_timeout", anthropic.APIStatusError),
        ("conflict", anthropic.ConflictError),
        ("too_large", anthropic.ContentTooLargeError),
        ("rate_limited", anthropic.RateLimitError),
        ("spend_limit", anthropic.RateLimitError),
        ("spend_cap", anthropic.RateLimitError),
        ("server_error", anthropic.InternalServerError),
        ("unavailable", anthropic.InternalServerError),
        ("gateway_timeout", anthropic.InternalServerError),
        ("overloaded", anthropic.InternalServerError),
        ("html_502", anthropic.InternalServerError),
        ("drop", anthropic.APIConnectionError),
        ("hang", anthropic.APIConnectionError),
        ("drop_midway", anthropic.APIConnectionError),
    ],
)
def test_each_fault_is_the_sdks_own_error(server: LoopbackServer, kind: Any, error: type[Exception]) -> None:
    server.faults = [Fault(kind)]
    client = client_of(server)
    with pytest.raises(error):
        say(client)
    assert text_of(say(client)) == "hello", "the next request is well"
    assert server.requests[0].fault == kind


def test_error_details_and_spend_limits(server: LoopbackServer) -> None:
    server.faults = [
        Fault("spend_limit"),
        Fault("spend_cap"),
        Fault("overloaded"),
        Fault("rate_limited", retry_after=7),
    ]
    client = client_of(server)
    caught: list[anthropic.APIStatusError] = []
    for _ in range(4):
        with pytest.raises(anthropic.APIStatusError) as info:
            say(client)
        caught.append(info.value)
    assert [error.error_code for error in caught] == ["enforced_spend_limit_reached", None, None, None]
    assert [error.status_code for error in caught] == [429, 429, 529, 429]
    assert [error.response.headers.get("retry-after") for error in caught] == [None, None, None, "7"]


def test_sdk_retries_as_told(server: LoopbackServer) -> None:
    client = client_of(server, retries=3)
    server.faults = [Fault("rate_limited", retry_after_ms=1), Fault("overloaded", retry_after_ms=1), None]
    assert text_of(say(client)) == "hello"
    assert [r.attempt for r in server.requests] == [1, 2, 3] and list(server.paid.values()) == [1]
    server.faults = [Fault("rate_limited", should_retry=False)]
    with pytest.raises(anthropic.RateLimitError):
        say(client)


def test_stream_faults(server: LoopbackServer) -> None:
    server.responder = lambda _body: "word " * 50
    client = client_of(server)

    def stream() -> anthropic.types.Message:
        with client.messages.stream(model=MODEL, max_tokens=500, messages=HELLO) as events:
            return events.get_final_message()

    server.faults = [Fault("truncated_stream"), Fault("stream_error"), Fault("drop_midway"), Fault("drip")]
    assert stream().stop_reason is None, "the SDK raises nothing for a stream that just ends"
    with pytest.raises(anthropic.APIStatusError) as caught:
        stream()
    assert caught.value.status_code == 200 and caught.value.type == "overloaded_error"
    with pytest.raises((anthropic.APIConnectionError, httpx2.HTTPError)):
        stream()
    assert stream().stop_reason == "end_turn", "a drip is slow and whole"


def test_content_faults(server: LoopbackServer) -> None:
    server.responder = lambda _body: VERDICT
    client = client_of(server)
    server.faults = [
        Fault("refusal", category="reasoning_extraction"),
        Fault("max_tokens"),
        Fault("thinking_only"),
        Fault("no_content"),
        Fault("pause_turn"),
        Fault("slow", delay=0.01),
    ]
    refused, cut, bare, empty, paused, slow = (say(client) for _ in range(6))
    assert refused.stop_reason == "refusal" and refused.stop_details
    assert refused.stop_details.category == "reasoning_extraction"
    assert cut.stop_reason == "max_tokens" and 0 < len(text_of(cut)) < len(json.dumps(VERDICT))
    assert [b.type for b in bare.content] == ["thinking"] and empty.content == []
    assert paused.stop_reason == "pause_turn" and json.loads(text_of(slow)) == VERDICT


def test_every_malformed_shape_arrives_and_breaks_a_plain_parse(server: LoopbackServer) -> None:
    server.responder = lambda _body: VERDICT
    client = client_of(server)
    server.faults = [Fault("malformed", shape=shape) for shape in MALFORMED_SHAPES]
    for shape in MALFORMED_SHAPES:
        text = text_of(say(client))
        assert text == malform(json.dumps(VERDICT), shape)
        with pytest.raises(ValueError):
            Verdict.model_validate(json.loads(text), extra="forbid")


def test_seeded_shares_do_not_depend_on_the_order() -> None:
    plan = FaultPlan(shares=[(Fault("overloaded"), 0.3), (Fault("drop"), 0.2)], seed=4, max_attempts=2)
    hashes = [body_hash({"n": n}) for n in range(400)]
    kinds = [fault.kind if (fault := plan.decide(n, h, 1)) else None for n, h in enumerate(hashes, 1)]
    again = [fault.kind if (fault := plan.decide(1, h, 1)) else None for h in hashes]
    assert kinds == again and 80 < kinds.count("overloaded") < 160 and 50 < kinds.count("drop") < 110
    assert [plan.decide(1, h, 1) for h in hashes] != [plan.decide(1, h, 2) for h in hashes]
    assert all(plan.decide(1, h, 3) is None for h in hashes)
    numbered = FaultPlan(at={2: Fault("conflict")})
    assert [numbered.decide(n, "h", 1) is not None for n in (1, 2, 3)] == [False, True, False]
    with pytest.raises(ValueError, match="unknown fault kind"):
        Fault("nonsense")  # type: ignore[arg-type]


def test_a_hanging_server_is_the_clients_timeout(server: LoopbackServer) -> None:
    server.faults = [Fault("hang", delay=60)]
    with pytest.raises(anthropic.APITimeoutError):
        say(client_of(server, timeout=0.05))
    assert server.paid == {}


def test_an_answer_nobody_waits_for_is_paid_and_abandoned(server: LoopbackServer) -> None:
    server.latency = 0.2
    with pytest.raises(anthropic.APITimeoutError):
        say(client_of(server, timeout=0.05))
    server.latency = 0.0
    other = [{"role": "user", "content": "other"}]
    while server.calls < 1:
        client_of(server).models.retrieve(MODEL)
    say(client_of(server), messages=other)
    assert list(server.paid.values()) == [1, 1] and list(server.abandoned.values()) == [1]
    assert list(server.abandoned) != [server.requests[-1].hash]


# Batches


def item(custom_id: str, text: str = "hello", **changes: Any) -> Any:
    params = {"model": MODEL, "max_tokens": 99, "messages": [{"role": "user", "content": text}], **changes}
    return {"custom_id": custom_id, "params": params}


def test_batch_from_creation_to_shuffled_results() -> None:
    plan = BatchPlan(
        polls=2,
        items={"late": "expired", "broken": Fault("server_error"), "refused": Fault("refusal")},
        seed=3,
    )
    with LoopbackServer(batches=plan) as server:
        client = client_of(server)
        requests = [item(f"r{n}", f"text {n}") for n in range(8)]
        requests += [item("late"), item("broken"), item("refused"), item("invalid", temperature=0)]
        batch = client.messages.batches.create(requests=requests)
        assert batch.processing_status == "in_progress" and batch.request_counts.processing == 12
        with pytest.raises(anthropic.AnthropicError):
            client.messages.batches.results(batch.id)
        states = [client.messages.batches.retrieve(batch.id).processing_status for _ in range(2)]
        assert states == ["in_progress", "ended"]
        ended = client.messages.batches.retrieve(batch.id)
        counts = ended.request_counts
        assert (counts.succeeded, counts.errored, counts.expired, counts.processing) == (9, 2, 1, 0)
        assert ended.ended_at and ended.results_url and ended.results_url.startswith(server.url)
        lines = list(client.messages.batches.results(batch.id))
        by_id = {line.custom_id: line.result for line in lines}
        assert list(by_id) != [r["custom_id"] for r in requests] and len(by_id) == 12
        for n in range(8):
            result = by_id[f"r{n}"]
            assert result.type == "succeeded" and text_of(result.message) == f"text {n}"
            assert result.message.usage.service_tier == "batch"
        invalid = by_id["invalid"]
        assert invalid.type == "errored" and invalid.error.error.type == "invalid_request_error"
        refused = by_id["refused"]
        assert refused.type == "succeeded" and refused.message.stop_reason == "refusal"
        assert server.usage[MODEL].batch_messages == 9 and server.calls == 0
        assert server.paid[body_hash(requests[0]["params"])] == 1


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([], "at least 1"),
        ([item("a"), item("a")], "unique"),
        ([item("has space")], "pattern"),
        ([item("x" * 65)], "pattern"),
        ([item("line\n")], "pattern"),
    ],
)
def test_batch_envelope_is_checked_at_once(server: LoopbackServer, requests: Any, message: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=message):
        client_of(server).messages.batches.create(requests=requests)


def test_batch_list_cancel_delete(server: LoopbackServer) -> None:
    client = client_of(server)
    made = [client.messages.batches.create(requests=[item("a")]).id for _ in range(5)]
    first = client.messages.batches.list(limit=2)
    assert first.has_more and first.last_id == made[-2]
    assert [batch.id for batch in client.messages.batches.list(limit=2)] == made[::-1]
    assert client.messages.batches.cancel(made[0]).processing_status == "canceling"
    ended = client.messages.batches.retrieve(made[0])
    assert ended.processing_status == "ended" and ended.request_counts.canceled == 1
    assert [line.result.type for line in client.messages.batches.results(made[0])] == ["canceled"]
    with pytest.raises(anthropic.BadRequestError):
        client.messages.batches.delete(made[1])
    assert client.messages.batches.delete(made[0]).id == made[0]
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(made[0])


def test_batch_create_that_is_lost_on_the_way_back_is_found_by_list(server: LoopbackServer) -> None:
    server.faults = FaultPlan(sequence=[Fault("drop_midway")], endpoints=["batches.create"])

    async def create_and_list() -> int:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as client:
            with pytest.raises(anthropic.APIConnectionError):
                await client.messages.batches.create(requests=[item("a")])
            return len([batch async for batch in client.messages.batches.list()])

    assert asyncio.run(create_and_list()) == 1


# The server itself


def test_port_can_be_reused_and_taken_ports_are_told() -> None:
    with LoopbackServer() as first:
        port = first.port
        with pytest.raises(RuntimeError, match="could not start"):
            LoopbackServer(port=port).start()
    with LoopbackServer(port=port) as second:
        assert text_of(say(client_of(second))) == "hello"


def test_runs_as_a_process_with_stats() -> None:
    command = [
        sys.executable,
        "-m",
        "ragds_pipeline_tests.loopback",
        "--share",
        "overloaded=0.2",
        "--latency",
        "0.001",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=5)
            for n in range(10):
                say(client, messages=[{"role": "user", "content": f"n{n}"}])
            stats = httpx2.get(f"{url}/_loopback/stats").json()
        finally:
            process.terminate()
        assert process.wait(10) == 0
    assert stats["calls"] == 10 and set(stats["paid"].values()) == {1} and stats["requests"] >= 10
