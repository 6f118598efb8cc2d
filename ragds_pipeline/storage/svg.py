"""Small pictures for asset metadata, drawn by hand: a plotting library would weigh more than most of what is installed.

The Dagster UI shows a picture inside Markdown where it is a ``data:`` address, and at once, without a click, where the
whole Markdown has fewer than 1,000 characters. So a picture is a few strokes: all bars of one colour are one path. It
has a ground of its own, so that it can be read in the dark theme as well.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

PALE, STRONG, WEAK, ALARM = "#dde", "#387", "#aab", "#b43"

SHOWN_AT_ONCE = 1_000
"""Characters of Markdown from which on the Dagster UI wants a click."""


def text(y: int, content: str, x: int = 0) -> str:
    """Return a line of text that begins at (x, y)."""
    shown = "".join(c if c.isprintable() else " " for c in content)
    at = f' x="{x}"' if x else ""
    return f'<text{at} y="{y}">{escape(shown)}</text>'


def across(y: int, x: int, end: int) -> str:
    """Return a piece of a path: a level line at height ``y``."""
    return f"M{x} {y}H{end}"


def down(x: int, y: int, end: int) -> str:
    """Return a piece of a path: an upright line at ``x``."""
    return f"M{x} {y}V{end}"


def path(pieces: Iterable[str], colour: str, width: int = 1) -> str:
    """Return pieces of one colour and width as one path; nothing where there are none."""
    drawn = "".join(pieces)
    return f'<path stroke="{colour}" stroke-width="{width}" d="{drawn}"/>' if drawn else ""


def picture(width: int, height: int, parts: Iterable[str]) -> str:
    """Return a whole SVG."""
    style = "background:#fff;font:12px sans-serif"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" style="{style}">'
    return f"{head}{''.join(parts)}</svg>"


def as_markdown(svg: str, alternative: str) -> str:
    """Return the picture as a Markdown image; ``alternative`` is read where it cannot be seen."""
    address = base64.b64encode(svg.encode()).decode()
    said = "".join(c for c in alternative if c not in "[]()\n")
    return f"![{said}](data:image/svg+xml;base64,{address})"
