"""Metadata that a person reads in the Dagster UI: tables as Markdown, money, files as links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg

Facts = dict[str, Any]
"""Metadata of an asset by name; values as Dagster takes them."""


_FAULTS_SHOWN = 20


def markdown_table(rows: Sequence[Mapping[str, Any]], empty: str = "(none)") -> dg.MarkdownMetadataValue:
    """Return rows as a Markdown table; no text in a cell can break out of it."""
    if not rows:
        return dg.MetadataValue.md(empty)
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(column)) for column in columns) + " |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    text = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    return " ".join(text.split())


def dollars(amount: Decimal) -> str:
    """Return an amount as people read it; small ones keep four decimals."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"


def file_link(path: Path) -> dg.PathMetadataValue:
    """Return the path of a local file with a button that copies it.

    Not a ``file://`` link: browsers refuse to follow one from a page that was served over HTTP.
    """
    return dg.MetadataValue.path(str(path.resolve()))


def fault_facts(faults: Sequence[str]) -> Facts:
    """Return the metadata of a check: how many faults, and the first of them where there are any."""
    if not faults:
        return {"faults": 0}
    shown = dg.MetadataValue.md("\n".join(f"- {fault}" for fault in faults[:_FAULTS_SHOWN]))
    return {"faults": len(faults), "first of them": shown}
