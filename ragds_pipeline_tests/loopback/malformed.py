"""Every way a model's JSON has been seen to come back broken, as a function of the good text.

Derived from the scripted answer instead of fixed strings, so that a lenient parser is tried on the task's own
shape: a fence around *this* verdict, a dict where *this* verdict has a string.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, get_args

from ragds_pipeline_tests.loopback.jsonkinds import is_array, is_object

MalformedShape = Literal[
    "fenced",
    "fenced_with_prose",
    "prose_around",
    "lone_number",
    "null",
    "empty_list",
    "empty_object",
    "list_around",
    "dict_for_string",
    "string_for_dict",
    "truncated",
    "trailing_comma",
    "single_quotes",
    "nan",
    "two_objects",
    "missing_key",
    "extra_key",
    "bom",
    "empty",
    "whitespace",
    "prose_only",
]
MALFORMED_SHAPES: tuple[MalformedShape, ...] = get_args(MalformedShape)


def malform(text: str, shape: MalformedShape) -> str:
    """`text` broken in the named way. Shapes that need an object leave other JSON in a fixed broken form."""
    fixed: dict[str, str] = {
        "fenced": f"```json\n{text}\n```",
        "fenced_with_prose": f"Here is the result:\n\n```json\n{text}\n```\n\nLet me know if you need more.",
        "prose_around": f"Sure! The answer is {text} as requested.",
        "lone_number": "7",
        "null": "null",
        "empty_list": "[]",
        "empty_object": "{}",
        "list_around": f"[{text}]",
        "string_for_dict": json.dumps(text),
        "truncated": text[: max(1, len(text) * 2 // 3)].rstrip("}]"),
        "trailing_comma": text[:-1] + "," + text[-1:],
        "two_objects": f"{text}\n{text}",
        "bom": "\ufeff" + text,
        "empty": "",
        "whitespace": " \n\t ",
        "prose_only": "I looked at the passage carefully and could not decide.",
    }
    if shape in fixed:
        return fixed[shape]
    value = _parsed(text)
    if shape == "single_quotes":
        return repr(value)
    if shape == "dict_for_string":
        return json.dumps(_first_leaf(value, str, _wrapped), ensure_ascii=False)
    if shape == "nan":
        return json.dumps(_first_leaf(value, object, _not_a_number), ensure_ascii=False)
    record: dict[str, Any] = dict(value) if is_object(value) else {"value": value}
    if shape == "missing_key":
        return json.dumps(dict(list(record.items())[1:]), ensure_ascii=False)
    return json.dumps({**record, "unasked": True}, ensure_ascii=False)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"text": text}


def _wrapped(leaf: Any) -> Any:
    return {"value": leaf}


def _not_a_number(_leaf: Any) -> Any:
    return float("nan")


def _first_leaf(value: Any, kind: type[Any], change: Callable[[Any], Any]) -> Any:
    """`value` with its first leaf of `kind` changed, depth first; unchanged when there is none."""
    done = False

    def walk(node: Any) -> Any:
        nonlocal done
        if is_object(node):
            return {key: walk(item) for key, item in node.items()}
        if is_array(node):
            return [walk(item) for item in node]
        if not done and isinstance(node, kind):
            done = True
            return change(node)
        return node

    return walk(value)
