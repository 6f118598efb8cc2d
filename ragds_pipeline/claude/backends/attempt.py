"""One attempt at one call: what is sent, and what came back as the API said it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragds_pipeline.claude.clients import Client

STREAM_ABOVE_TOKENS = 16_000
"""The SDK refuses plain calls from 21,334 output tokens on, and long silent connections are cut on the way."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came back."""

    message: dict[str, Any]
    request_id: str
    headers: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """False for a stream that was cut: the SDK raises nothing for it, but no ``stop_reason`` ever came."""
        return self.message.get("stop_reason") is not None


async def attempt(client: Client, body: dict[str, Any]) -> Arrived:
    """Send ``body`` once. Raises whatever the SDK or its HTTP client raises."""
    if int(body["max_tokens"]) > STREAM_ABOVE_TOKENS:
        async with client.messages.stream(**body) as stream:
            message = await stream.get_final_message()
            response = stream.response
            plain = _checked(_plain(message.model_dump(mode="json", exclude_none=True)))
            return Arrived(plain, response.headers.get("request-id", ""), response.headers)
    raw = await client.messages.with_raw_response.create(**body)
    # As the API wrote it: the SDK's models would be built only to be taken apart again.
    return Arrived(_checked(_plain(raw.http_response.json())), raw.headers.get("request-id", ""), raw.headers)


def _checked(message: Any) -> dict[str, Any]:
    if (
        not isinstance(message, dict)
        or message.get("type") != "message"
        or not isinstance(message.get("content"), list)
    ):
        raise ValueError(f"no message came back: {str(message)[:200]}")
    return message


def _plain(value: Any) -> Any:
    """Return JSON without its nulls, as the SDK's models leave them out, and with text that can be stored.

    Half of a surrogate pair, which JSON can escape and UTF-8 cannot hold, becomes a question mark.
    """
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode("utf-8")
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
