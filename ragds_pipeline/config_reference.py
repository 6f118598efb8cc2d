"""Writes ``docs/configuration.md`` from the settings models, so that the reference cannot drift from the code.

``python -m ragds_pipeline.config_reference > docs/configuration.md``; a test compares the two.
"""

from __future__ import annotations

import sys
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ragds_pipeline.config import KbManifest, Settings

_HEAD = """# Configuration

Generated from `ragds_pipeline/config.py` by `make docs`. Unknown names and values that cannot be used stop a run at
once, with the name and what is wrong.

Keys are never configured: the `api` backend takes `ANTHROPIC_API_KEY` from the environment.
"""


def reference() -> str:
    """Return the reference of ``ragds.yaml`` and ``kb.yaml`` as Markdown."""
    parts = [_HEAD, "## `ragds.yaml`", "", *_model(Settings, ""), "## `kb.yaml`", ""]
    parts += ["In the knowledge base's own folder.", "", *_model(KbManifest, "")]
    return "\n".join(parts).rstrip() + "\n"


def _model(model: type[BaseModel], prefix: str) -> list[str]:
    plain, nested = [], []
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        inner = field.annotation if isinstance(field.annotation, type) else None
        if inner is not None and issubclass(inner, BaseModel):
            nested.append((f"{prefix}{name}", inner, field))
        else:
            plain.append(f"| `{prefix}{name}` | {_default(field)} | {_text(field)} |")
    lines = ["| setting | default | what it is |", "|---|---|---|", *plain, ""] if plain else []
    for name, inner, field in nested:
        lines += [f"### `{name}`", "", _text(field), "", *_model(inner, f"{name}.")]
    return lines


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    shown = ", ".join(f"{k}: {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
    if value is None or shown == "" or value == {} or value == []:
        return "(none)"
    return f"`{shown}`".replace("|", "\\|") + _choices(field)


def _choices(field: FieldInfo) -> str:
    args = [str(arg) for arg in get_args(field.annotation) if isinstance(arg, str)]
    others = [arg for arg in args if arg != str(field.default)]
    return f" (or {', '.join(f'`{arg}`' for arg in others)})" if others else ""


def _text(field: FieldInfo) -> str:
    return " ".join((field.description or "").replace("``", "`").split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(reference())
