"""Just enough HTTP/1.1 for the SDK: keep-alive, Content-Length in, Content-Length or chunks out.

Written by hand instead of `http.server` because one event loop with one write per answer keeps a fixed
latency at 32 connections; a thread per connection does not. Faulty deliveries live here too, since they are
about bytes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

HEAD_LIMIT = 256 * 1024
Delivery = Literal["whole", "drip", "cut", "cut_cleanly", "drop"]


@dataclass(frozen=True)
class Request:
    """One request. Header names are lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def keep_alive(self) -> bool:
        """Whether the client wants to reuse the connection."""
        return self.headers.get("connection", "").lower() != "close"


@dataclass
class Reply:
    """An answer and the way it is delivered.

    Args:
        chunks: The body; one element is sent with Content-Length, `streamed` sends each as a chunk.
        delivery: `cut` tears the connection after the share `after` of the body, `cut_cleanly` ends a
            streamed body there as if it were complete, `drop` sends nothing at all.
    """

    status: int = 200
    chunks: Sequence[bytes] = ()
    headers: dict[str, str] = field(default_factory=dict[str, str])
    content_type: str = "application/json"
    streamed: bool = False
    delivery: Delivery = "whole"
    after: float = 0.5
    pieces: int = 8
    piece_delay: float = 0.0


def json_reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """A JSON answer."""
    return Reply(status, [json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")], dict(headers or {}))


class TooLarge(Exception):
    """The announced body is over the limit."""


async def read_request(reader: asyncio.StreamReader, limit: int) -> Request | None:
    """The next request of a connection; None when the client closed it between requests."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _version = first.split(" ", 2)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader, limit)
    else:
        length = int(headers.get("content-length") or 0)
        if length > limit:
            await _discard(reader, length)
            raise TooLarge(length)
        body = await reader.readexactly(length) if length else b""
    parts = urlsplit(target)
    return Request(method, unquote(parts.path), dict(parse_qsl(parts.query)), headers, body)


async def _discard(reader: asyncio.StreamReader, length: int) -> None:
    """Reads a refused body away, so that the client gets the 413 and not a reset while it still sends."""
    while length > 0:
        piece = await reader.read(min(length, 1 << 20))
        if not piece:
            return
        length -= len(piece)


async def _read_chunks(reader: asyncio.StreamReader, limit: int) -> bytes:
    body = bytearray()
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        if size == 0:
            while (await reader.readline()).strip():
                pass
            return bytes(body)
        if len(body) + size > limit:
            raise TooLarge(len(body) + size)
        body += await reader.readexactly(size)
        await reader.readexactly(2)


async def write_reply(writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Delivers an answer. Returns whether the connection can serve another request."""
    if reply.delivery == "drop":
        writer.transport.abort()
        return False
    body = list(reply.chunks)
    total = sum(len(chunk) for chunk in body)
    framing = "transfer-encoding: chunked" if reply.streamed else f"content-length: {total}"
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Overloaded"
    lines = [f"HTTP/1.1 {reply.status} {phrase}", f"content-type: {reply.content_type}", framing]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    cut = reply.delivery in ("cut", "cut_cleanly")
    if cut:
        body = _first_part(body, reply.after)
    if reply.delivery == "drip":
        body = _pieces(b"".join(body), reply.pieces)
    frames = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in body if chunk] if reply.streamed else body
    ends_well = not (reply.delivery == "cut" or (reply.delivery == "cut_cleanly" and not reply.streamed))
    if reply.streamed and ends_well:
        frames = [*frames, b"0\r\n\r\n"]
    try:
        if reply.delivery == "drip":
            writer.write(head)
            for frame in frames:
                await asyncio.sleep(reply.piece_delay)
                writer.write(frame)
                await writer.drain()
        else:
            writer.write(head + b"".join(frames))
            await writer.drain()
    except ConnectionError:
        return False
    return ends_well


def _first_part(chunks: list[bytes], share: float) -> list[bytes]:
    """The first `share` of a body: whole events of a stream, or a slice of the bytes."""
    if len(chunks) > 1:
        return chunks[: max(1, int(len(chunks) * share))]
    joined = b"".join(chunks)
    return [joined[: max(1, int(len(joined) * share))]]


def _pieces(body: bytes, count: int) -> list[bytes]:
    size = max(1, -(-len(body) // max(1, count)))
    return [body[start : start + size] for start in range(0, len(body), size)]
