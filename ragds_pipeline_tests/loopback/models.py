"""The models the server knows and what each accepts; `GET /v1/models` is drawn from this table.

Validation asks here and never compares names, so a rule such as "forced tool choice is a 400" is data that
`models.retrieve` and the rejection share. Facts: ../shared/reference/anthropic.md, section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ADAPTIVE = frozenset({"adaptive"})


@dataclass(frozen=True)
class Model:
    """What one model accepts. `thinking_types` are the `thinking.type` values that are not a 400."""

    id: str
    display_name: str
    line: str
    thinking_types: frozenset[str]
    thinks_unasked: bool = True
    forced_tool_choice: bool = True
    prefill: bool = False
    sampling: bool = False
    structured_outputs: bool = True
    max_tokens: int = 128_000
    max_input_tokens: int = 1_000_000
    cache_minimum: int = 512
    lifecycle: str = "active"

    def info(self) -> dict[str, Any]:
        """The body of `GET /v1/models/{id}`."""

        def has(flag: bool) -> dict[str, bool]:
            return {"supported": flag}

        deprecated = self.lifecycle != "active"
        return {
            "type": "model",
            "id": self.id,
            "display_name": self.display_name,
            "line": self.line,
            "created_at": "2026-09-01T00:00:00Z",
            "lifecycle": self.lifecycle,
            "deprecated_at": "2026-10-01T00:00:00Z" if deprecated else None,
            "retires_at": "2026-11-30T00:00:00Z" if deprecated else None,
            "max_input_tokens": self.max_input_tokens,
            "max_tokens": self.max_tokens,
            "capabilities": {
                "batch": has(True),
                "citations": has(True),
                "code_execution": has(True),
                "context_management": {
                    "supported": True,
                    "clear_thinking_20251015": has(True),
                    "clear_tool_uses_20250919": has(True),
                    "compact_20260112": has(not self.prefill),
                },
                "effort": {
                    "supported": True,
                    **{e: has(True) for e in ("low", "medium", "high", "xhigh", "max")},
                },
                "image_input": has(True),
                "pdf_input": has(True),
                "server_tools": {"supported": True, "code_execution": has(True), "web_search": has(True)},
                "structured_outputs": has(self.structured_outputs),
                "thinking": {
                    "supported": True,
                    "types": {
                        t: has(t in self.thinking_types) for t in ("adaptive", "between_tools", "disabled", "enabled")
                    },
                },
            },
        }


def _table() -> dict[str, Model]:
    off = frozenset({"adaptive", "disabled"})
    budget = frozenset({"enabled", "disabled"})
    both = frozenset({"adaptive", "enabled", "disabled"})
    models = [
        Model("claude-fable-5-1", "Claude Fable 5.1", "fable", ADAPTIVE, forced_tool_choice=False),
        Model("claude-opus-5-5", "Claude Opus 5.5", "opus", ADAPTIVE, forced_tool_choice=False),
        Model(
            "claude-sonnet-5-5",
            "Claude Sonnet 5.5",
            "sonnet",
            frozenset({"adaptive", "between_tools"}),
            forced_tool_choice=False,
        ),
        Model("claude-haiku-5-5", "Claude Haiku 5.5", "haiku", off),
        Model("claude-opus-5", "Claude Opus 5", "opus", off),
        Model("claude-sonnet-5", "Claude Sonnet 5", "sonnet", off, cache_minimum=1024),
        Model("claude-opus-4-8", "Claude Opus 4.8", "opus", off, thinks_unasked=False, cache_minimum=1024),
        Model("claude-opus-4-7", "Claude Opus 4.7", "opus", off, thinks_unasked=False, cache_minimum=4096),
        Model(
            "claude-opus-4-6",
            "Claude Opus 4.6",
            "opus",
            both,
            thinks_unasked=False,
            sampling=True,
            cache_minimum=4096,
        ),
        Model(
            "claude-sonnet-4-6",
            "Claude Sonnet 4.6",
            "sonnet",
            both,
            thinks_unasked=False,
            sampling=True,
            cache_minimum=1024,
        ),
    ]
    for name, title, line, lifecycle in (
        ("claude-haiku-4-5", "Claude Haiku 4.5", "haiku", "active"),
        ("claude-sonnet-4-5", "Claude Sonnet 4.5", "sonnet", "deprecated"),
    ):
        models.append(
            Model(
                name,
                title,
                line,
                budget,
                thinks_unasked=False,
                prefill=True,
                sampling=True,
                max_tokens=64_000,
                max_input_tokens=200_000,
                cache_minimum=4096,
                lifecycle=lifecycle,
            )
        )
    return {model.id: model for model in models}


MODELS: dict[str, Model] = _table()
