"""Find the JSON that was asked for in what a model wrote.

Models put JSON into fences, write prose around it, stop in the middle, or answer with a lone number. A reply either
yields a value of the shape that was asked for, or an UnreadableReply that says what was found instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pydantic_core

_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.S)
_OPENING = re.compile(r"[{\[]")
_MAX_STARTS = 200
"""Opening brackets tried in a text that is no JSON as a whole; bounds the work on hostile replies."""


class UnreadableReply(ValueError):
    """The reply holds no JSON of the shape that was asked for."""


@dataclass(frozen=True, slots=True)
class ReadJson:
    """A value found in a reply."""

    value: Any
    truncated: bool
    """True where the text ended inside the value: whatever stands last in it may be incomplete, down to the digits
    of a number."""


def read_json(text: str, wanted: Callable[[Any], bool]) -> ReadJson:
    """Return the first JSON value in ``text`` for which ``wanted`` holds.

    Tried in this order: the whole text, fenced blocks, then every bracket in the text, where a value that the end of
    the text cuts off counts before those inside it. Raises UnreadableReply where there is none.
    """
    seen = "no JSON"
    for found in _values(text):
        if wanted(found.value):
            return found
        if not found.truncated:
            seen = f"JSON of another shape ({_shape(found.value)})"
    raise UnreadableReply(f"{seen} in a reply of {len(text)} characters: {text.strip()[:80]!r}")


def _values(text: str) -> Iterator[ReadJson]:
    for source in (text, *(match.group(1) for match in _FENCE.finditer(text))):
        try:
            yield ReadJson(json.loads(source), truncated=False)
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder()
    at = tried = 0
    while (match := _OPENING.search(text, at)) and tried < _MAX_STARTS:
        tried += 1
        try:
            value, at = decoder.raw_decode(text, match.start())
            yield ReadJson(value, truncated=False)
        except (ValueError, RecursionError):
            at = match.end()
            try:
                yield ReadJson(pydantic_core.from_json(text[match.start() :], allow_partial=True), truncated=True)
            except ValueError:
                continue  # not the beginning of a value: the brackets of prose, or text after a broken object


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(str, list(value)[:5])) or 'no keys'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "null" if value is None else f"a {type(value).__name__}"
