"""What a document's leaf blocks are, for all who work on them.

What belongs here: the kinds and the record. What does not: finding blocks (``kb.structure``).
"""

from __future__ import annotations

from typing import NamedTuple

FRONT_MATTER = "front_matter"
HEADING = "heading"
PARAGRAPH = "paragraph"
LIST_ITEM = "list_item"
TABLE = "table"
FENCE = "fence"
CODE = "code"
HTML = "html"
COMMENT = "comment"
RULE = "rule"
REFERENCE = "reference"


class Block(NamedTuple):
    """A leaf block: whole lines ``[start_char, end_char)``, without the line break that ends the last one.

    List and quote markers stand inside the block. Blocks follow each other in order and never overlap;
    between them there is only white space.
    """

    kind: str
    """``front_matter``, ``heading``, ``paragraph``, ``list_item`` (a paragraph in a list), ``table``,
    ``fence``, ``code`` (indented), ``html``, ``comment`` (HTML), ``rule`` (thematic break) or ``reference``
    (link target)."""
    start_char: int
    end_char: int
    depth: int
    """How many lists, items and quotes a cut before this block goes through; 0 between top-level blocks."""
    level: int
    """1-6 for a heading at the top level; 0 for all else, headings inside lists or quotes included."""
