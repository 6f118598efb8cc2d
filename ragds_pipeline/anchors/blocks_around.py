"""What a span stands in: its paragraph, its sentence, the line that leads in to its list or table, its headings.

What belongs here: questions about one text. What does not: comparing two (``surroundings``). Blocks are told by the
signs at the beginning of lines: a whole Markdown parse of each changed document would cost more than the rest of the
ladder, and a bound that is too wide only sends a span to a person.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from ragds_pipeline.anchors.view import TextView
from ragds_pipeline.spans.breaks import sentence_ends

_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)*")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•・]|\d{1,9}[.)]|[a-zA-Z][.)])[ \t]+")
_ALONE = re.compile(
    r"[ \t]*(?:#{1,6}(?:\s|$)|`{3}|~{3}|[=-]{3,}[ \t]*$|<!--|</?(?:table|tr|td|th|ul|ol|li|p|div|h\d)\b)"
)
_MOST_LINES = 400
"""A lead-in is looked for at most so many lines above; a table's header further up is in its section anyway."""


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    """Without quote marks."""


def _line_at(text: str, at: int) -> _Line:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return _Line(start, end, text[_skip_quote(text, start, end) : end])


def _skip_quote(text: str, start: int, end: int) -> int:
    if text.find(">", start, end) < 0:  # most lines
        return start
    match = _QUOTE.match(text, start, end)
    return match.end() if match and ">" in match[0] else start


def _above(text: str, line: _Line) -> _Line | None:
    return _line_at(text, line.start - 1) if line.start > 0 else None


def _below(text: str, line: _Line) -> _Line | None:
    return _line_at(text, line.end + 1) if line.end < len(text) else None


def is_row(line: str) -> bool:
    """Whether a line looks like a row of a table."""
    if "|" not in line:
        return False
    bare = line.strip()
    return bare.startswith("|") or " | " in bare or ("|" in bare and not bare.strip("|:- "))


def _stands_alone(line: str) -> bool:
    return not line.strip() or is_row(line) or bool(_ALONE.match(line))


def paragraph(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the paragraph, list item, table row or heading that holds a span; several if the span does."""
    first = _line_at(text, start)
    while not _stands_alone(first.text) and not _ITEM.match(first.text):
        above = _above(text, first)
        if above is None or _stands_alone(above.text):
            break
        first = above
    last = _line_at(text, max(start, end - 1))
    while not _stands_alone(last.text):
        below = _below(text, last)
        if below is None or _stands_alone(below.text) or _ITEM.match(below.text):
            break
        last = below
    return first.start, last.end


def sentence(view: TextView, start: int, end: int) -> tuple[int, int]:
    """Return the sentence or sentences that hold a span, within its paragraph; in code, its lines."""
    text = view.text
    if view.is_in_code(start):
        return _line_at(text, start).start, _line_at(text, max(start, end - 1)).end
    first, last = paragraph(text, start, end)
    ends = sentence_ends(text, first, last)
    before = [at for at in ends if at <= start]
    after = [at for at in ends if at >= end]
    return (before[-1] if before else first), (after[0] if after else last)


_MOST_GROWTH = 3
"""A sentence that grew to more than so many times what was proposed of it is not taken whole."""
_SIGNS = re.compile(r"[^\w]*")
_MARKER = re.compile(r"(?:[ \t]*>)*[ \t]*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?\s*")


def whole_sentences(old: TextView, was: tuple[int, int], new: TextView, now: tuple[int, int]) -> tuple[int, int]:
    """Move the bounds of an edited place to those of its sentences, where the old span began and ended with one."""
    now = _one_block(old.text[slice(*was)], new.text, now)
    first, last = sentence(old, *was)
    new_first, new_last = sentence(new, *now)
    room = _MOST_GROWTH * max(now[1] - now[0], was[1] - was[0])
    start, end = now
    marker = _MARKER.match(old.text, first, was[0])
    if was[0] == first or (marker is not None and marker.end() == was[0]):
        begins = skip_marker(new.text, new_first, now[1]) if was[0] != first else new_first
        start = begins if now[0] - begins <= room else start
    if _SIGNS.fullmatch(old.text, was[1], last) and new_last - now[1] <= room:
        end = new_last
        while end > start and new.text[end - 1].isspace():
            end -= 1
    return (start, end) if start < end else now


def _one_block(content: str, text: str, now: tuple[int, int]) -> tuple[int, int]:
    """Leave out what lies in another block, where the old span lay in one: the longest part stays."""
    if "\n\n" in content or "\n\n" not in text[slice(*now)]:
        return now
    start, end = now
    parts: list[tuple[int, int]] = []
    while (gap := text.find("\n\n", start, end)) >= 0:
        parts.append((start, gap))
        start = gap + 2
    return max([*parts, (start, end)], key=lambda part: part[1] - part[0])


def skip_marker(text: str, start: int, end: int) -> int:
    """Return where an item begins after its bullet, number or check box, but not beyond ``end``."""
    match = _MARKER.match(text, start, end)
    return match.end() if match else start


def lead_in(text: str, start: int) -> list[tuple[int, int]]:
    """Return what must be read before a span makes sense, as ranges: a table's header row, the items above a
    nested one, and the sentence that introduces the list, table or block."""
    line = _line_at(text, start)
    if is_row(line.text):
        return _table_lead(text, line)
    first = _line_at(text, paragraph(text, start, start + 1)[0])
    item = _ITEM.match(first.text)
    if item is None:
        return _introduction(text, _above(text, first), always=False)
    return _list_lead(text, first, _indent(item))


def _indent(item: re.Match[str]) -> int:
    return len(item[1].expandtabs(4))


def _table_lead(text: str, row: _Line) -> list[tuple[int, int]]:
    top = row
    for _ in range(_MOST_LINES):
        above = _above(text, top)
        if above is None or not is_row(above.text):
            break
        top = above
    header = [] if top.start == row.start else [(top.start, top.end)]
    return header + _introduction(text, _above(text, top), always=False)


def _list_lead(text: str, line: _Line, indent: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    above = _above(text, line)
    for _ in range(_MOST_LINES):
        if above is None:
            break
        if not above.text.strip():
            above = _above(text, above)
            continue
        if _stands_alone(above.text):
            break
        first = _line_at(text, paragraph(text, above.start, above.start + 1)[0])
        item = _ITEM.match(first.text)
        own = len(first.text) - len(first.text.lstrip())
        if item is None and own <= indent and not (own and own == indent):
            return found + _introduction(text, above, always=True)
        if item is not None and _indent(item) < indent:
            found.append((first.start, above.end))
            indent = _indent(item)
        above = _above(text, first)
    return found


def _introduction(text: str, line: _Line | None, *, always: bool) -> list[tuple[int, int]]:
    """The last sentence above a block; unless ``always``, only if it ends with a colon."""
    while line is not None and not line.text.strip():
        line = _above(text, line)
    if line is None or _ALONE.match(line.text):
        return []
    if not always and not line.text.rstrip().rstrip("*_`").endswith((":", "：")):
        return []
    first, last = paragraph(text, line.start, line.start + 1)
    last = min(last, line.end)
    ends = sentence_ends(text, first, last)
    return [(ends[-1] if ends else first, last)]


def innermost_section(view: TextView, start: int) -> int:
    """Return the index of the innermost section that holds a place; -1 for none."""
    sections = view.sections
    at = bisect_right(view.section_starts, start) - 1
    while at >= 0 and sections[at][2] <= start:
        at = view.parents[at]
    return at


def own_text(view: TextView, index: int) -> tuple[int, int]:
    """Return a section's text without its heading and its sub-sections."""
    _, body, end = view.sections[index]
    following = view.sections[index + 1][0] if index + 1 < len(view.sections) else end
    return body, max(body, min(end, following))


def states(view: TextView, start: int, end: int) -> frozenset[str]:
    """Return what holds for a span by what stands around it: commented out, struck out, code, quoted."""
    text = view.text
    found = set()
    if view.is_in_comment(start):
        found.add("commented out")
    if view.is_in_code(start):
        found.add("code")
    line = _line_at(text, start)
    if line.end - line.start != len(line.text):
        found.add("block quote")
    if view.strikes:
        first, _ = paragraph(text, start, end)
        before = text[first:start]
        opened = len(re.findall(r"<(?:del|s|strike)\b[^>]*>", before)) - len(re.findall(r"</(?:del|s|strike)>", before))
        if before.count("~~") % 2 or opened > 0:
            found.add("struck out")
    return frozenset(found)
