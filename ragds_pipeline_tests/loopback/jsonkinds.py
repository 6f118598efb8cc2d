"""Telling JSON objects and arrays apart in a way type checkers follow: `isinstance` would leave their items
unknown."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """A JSON object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """A JSON array."""
    return isinstance(value, list)


def object_at(value: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under `key`, an empty one when there is none or it is of another kind."""
    found = value.get(key)
    return found if is_object(found) else {}
