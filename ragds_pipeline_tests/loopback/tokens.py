"""Token accounting that a test can redo by hand.

`tokens_of(text)` is `len(text) // 4 + 1`. A request is a row of blocks in the API's order (tools, system,
messages), each counted on its own; a structured-output schema counts as one block in front, for the system
prompt the API injects. The same row gives the cache: a prefix that ends at a `cache_control` mark is created
on first sight and read afterwards, when it is at least the model's minimum (512 on 5.5 models). No expiry.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ragds_pipeline_tests.loopback.answers import Body
from ragds_pipeline_tests.loopback.jsonkinds import is_object, object_at
from ragds_pipeline_tests.loopback.models import Model

LOOKBACK = 20  # blocks before a mark in which the API still finds an earlier prefix


def tokens_of(text: str) -> int:
    """The tokens of one text: a quarter of its characters, and never none."""
    return len(text) // 4 + 1


@dataclass(frozen=True)
class Block:
    """One counted block; `ttl` is set where the request marks the end of a cached prefix."""

    text: str
    ttl: str | None


def blocks_of(body: Body) -> list[Block]:
    """The request as the row of blocks that is counted and cached."""
    row: list[Block] = []

    def add(value: Any, kind: str) -> None:
        ttl: str | None = None
        if is_object(value):
            mark = value.get("cache_control")
            ttl = (mark.get("ttl") or "5m") if is_object(mark) else None
            bare = {key: item for key, item in value.items() if key != "cache_control"}
            text = bare["text"] if bare.get("type") == "text" else json.dumps(bare, sort_keys=True, ensure_ascii=False)
        else:
            text = str(value)
        row.append(Block(f"{kind}:{text}", ttl))

    wanted = object_at(body, "output_config").get("format")
    if wanted:
        add({"type": "format", "format": wanted}, "f")
    tools: list[Any] = body.get("tools") or []
    for tool in tools:
        add(tool, "t")
    system: str | list[Any] = body.get("system") or []
    for block in [system] if isinstance(system, str) else system:
        add(block, "s")
    for message in body.get("messages", []):
        content = message["content"]
        for block in [content] if isinstance(content, str) else content:
            add(block, str(message["role"])[0])
    if is_object(body.get("cache_control")) and row:
        row[-1] = Block(row[-1].text, body["cache_control"].get("ttl") or "5m")
    return row


def input_tokens(body: Body) -> int:
    """All input tokens of a request, cached or not: what `count_tokens` answers."""
    return sum(tokens_of(block.text[2:]) for block in blocks_of(body))


@dataclass(frozen=True)
class InputUsage:
    """Input tokens by price, and the prefixes this request leaves in the cache once it is answered."""

    uncached: int
    read: int
    created_5m: int
    created_1h: int
    prefixes: tuple[str, ...]


class PromptCache:
    """The prefixes seen so far. Looked up when a request arrives and filled when it is answered, so parallel
    first calls all miss, as they do on the API."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def look(self, body: Body, model: Model) -> InputUsage:
        """Splits the input tokens of `body` into uncached, read and created."""
        row = blocks_of(body)
        digest = hashlib.sha256(model.id.encode())
        sums: list[int] = []
        keys: list[str] = []
        total = 0
        for block in row:
            total += tokens_of(block.text[2:])
            digest.update(block.text.encode() + b"\0")
            sums.append(total)
            keys.append(digest.hexdigest())
        marks = [i for i, block in enumerate(row) if block.ttl is not None and sums[i] >= model.cache_minimum]
        read = 0
        for mark in marks:
            for position in range(mark, max(-1, mark - LOOKBACK - 1), -1):
                if keys[position] in self._seen:
                    read = max(read, sums[position])
                    break
        created = {"5m": 0, "1h": 0}
        reached = read
        for mark in marks:
            if sums[mark] > reached:
                created[row[mark].ttl or "5m"] += sums[mark] - reached
                reached = sums[mark]
        return InputUsage(total - reached, read, created["5m"], created["1h"], tuple(keys[mark] for mark in marks))

    def keep(self, usage: InputUsage) -> None:
        """Makes the prefixes of an answered request readable."""
        self._seen.update(usage.prefixes)


def usage_body(used: InputUsage, output: int, thinking: int, tier: str) -> dict[str, Any]:
    """The `usage` object of a message."""
    return {
        "input_tokens": used.uncached,
        "cache_creation_input_tokens": used.created_5m + used.created_1h,
        "cache_read_input_tokens": used.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.created_5m,
            "ephemeral_1h_input_tokens": used.created_1h,
        },
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": thinking},
        "server_tool_use": None,
        "service_tier": tier,
        "inference_geo": "global",
    }
