"""Which characters of a Markdown text are only layout: the same words are read with them and without them.

What belongs here: marking such characters. What does not: deciding whether two texts read the same (``reading``).

Only what cannot change the meaning is marked. Kept as text are therefore: strike-through (``~~``, ``<del>``),
superscripts and subscripts, comments, foot-note marks, check boxes, images, what parts the cells of a table, the
numbers of an ordered list, bare addresses, and everything inside a fenced code block. Where a sign may be something
else than markup (``5*3*2``, ``snake_case``, ``20*``) it is kept: a span that then fails to match goes to a person.

The rules are those of CommonMark as far as regular expressions go; a whole parse gives no positions of inline
markup (markdown-it #675).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

KEPT, DROPPED, BREAK = 0, 1, 2
"""A character is read; is left out; is left out and parts words (``<br>``)."""

_SPACED = r"[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]"
"""A letter or digit of a script with spaces between words: emphasis beside one may be something else."""

_FENCE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})", re.MULTILINE)
_CODE = re.compile(r"(?<![`\\])(`{1,2})(?!`)([^`\n]+(?:\n(?![ \t]*\n)[^`\n]+)*)\1(?!`)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TARGET = (
    r"\([ \t]*((?:<[^<>\n]*>|\{\{[^{}\n]*\}\}|\{%[^%\n]*%\}|\([^\s()]*\)|[^\s(){}])*)"
    r"(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?[ \t]*\)"
)
_LINK = re.compile(rf"(?<![!\\])\[((?:[^\[\]\n]|\n(?![ \t]*\n))+)\](?:{_TARGET}|\[([^\[\]\n]*)\])(\{{:[^{{}}\n]*\}})?")
_IMAGE = re.compile(rf"!\[[^\[\]\n]*\]{_TARGET}")
_AUTOLINK = re.compile(r"<(?:https?|mailto):[^\s<>]+>")
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\ue000]+")
_EMPHASIS = {
    sign: re.compile(
        rf"(?<!{_SPACED})(?<![{sign}\\])({re.escape(sign)}{{1,3}})(?![\s{sign}])"
        rf"[^{sign}\n]*+(?:\n(?![ \t]*\n)[^{sign}\n]*+)*+(?<![\s\\])\1(?!{_SPACED}|{re.escape(sign)})"
    )
    for sign in "*_"
}
_TAG = re.compile(
    r"</?(?:b|i|em|strong|span|font|small|big|tt|code|kbd|abbr|cite|u|center)(?:\s[^<>]*)?>"
    r"|(?P<link></?a(?:\s[^<>]*)?>)|(?P<break></?(?:br|p|div)(?:\s[^<>]*)?/?>)",
    re.IGNORECASE,
)
_HREF = re.compile(r"\bhref\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_LINE_START = re.compile(
    r"\n(?:(?P<rule>[ \t>|:-]++(?=\n|\Z))|(?P<underline>[ \t]*=+[ \t]*(?=\n|\Z))"
    r"|(?P<marks>(?:[ \t]*>)*+[ \t]*+(?:[-*+](?=[ \t]))?[ \t]*+(?:#{1,6}(?=[ \t]))?)"
    r"(?:\d{1,9}(?P<delimiter>[.)])(?=[ \t]))?)"
)
_OUTER_PIPE = re.compile(r"(?<=\n)[ \t>]*(\|)|(?<![\n\\])(\|)[ \t]*(?=\n|\Z)")
_CLOSING = re.compile(r"[ \t]#+[ \t]*(?=\n|\Z)")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_ATTRIBUTES = re.compile(r"\{:[^{}\n]*\}|&nbsp;")

_ANY = re.compile(r"(?:\A|\n)[ \t>|:=*+#\d-]|[`~\[<|#{&\\*_]")
"""Where a text holds none of this, no rule finds anything: a sign that layout begins with, at the start of a line or
anywhere."""

_NOT_BREAK = re.compile(r"[^\n]")
_FILLER = "\ue000"  # stands for what was read already, so that later rules pass over it


class Link(NamedTuple):
    """A link's text ``[start_char, end_char)``, brackets included, and where it leads."""

    start_char: int
    end_char: int
    target: str


class Markup(NamedTuple):
    """The layout of one text."""

    kinds: npt.NDArray[np.uint8]
    """For each character ``KEPT``, ``DROPPED`` or ``BREAK``."""
    pairs: list[tuple[tuple[int, int], tuple[int, int]]]
    """Opening and closing marks that belong together."""
    links: list[Link]


def fences(text: str) -> list[tuple[int, int]]:
    """Return the fenced code blocks as ranges, fence lines included; one that is never closed runs to the end."""
    found: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(text):
        mark = match[1]
        if opened is None:
            opened = (match.start(), mark)
        elif mark.startswith(opened[1]):
            line_end = text.find("\n", match.end())
            line_end = len(text) if line_end < 0 else line_end
            if not text[match.end() : line_end].strip():
                found.append((opened[0], line_end))
                opened = None
    if opened is not None:
        found.append((opened[0], len(text)))
    return found


def comments(text: str) -> list[tuple[int, int]]:
    """Return the HTML comments as ranges."""
    return [match.span() for match in _COMMENT.finditer(text)] if "<!--" in text else []


def markup(text: str) -> Markup:
    """Mark the layout of a Markdown text."""
    found = Markup(np.zeros(len(text), dtype=np.uint8), [], [])
    if not _ANY.search(text):
        return found
    working = text
    if any(mark in text for mark in ("```", "~~~", "<!--")):
        working = _without(working, [*fences(text), *comments(text)])
    if "`" in working:
        working = _without(working, _code_spans(working, found))
    if "[" in working:
        working = _without(working, [match.span() for match in _IMAGE.finditer(working)])
        for match in _LINK.finditer(working):
            _link(match, found)
        working = _without(working, [closing for _, closing in found.pairs])
    if "<" in working:
        _tags(working, found)
    working = _without(working, _line_marks(working, found))
    if "*" in working or "_" in working:
        _emphasis(_without(working, [match.span() for match in _ADDRESS.finditer(working)]), found)
    return found


def _without(text: str, ranges: list[tuple[int, int]]) -> str:
    """Return the text with the ranges made unreadable, line breaks kept, so that offsets stay."""
    pieces: list[str] = []
    done = 0
    for start, end in sorted(ranges):
        if start >= done:
            pieces += [text[done:start], _NOT_BREAK.sub(_FILLER, text[start:end])]
            done = end
    return "".join([*pieces, text[done:]])


def _pair(found: Markup, opening: tuple[int, int], closing: tuple[int, int]) -> None:
    for start, end in (opening, closing):
        found.kinds[start:end] = DROPPED
    found.pairs.append((opening, closing))


def _code_spans(working: str, found: Markup) -> list[tuple[int, int]]:
    """Mark the back-ticks; return the spans, whose inside is literal: a ``*`` in it is a character."""
    spans = []
    for match in _CODE.finditer(working):
        size = len(match[1])
        _pair(found, (match.start(), match.start() + size), (match.end() - size, match.end()))
        spans.append(match.span())
    return spans


def _link(match: re.Match[str], found: Markup) -> None:
    opening = (match.start(), match.start() + 1)
    _pair(found, opening, (match.end(1), match.end()))
    target = match[2] if match[2] is not None else f"[{match[3] or match[1]}]"
    found.links.append(Link(match.start(), match.end(), target))


def _tags(working: str, found: Markup) -> None:
    opened: list[tuple[int, str]] = []
    for match in _TAG.finditer(working):
        found.kinds[match.start() : match.end()] = BREAK if match["break"] else DROPPED
        if match["link"]:
            href = _HREF.search(match[0])
            if href:
                opened.append((match.start(), href[1] or href[2] or ""))
            elif match[0].startswith("</") and opened:
                start, target = opened.pop()
                found.links.append(Link(start, match.end(), target))


def _line_marks(working: str, found: Markup) -> list[tuple[int, int]]:
    """Mark what stands at the ends of lines, and other single signs; return their ranges."""
    ranges = []
    # With a line break in front of the first line too, each line begins after one: far faster to search than ^.
    for match in _LINE_START.finditer("\n" + working):
        kind = match.lastgroup if match.lastgroup != "delimiter" else "marks"
        start, end = match.span(kind or 0)
        # A row of | alone is a row of empty cells, not a rule.
        if start < end and not (kind == "rule" and "-" not in match["rule"] and match["rule"].strip(" \t>")):
            ranges.append((start - 1, end - 1))
        if match["delimiter"]:
            ranges.append((match.start("delimiter") - 1, match.end("delimiter") - 1))
    for match in _OUTER_PIPE.finditer("\n" + working) if "|" in working else ():
        start, end = match.span(match.lastindex or 0)
        ranges.append((start - 1, end - 1))
    for pattern, sign in ((_CLOSING, "#"), (_ATTRIBUTES, "{&"), (_ESCAPE, "\\")):
        if any(char in working for char in sign):
            ranges += [match.span() for match in pattern.finditer(working)]
    for match in _AUTOLINK.finditer(working) if "<" in working else ():
        ranges += [(match.start(), match.start() + 1), (match.end() - 1, match.end())]
    for start, end in ranges:
        found.kinds[start:end] = DROPPED
    return ranges


def _emphasis(working: str, found: Markup) -> None:
    for sign, pattern in _EMPHASIS.items():
        for _ in range(3 if sign in working else 0):  # emphasis within emphasis
            marks: list[tuple[int, int]] = []
            for match in _each(pattern, sign, working):
                size = len(match[1])
                opening = (match.start(), match.start() + size)
                closing = (match.end() - size, match.end())
                _pair(found, opening, closing)
                marks += [opening, closing]
            if not marks:
                break
            working = _without(working, marks)


def _each(pattern: re.Pattern[str], sign: str, text: str) -> Iterator[re.Match[str]]:
    """Do what ``finditer`` does for a pattern whose match begins with a sign, trying it at the signs only."""
    at = text.find(sign)
    while at >= 0:
        match = pattern.match(text, at)
        if match is not None:
            yield match
        at = text.find(sign, match.end() if match is not None else at + 1)
