"""What a structured-output schema may not contain; a schema the API cannot compile is a 400, not a bad
answer."""

from __future__ import annotations

from typing import Any

from ragds_pipeline_tests.loopback.errors import invalid
from ragds_pipeline_tests.loopback.jsonkinds import is_array, is_object

UNSUPPORTED = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "oneOf",
    "not",
    "if",
)
MAX_OPTIONAL = 24
MAX_UNIONS = 16
PATH = "output_config.format.schema"


def check_schema(schema: Any, path: str = PATH) -> None:
    """Raises the API's 400 when the schema is outside the supported subset."""
    if not is_object(schema):
        raise invalid(f"{path}: Input should be a valid dictionary")
    definitions: dict[str, Any] = schema.get("$defs") or schema.get("definitions") or {}
    counts = {"optional": 0, "union": 0}
    _check(schema, path, counts)
    for name, node in definitions.items():
        _check(node, f"{path}.$defs.{name}", counts)
        if _reaches(node, name, definitions, set()):
            raise invalid(f"{path}.$defs.{name}: recursive schemas are not supported")
    if counts["optional"] > MAX_OPTIONAL:
        raise invalid(f"{path}: too many optional parameters ({counts['optional']}, at most {MAX_OPTIONAL})")
    if counts["union"] > MAX_UNIONS:
        raise invalid(f"{path}: too many parameters with union types ({counts['union']}, at most {MAX_UNIONS})")


def _check(node: Any, path: str, counts: dict[str, int]) -> None:
    if not is_object(node):
        raise invalid(f"{path}: a schema must be an object")
    for word in UNSUPPORTED:
        if word in node:
            raise invalid(f"{path}: property '{word}' is not supported")
    if node.get("minItems", 0) not in (0, 1):
        raise invalid(f"{path}: 'minItems' values other than 0 or 1 are not supported")
    kind = node.get("type")
    if kind == "object" or "properties" in node:
        if node.get("additionalProperties") is not False:
            raise invalid(f"{path}: for 'object' type, 'additionalProperties' must be explicitly set to false")
        required = node.get("required", [])
        for key, item in node.get("properties", {}).items():
            counts["optional"] += key not in required
            _check(item, f"{path}.properties.{key}", counts)
        for key in required:
            if key not in node.get("properties", {}):
                raise invalid(f"{path}.required: '{key}' is not a property")
    elif kind == "array":
        if "items" in node:
            _check(node["items"], f"{path}.items", counts)
    elif kind is None and not any(word in node for word in ("$ref", "anyOf", "allOf", "enum", "const")):
        raise invalid(f"{path}: schema must have a 'type', '$ref', 'anyOf', 'allOf', 'enum' or 'const'")
    counts["union"] += is_array(kind) or "anyOf" in node
    for word in ("anyOf", "allOf"):
        for index, item in enumerate(node.get(word, [])):
            _check(item, f"{path}.{word}.{index}", counts)


def _reaches(node: Any, name: str, definitions: dict[str, Any], seen: set[str]) -> bool:
    """Whether following references from `node` leads back to the definition `name`."""
    if is_array(node):
        return any(_reaches(item, name, definitions, seen) for item in node)
    if not is_object(node):
        return False
    target = str(node.get("$ref", "")).rsplit("/", 1)[-1]
    if target == name:
        return True
    if target and target not in seen:
        seen.add(target)
        if _reaches(definitions.get(target), name, definitions, seen):
            return True
    return any(_reaches(item, name, definitions, seen) for item in node.values())
