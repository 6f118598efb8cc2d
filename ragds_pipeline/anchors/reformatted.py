"""Whether two stretches that match by their keys also say the same: what reformatting may change by itself.

Carried: white space and line breaks, emphasis, code marks, list bullets, heading marks, targets of links within the
documents, the form of quotation marks, dashes, ligatures and full-width characters. Everything else goes to a person.
"""

from __future__ import annotations

import re

from ragds_pipeline.anchors.blocks_around import is_row
from ragds_pipeline.anchors.meaning import meaning_changes
from ragds_pipeline.anchors.reading import tokens
from ragds_pipeline.anchors.reasons import LAYOUT, LINK, MEANING, OK, READING
from ragds_pipeline.anchors.view import TextView

Range = tuple[int, int]


def says_the_same(old: TextView, was: Range, new: TextView, now: Range) -> tuple[str, str, tuple[str, ...]]:
    """Return ``ok`` or the reason for a look, a detail, and what touches the meaning.

    The two places have the same match key; the rest is compared here.
    """
    before, after = old.plain(*was), new.plain(*now)
    if tokens(before) != tokens(after):
        changes = meaning_changes(before, after)
        return (MEANING if changes else READING), f"{before!r} -> {after!r}" if not changes else "", changes
    if _indentation(old, was) != _indentation(new, now):
        return LAYOUT, "the indentation or the lines of code changed", ()
    if _rows(old.text[slice(*was)]) != _rows(new.text[slice(*now)]):
        return LAYOUT, "the rows of a table changed", ()
    gone = _outside_links(old, was) - _outside_links(new, now)
    if gone:
        return LINK, f"no longer leads to {', '.join(sorted(gone))}", ()
    return OK, "", ()


def _indentation(view: TextView, place: Range) -> list[tuple[int, str]]:
    """The lines of code in a place with their indentation relative to the first; empty outside of code."""
    start, end = place
    if not any(low <= start < high for low, high in view.fences):
        return []
    first = view.text.rfind("\n", 0, start) + 1
    lines = [line.expandtabs(8) for line in view.text[first:end].split("\n") if line.strip()]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    return [(indent - indents[0], line.strip()) for indent, line in zip(indents, lines, strict=True)]


def _rows(text: str) -> int:
    """How many lines are rows of a table."""
    return sum(is_row(line) for line in text.split("\n")) if "|" in text else 0


_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_INSIGNIFICANT = re.compile(r"^https?://(?:www\.)?|#.*$|/$", re.IGNORECASE)


def _outside_links(view: TextView, place: Range) -> set[str]:
    """Where links in a place lead outside of the documents: addresses, mail, telephone."""
    found = set()
    at, layout = view.layout(*place)
    for start, end, target in layout.links:
        bare = target.strip("<>")
        if at + start < place[1] and at + end > place[0] and _SCHEME.match(bare):
            found.add(_INSIGNIFICANT.sub("", _INSIGNIFICANT.sub("", bare)))
    return found
