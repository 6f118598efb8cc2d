"""What a test says the model answers: the `Answer` record, scripts by task, and the default echo.

Nothing here knows HTTP or the wire; `messages` turns an `Answer` into content blocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ragds_pipeline_tests.loopback.jsonkinds import is_array, is_object, object_at

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ToolUse:
    """One tool call. An empty `id` is filled with one derived from the request."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""


@dataclass(frozen=True)
class Cite:
    """A citation by quote; the server finds the indices, so a script cannot hold wrong ones.

    Args:
        quote: The words to cite. In a plain-text document they become a `char_location`; in a content
            document or a search result the whole block that holds them is cited, as the API does.
        document: Which document, counted over all messages; ignored when `search_result` is given.
        search_result: Which search result, counted separately, also inside tool results.
    """

    quote: str
    document: int = 0
    search_result: int | None = None


@dataclass(frozen=True)
class Part:
    """A text block with its citations (`Cite`, or the wire dict for deliberately wrong pointers)."""

    text: str
    citations: Sequence[Cite | dict[str, Any]] = ()


@dataclass(frozen=True)
class Answer:
    """What the model says.

    Args:
        text: The text; a dict or a list is serialised as JSON.
        stop_reason: `tool_use` is set by itself when there are tool uses, `max_tokens` when the cap is hit.
        tool_uses: Tool calls after the text.
        citations: Citations on the single text block.
        thinking: Text of the leading thinking block; None leaves the block out. Sent empty, as the API does,
            unless the request asks for `display: summarized`; its tokens count against `max_tokens` either
            way.
        parts: Several text blocks in place of `text`.
        category: `stop_details.category` of a refusal.
        delay: Seconds added to the server's latency. Responders must not block: they run in the event loop.
    """

    text: str | dict[str, Any] | list[Any] = ""
    stop_reason: str = "end_turn"
    tool_uses: Sequence[ToolUse] = ()
    citations: Sequence[Cite | dict[str, Any]] = ()
    thinking: str | None = "Considering the request."
    parts: Sequence[Part] = ()
    category: str | None = None
    delay: float = 0.0

    def text_parts(self) -> list[Part]:
        """The text blocks, in order; none for an empty text."""
        if self.parts:
            return list(self.parts)
        text = self.text if isinstance(self.text, str) else json.dumps(self.text, ensure_ascii=False)
        return [Part(text, self.citations)] if text else []


Said: TypeAlias = Answer | str | dict[str, Any] | list[Any]
Responder: TypeAlias = Callable[[Body], Said]


def as_answer(said: Said) -> Answer:
    """What a responder returned, as an `Answer`."""
    return said if isinstance(said, Answer) else Answer(text=said)


def system_text(body: Body) -> str:
    """The system prompt as one text, blocks joined by newlines."""
    return _text_of(body.get("system", ""))


def last_user_text(body: Body) -> str:
    """The text of the last user message, tool results and documents left out."""
    for message in reversed(body.get("messages", [])):
        if message.get("role") == "user":
            return _text_of(message.get("content", ""))
    return ""


def all_text(body: Body) -> str:
    """System prompt and all messages as one text, for predicates."""
    return "\n".join([system_text(body), *(_text_of(m.get("content", "")) for m in body.get("messages", []))])


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block.get("type") == "text")


def format_schema(body: Body) -> dict[str, Any] | None:
    """The structured-output schema of the request, if it has one."""
    wanted = object_at(body, "output_config").get("format")
    return wanted.get("schema") if is_object(wanted) else None


def echo_responder(body: Body) -> Answer:
    """Repeats the last user text; a structured request gets the smallest value that fits its schema."""
    schema = format_schema(body)
    if schema is not None:
        return Answer(text=json.dumps(sample_of_schema(schema), ensure_ascii=False))
    return Answer(text=last_user_text(body) or "(nothing to echo)")


def sample_of_schema(schema: dict[str, Any]) -> Any:
    """A small value that fits a schema of the subset structured outputs accept."""
    definitions: dict[str, Any] = schema.get("$defs", {})

    def sample(node: dict[str, Any]) -> Any:
        if "$ref" in node:
            return sample(definitions[node["$ref"].rsplit("/", 1)[-1]])
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return node["enum"][0]
        if "anyOf" in node:
            return sample(node["anyOf"][0])
        if "allOf" in node:
            return sample(node["allOf"][0])
        kind = node.get("type")
        if is_array(kind):
            kind = kind[0]
        if kind == "object":
            return {key: sample(item) for key, item in node.get("properties", {}).items()}
        if kind == "array":
            return [sample(node["items"])] if node.get("minItems") and "items" in node else []
        return {"string": "sample", "integer": 1, "number": 1.0, "boolean": True}.get(str(kind))

    return sample(schema)


@dataclass(frozen=True)
class Task:
    """One task of a script: when it applies and what it answers."""

    applies: Callable[[Body], bool]
    responder: Responder
    name: str = ""

    @staticmethod
    def when_system(marker: str, responder: Responder) -> Task:
        """Applies when the system prompt contains `marker`."""
        return Task(lambda body: marker in system_text(body), responder, marker)

    @staticmethod
    def when_text(marker: str, responder: Responder) -> Task:
        """Applies when the system prompt or any message contains `marker`."""
        return Task(lambda body: marker in all_text(body), responder, marker)


class Script:
    """A responder that asks the first task that applies.

    Args:
        tasks: Tried in order; a pair (marker, responder) stands for `Task.when_system`.
        default: For requests no task claims. Without one they raise, which the server answers with a 500 that
            names the system prompt: a silent default would hide a prompt the script does not know.
    """

    def __init__(self, tasks: Sequence[Task | tuple[str, Responder]], default: Responder | None = None) -> None:
        self.tasks = [task if isinstance(task, Task) else Task.when_system(*task) for task in tasks]
        self.default = default

    def __call__(self, body: Body) -> Said:
        for task in self.tasks:
            if task.applies(body):
                return task.responder(body)
        if self.default is None:
            raise LookupError(
                f"no task of the script claims a request with system prompt {system_text(body)[:120]!r}; "
                "add a Task for it or pass default="
            )
        return self.default(body)
