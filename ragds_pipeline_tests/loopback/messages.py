"""From an `Answer` to the API's message: content blocks, stop reason, usage, and the same as SSE events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ragds_pipeline_tests.loopback.answers import Answer, Body
from ragds_pipeline_tests.loopback.citing import wire_citation
from ragds_pipeline_tests.loopback.faults import Fault
from ragds_pipeline_tests.loopback.jsonkinds import object_at
from ragds_pipeline_tests.loopback.malformed import malform
from ragds_pipeline_tests.loopback.models import Model
from ragds_pipeline_tests.loopback.tokens import InputUsage, tokens_of, usage_body


def faulted(answer: Answer, fault: Fault | None) -> Answer:
    """The answer with a content fault carried out; other faults leave it alone."""
    kind = fault.kind if fault is not None else None
    if fault is None or kind not in (
        "refusal",
        "max_tokens",
        "thinking_only",
        "no_content",
        "pause_turn",
        "malformed",
    ):
        return answer
    text = "".join(part.text for part in answer.text_parts())
    if kind == "refusal":
        return replace(answer, text="", parts=(), tool_uses=(), stop_reason="refusal", category=fault.category)
    if kind == "max_tokens":
        half = text[: max(1, len(text) // 2)]
        return replace(answer, text=half, parts=(), citations=(), tool_uses=(), stop_reason="max_tokens")
    if kind == "thinking_only":
        return replace(answer, text="", parts=(), tool_uses=(), stop_reason="max_tokens")
    if kind == "no_content":
        return replace(answer, text="", parts=(), tool_uses=(), thinking=None)
    if kind == "pause_turn":
        return replace(answer, stop_reason="pause_turn")
    return replace(answer, text=malform(text, fault.shape), parts=(), citations=())


def thinks(body: Body, model: Model) -> bool:
    """Whether the message leads with a thinking block."""
    asked = object_at(body, "thinking").get("type")
    return model.thinks_unasked if asked is None else asked in ("adaptive", "enabled")


def build_message(
    answer: Answer, body: Body, model: Model, used: InputUsage, *, key: str, tier: str = "standard"
) -> dict[str, Any]:
    """The message object. `key` makes its ids: the same request and attempt give the same ids."""
    stem = hashlib.sha256(key.encode()).hexdigest()[:20]
    limit = int(body["max_tokens"])
    content: list[dict[str, Any]] = []
    spent = thinking_tokens = 0
    stop_reason, stop_sequence = answer.stop_reason, None

    if answer.thinking is not None and thinks(body, model) and limit > 0:
        thinking_tokens = min(tokens_of(answer.thinking), limit)
        spent += thinking_tokens
        shown = object_at(body, "thinking").get("display") == "summarized"
        content.append(
            {
                "type": "thinking",
                "thinking": answer.thinking if shown else "",
                "signature": f"loopback-{stem}",
            }
        )

    for part in answer.text_parts():
        text, stopped_by = _until_stop(part.text, body.get("stop_sequences") or ())
        room = limit - spent
        if tokens_of(text) > room:
            text, stop_reason, stopped_by = (
                text[: max(0, room * 4 - 1)] if room > 0 else "",
                "max_tokens",
                None,
            )
        if text:
            spent += tokens_of(text)
            block: dict[str, Any] = {"type": "text", "text": text, "citations": None}
            if part.citations:
                block["citations"] = [wire_citation(cite, body) for cite in part.citations]
            content.append(block)
        if stopped_by is not None:
            stop_reason, stop_sequence = "stop_sequence", stopped_by
        if stop_reason in ("max_tokens", "stop_sequence"):
            break
    else:
        for index, use in enumerate(answer.tool_uses):
            call = {"type": "tool_use", "id": use.id or f"toolu_{stem}{index}", "name": use.name}
            content.append({**call, "input": dict(use.input)})
            spent += tokens_of(json.dumps(dict(use.input)) + use.name)
            if stop_reason == "end_turn":
                stop_reason = "tool_use"

    if limit == 0:
        stop_reason = "max_tokens"  # a call that only warms the prompt cache
    refused = stop_reason == "refusal"
    details = {"type": "refusal", "category": answer.category, "explanation": None} if refused else None
    return {
        "id": f"msg_{stem}",
        "type": "message",
        "role": "assistant",
        "model": model.id,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": stop_sequence,
        "stop_details": details,
        "usage": usage_body(used, max(spent, 1) if limit else 0, thinking_tokens, tier),
    }


def _until_stop(text: str, sequences: Any) -> tuple[str, str | None]:
    """`text` up to the earliest stop sequence, and that sequence."""
    found = [(text.find(sequence), sequence) for sequence in sequences if sequence in text]
    if not found:
        return text, None
    position, sequence = min(found)
    return text[:position], sequence


def sse_events(message: dict[str, Any], piece: int = 24) -> Iterator[dict[str, Any]]:
    """The message as stream events; text goes in pieces of `piece` characters so that deltas are real."""
    usage = message["usage"]
    opening: dict[str, Any] = {
        **message,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
    }
    yield {"type": "message_start", "message": {**opening, "usage": {**usage, "output_tokens": 1}}}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        for delta in _deltas(block, piece):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    told = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    final = {key: usage[key] for key in (*told, "output_tokens_details", "server_tool_use")}
    yield {"type": "message_delta", "delta": delta, "usage": final}
    yield {"type": "message_stop"}


def _opened(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return {**block, "text": "", "citations": None if block["citations"] is None else []}
    if block["type"] == "thinking":
        return {**block, "thinking": "", "signature": ""}
    return {**block, "input": {}}


def _deltas(block: dict[str, Any], piece: int) -> Iterator[dict[str, Any]]:
    if block["type"] == "thinking":
        if block["thinking"]:
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "text":
        for start in range(0, len(block["text"]), piece):
            yield {"type": "text_delta", "text": block["text"][start : start + piece]}
        for citation in block["citations"] or ():
            yield {"type": "citations_delta", "citation": citation}
    else:
        text = json.dumps(block["input"], ensure_ascii=False)
        for start in range(0, len(text), piece):
            yield {"type": "input_json_delta", "partial_json": text[start : start + piece]}


def sse_text(event: dict[str, Any]) -> bytes:
    """One event on the wire."""
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
