"""Small pictures for asset metadata, drawn by hand: a plotting library would weigh more than most of what is installed.

The Dagster UI shows a picture inside Markdown where it is a ``data:`` address. A picture has a ground of its own, so
that it can be read in the dark theme as well.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

INK, FAINT, GROUND, STRONG, WEAK, ALARM = "#1f2937", "#6b7280", "#ffffff", "#2f7d5b", "#b6bcc6", "#b4412f"


def text(x: float, y: float, content: str, *, size: int = 12, fill: str = INK, anchor: str = "start") -> str:
    """Return a line of text; ``anchor`` is ``start``, ``middle`` or ``end``."""
    shown = "".join(c if c.isprintable() else " " for c in content)
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">{escape(shown)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str) -> str:
    """Return a filled rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{max(0.0, width):g}" height="{height:g}" fill="{fill}"/>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, *, width: float = 1, dashed: bool = False) -> str:
    """Return a straight line."""
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" stroke-width="{width:g}"{dash}/>'


def dot(x: float, y: float, radius: float, fill: str) -> str:
    """Return a filled circle."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}"/>'


def picture(width: int, height: int, parts: Iterable[str]) -> str:
    """Return a whole SVG."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    inner = "".join([box(0, 0, width, height, GROUND), *parts])
    return f'{head} font-family="sans-serif">{inner}</svg>'


def as_markdown(svg: str, alternative: str) -> str:
    """Return the picture as a Markdown image; ``alternative`` is read where it cannot be seen."""
    address = base64.b64encode(svg.encode()).decode()
    said = "".join(c for c in alternative if c not in "[]()\n")
    return f"![{said}](data:image/svg+xml;base64,{address})"
