"""The rules of the conversation: roles, block types by role, tool calls answered, no prefill."""

from __future__ import annotations

from typing import Any

from ragds_pipeline_tests.loopback.errors import invalid
from ragds_pipeline_tests.loopback.jsonkinds import is_array, is_object

USER_BLOCKS = frozenset({"text", "image", "document", "search_result", "tool_result", "container_upload"})
ASSISTANT_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "document"})
PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."


def check_system(system: Any) -> None:
    """The top-level system prompt: a text, or text blocks."""
    if system is None or isinstance(system, str):
        return
    if not is_array(system):
        raise invalid("system: Input should be a valid string or list")
    for index, block in enumerate(system):
        if not is_object(block) or block.get("type") != "text":
            raise invalid(f"system.{index}: Input tag does not match the expected tag 'text'")
        _check_text(block, f"system.{index}")


def check_messages(messages: Any, *, version: str, prefill: bool) -> None:
    """The messages: shape, roles, blocks, and each tool call with its result in the next message."""
    if messages is None:
        raise invalid("messages: Field required")
    if not is_array(messages):
        raise invalid("messages: Input should be a valid list")
    if not messages:
        raise invalid("messages: at least one message is required")
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        path = f"messages.{index}"
        if not is_object(message):
            raise invalid(f"{path}: Input should be a valid dictionary")
        for key in message:
            if key not in ("role", "content"):
                raise invalid(f"{path}.{key}: Extra inputs are not permitted")
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            raise invalid(f"{path}.role: Input should be 'user', 'assistant' or 'system'")
        blocks = _blocks(message.get("content"), path)
        for position, block in enumerate(blocks):
            _check_block(block, f"{path}.content.{position}", str(role), version)
        open_calls = _check_tool_results(blocks, open_calls, path)
    if messages[0].get("role") == "assistant":
        raise invalid('messages: first message must use the "user" role')
    if messages[-1]["role"] == "assistant" and not prefill:
        raise invalid(PREFILL)
    if open_calls:
        raise invalid(_unanswered(len(messages) - 1, open_calls))


def _blocks(content: Any, path: str) -> list[dict[str, Any]]:
    if content is None:
        raise invalid(f"{path}.content: Field required")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not is_array(blocks) or not all(is_object(block) for block in blocks):
        raise invalid(f"{path}.content: Input should be a valid string or a list of blocks")
    if not blocks:
        raise invalid(f"{path}: content must not be empty")
    return blocks


def _check_block(block: dict[str, Any], path: str, role: str, version: str) -> None:
    kind = block.get("type")
    known = {"user": USER_BLOCKS, "assistant": ASSISTANT_BLOCKS}.get(role, frozenset({"text"}))
    if kind not in known and not str(kind).startswith(("server_", "web_", "code_execution", "bash_")):
        raise invalid(f"{path}: Input tag {kind!r} is not allowed in {role} messages")
    if kind == "text":
        _check_text(block, path)
        if role == "user" and block.get("citations") and version != "2023-06-01":
            raise invalid(f"{path}.citations: citations are not permitted on user text blocks")
    elif kind == "document":
        if role == "assistant" and version != "2023-06-01":
            raise invalid(f"{path}: document blocks are not permitted in assistant messages")
        _check_document(block, path)
    elif kind == "search_result":
        for key in ("source", "title", "content"):
            if key not in block:
                raise invalid(f"{path}.search_result.{key}: Field required")
        if not is_array(block["content"]) or not block["content"]:
            raise invalid(f"{path}.search_result.content: Input should be a non-empty list of text blocks")
    elif kind == "thinking" and not (isinstance(block.get("signature"), str) and block["signature"]):
        raise invalid(f"{path}.thinking.signature: Field required")
    elif kind == "tool_result" and is_array(block.get("content")):
        for position, inner in enumerate(_blocks(block["content"], path)):
            _check_block(inner, f"{path}.content.{position}", role, version)


def _check_document(block: dict[str, Any], path: str) -> None:
    source = block.get("source")
    if not is_object(source):
        raise invalid(f"{path}.document.source: Field required")
    kind = source.get("type")
    if kind not in ("text", "content", "base64", "url", "file"):
        raise invalid(f"{path}.document.source: Input tag {kind!r} does not match any of the expected tags")
    if kind == "text" and (source.get("media_type") != "text/plain" or not isinstance(source.get("data"), str)):
        raise invalid(f"{path}.document.source.text: needs media_type 'text/plain' and string data")
    if kind == "text" and not source["data"]:
        raise invalid(f"{path}.document.source.text.data: must be non-empty")


def _check_text(block: dict[str, Any], path: str) -> None:
    if not isinstance(block.get("text"), str):
        raise invalid(f"{path}.text: Input should be a valid string")
    if not block["text"]:
        marked = block.get("cache_control") is not None
        raise invalid(
            f"{path}: cache_control cannot be set for empty text blocks"
            if marked
            else "messages: text content blocks must be non-empty"
        )


def _check_tool_results(blocks: list[dict[str, Any]], open_calls: list[str], path: str) -> list[str]:
    """Settles the calls of the previous message; returns the calls this message opens."""
    results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
    for result in results:
        if result not in open_calls:
            raise invalid(
                f"{path}.content: unexpected `tool_use_id` found in `tool_result` blocks: {result}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
    left = [call for call in open_calls if call not in results]
    if left:
        raise invalid(_unanswered(int(path.split(".")[1]) - 1, left))
    return [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def _unanswered(index: int, calls: list[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
        "next message."
    )
