"""Prompt caching: what requests share at their beginning is marked once, and asked for once before the fan-out.

The API caches a prompt up to a mark (``cache_control``), in the order tools, system, messages; later requests with the
same beginning read it at a tenth of the price or less. A mark costs a quarter more for what is written (twice for an
hour), so it is set only where at least one other request reads it.

Marks are set on the way out: a request's own ``params``, and with them its key, know nothing of caching. So a reply is
found in the ledger whichever way it was asked for, and turning caching on or off sends nothing again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ragds_pipeline.claude.estimate import text_tokens
from ragds_pipeline.claude.requests import Request
from ragds_pipeline.records import canonical_json, sha256_text

Level = Literal["block", "system"]
Ttl = Literal["5m", "1h"]

MINIMUM_TOKENS = {
    "claude-sonnet-5-5": 512, "claude-haiku-5-5": 512, "claude-opus-5-5": 512, "claude-fable-5-1": 512,
    "claude-opus-5": 512, "claude-sonnet-5": 1024, "claude-opus-4-8": 1024, "claude-sonnet-4-6": 1024,
}  # fmt: skip
"""Shorter beginnings are not cached by the API, silently."""

MINIMUM_OF_OTHERS = 4096
"""The largest minimum of any model, for those that are not listed."""

SHARERS: dict[Ttl, int] = {"5m": 2, "1h": 4}
"""So many requests must share a beginning. In a batch (1 hour, written at twice the price) all start at about the same
time, and between 30 and 98 % of them find it written; below half, marks cost more than they save."""

_NOT_IN_THE_PREFIX = frozenset({"messages", "max_tokens", "metadata", "stream", "stop_sequences", "service_tier"})
"""Parts of a request that may differ between requests that share a cached beginning. Everything else (model, tools,
system, schema, effort, thinking) is taken to be part of it: some of it changes the prompt the API makes."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """A beginning that several requests share."""

    id: str
    level: Level
    """Where it ends: with the first content block of the first message, or with the system prompt."""
    tokens: int
    """Estimated length."""


@dataclass(frozen=True)
class CachePlan:
    """Which request has its mark where, and in which order to send."""

    ttl: Ttl
    prefixes: Mapping[str, Prefix]
    """By key of the request; requests without a mark are not in it."""

    def body(self, request: Request) -> dict[str, Any]:
        """Return what is sent of a request: its parameters, with the mark where it has one."""
        prefix = self.prefixes.get(request.key)
        return dict(request.params) if prefix is None else _marked(request.params, prefix.level, self.ttl)

    def leaders(self, requests: Sequence[Request]) -> list[Request]:
        """Return the first request of each prefix. Parallel first calls all miss, so these are answered first."""
        first: dict[str, Request] = {}
        for request in requests:
            if (prefix := self.prefixes.get(request.key)) is not None:
                first.setdefault(prefix.id, request)
        return list(first.values())


NO_CACHING = CachePlan("5m", {})


def plan_caching(requests: Sequence[Request], ttl: Ttl) -> CachePlan:
    """Return the marks for requests that are sent together.

    Each request gets at most one mark, at the end of the longest beginning that enough others share and that is long
    enough for its model. Requests that set marks themselves are left as they are.
    """
    beginnings = {request.key: _beginnings(request.params) for request in requests if not _has_mark(request.params)}
    sharers = Counter(id_ for found in beginnings.values() for id_ in found.values())
    lengths: dict[str, int] = {}
    prefixes: dict[str, Prefix] = {}
    for request in requests:
        for level, id_ in beginnings.get(request.key, {}).items():
            if sharers[id_] < SHARERS[ttl]:
                continue
            if id_ not in lengths:
                lengths[id_] = text_tokens(_beginning(request.params, level) or "")
            if lengths[id_] >= MINIMUM_TOKENS.get(request.model, MINIMUM_OF_OTHERS):
                prefixes[request.key] = Prefix(id_, level, lengths[id_])
                break
    return CachePlan(ttl, prefixes)


def cacheable(params: Mapping[str, Any]) -> tuple[int, int]:
    """Return how long a request is up to the end of its system prompt, estimated, and the least its model caches."""
    least = MINIMUM_TOKENS.get(str(params["model"]), MINIMUM_OF_OTHERS)
    return text_tokens(_beginning(params, "system") or ""), least


def leader_first(requests: Sequence[Request], plan: CachePlan) -> tuple[list[Request], list[Request]]:
    """Return the requests in two waves: first one for each prefix and all that share none, then the fan-out."""
    waits = {request.key for request in requests if request.key in plan.prefixes}
    waits -= {request.key for request in plan.leaders(requests)}
    return [r for r in requests if r.key not in waits], [r for r in requests if r.key in waits]


def with_breakpoints(requests: Sequence[Request], ttl: Ttl = "5m") -> list[dict[str, Any]]:
    """Return what is sent of each request, marks included, in the order given."""
    plan = plan_caching(requests, ttl)
    return [plan.body(request) for request in requests]


def _beginnings(params: Mapping[str, Any]) -> dict[Level, str]:
    """Return the hash of each beginning a request has, the longest first."""
    levels: tuple[Level, ...] = ("block", "system")
    texts = {level: _beginning(params, level) for level in levels}
    return {level: sha256_text(text) for level, text in texts.items() if text is not None}


def _has_mark(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "cache_control" in value or any(_has_mark(inner) for inner in value.values())
    return isinstance(value, list) and any(_has_mark(inner) for inner in value)


def _beginning(params: Mapping[str, Any], level: Level) -> str | None:
    """Return a request up to the end of ``level`` as canonical text; None where there is no such place."""
    fixed = {name: value for name, value in params.items() if name not in _NOT_IN_THE_PREFIX}
    if level == "system":
        return canonical_json(fixed) if params.get("system") else None
    first = params["messages"][0]
    content = first["content"]
    block = {"type": "text", "text": content} if isinstance(content, str) else content[0]
    # Thinking blocks cannot carry a mark, and a first message is the user's.
    return canonical_json({**fixed, "first": [first["role"], block]}) if first["role"] == "user" else None


def _marked(params: Mapping[str, Any], level: Level, ttl: Ttl) -> dict[str, Any]:
    """Return a copy of ``params`` with a mark; nothing of the original is changed."""
    mark: dict[str, Any] = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    if level == "system":
        system = _blocks(params["system"])
        return {**params, "system": [*system[:-1], {**system[-1], "cache_control": mark}]}
    first, *others = params["messages"]
    head, *tail = _blocks(first["content"])
    marked = {**first, "content": [{**head, "cache_control": mark}, *tail]}
    return {**params, "messages": [marked, *others]}


def _blocks(content: str | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
