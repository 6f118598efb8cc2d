"""Two faster block rules for markdown-it-py, for readers who want to know where blocks are and no more.

*Plain paragraphs.* markdown-it tries ten rules on the first line of every paragraph and seven on each line after
it, twice (once for setext headings, once for paragraphs). Almost all of these lines begin with a letter, on which
only two rules can ever match: a table, if the *next* line may be a delimiter row, and indented code. The rule here
stands before all others, takes such paragraphs in one pass, and leaves every case of doubt to the original rules.

*Tables.* The original rule decides what a table is; its tokens, nine in ten of them for cells, are not made.

That blocks come out the same is a property test against the unchanged parser. The one difference: markdown-it ends
a table that lacks more than 65,536 cells, a guard against output that is not produced here.
"""

from __future__ import annotations

from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock, table

_MARKS = frozenset("`~>*-_+0123456789[<#")
"""What a fence, quote, rule, list, link target, HTML block or heading begins with."""
_DELIMITERS = frozenset("|-:")
"""What the delimiter row of a table begins with."""


def with_fast_rules(parser: MarkdownIt) -> MarkdownIt:
    """Give the rules to a parser with CommonMark's block rules and tables; return the parser.

    Its ``parser.block.parse`` then makes no tokens between ``table_open`` and ``table_close``.
    """
    parser.block.ruler.before("table", "plain_paragraph", _plain_paragraph)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


def _plain_paragraph(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    if silent or not _is_plain(state, start_line, end_line) or state.is_code_block(start_line):
        return False
    terminators = None
    old_parent = state.parentType
    state.parentType = "paragraph"
    level: Literal[0, 1, 2] = 0
    line = start_line + 1
    while line < end_line and not state.isEmpty(line):
        indent = state.sCount[line]
        # More than three blanks make no code inside a paragraph; a negative count marks a lazy line of a
        # quote.
        if indent - state.blkIndent <= 3:
            if indent >= state.blkIndent:
                level = _underline(state, line)
                if level:
                    break
            if indent >= 0 and not _is_plain(state, line, end_line):
                terminators = terminators or state.md.block.ruler.getRules("paragraph")
                if any(rule(state, line, end_line, True) for rule in terminators):
                    break
        line += 1
    _push(state, start_line, line, level)
    state.parentType = old_parent
    return True


def _is_plain(state: StateBlock, line: int, end_line: int) -> bool:
    """Tell whether the line begins with no mark and cannot be the header of a table."""
    first = state.bMarks[line] + state.tShift[line]
    if first >= state.eMarks[line] or state.src[first] in _MARKS:
        return False
    if line + 1 >= end_line:
        return True
    following = state.bMarks[line + 1] + state.tShift[line + 1]
    return following >= state.eMarks[line + 1] or state.src[following] not in _DELIMITERS


def _underline(state: StateBlock, line: int) -> Literal[0, 1, 2]:
    """Return the level of the heading that ``line`` underlines, 0 if it is no underline."""
    first, last = state.bMarks[line] + state.tShift[line], state.eMarks[line]
    mark = state.src[first]
    if mark not in "-=":
        return 0
    if state.src[first:last].rstrip(" \t").strip(mark):
        return 0
    return 1 if mark == "=" else 2


def _push(state: StateBlock, start_line: int, line: int, level: Literal[0, 1, 2]) -> None:
    tag = f"h{level}" if level else "p"
    kind = "heading" if level else "paragraph"
    state.line = line + 1 if level else line
    opening = state.push(f"{kind}_open", tag, 1)
    opening.map = [start_line, state.line]
    inline = state.push("inline", "", 0)
    inline.content = mdTrim(state.getLines(start_line, line, state.blkIndent, False))
    inline.map = [start_line, line]
    inline.children = []
    closing = state.push(f"{kind}_close", tag, -1)
    if level:
        opening.markup = closing.markup = "=" if level == 1 else "-"


def _table(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    if not table(state, start_line, end_line, True):
        return False
    if silent:
        return True
    old_parent = state.parentType
    state.parentType = "table"
    terminators = state.md.block.ruler.getRules("blockquote")
    line = start_line + 2
    while line < end_line:
        row = mdTrim(state.src[state.bMarks[line] : state.eMarks[line]])
        if not row or state.sCount[line] < state.blkIndent or state.is_code_block(line):
            break
        if row[0] in _MARKS and any(rule(state, line, end_line, True) for rule in terminators):
            break
        line += 1
    state.push("table_open", "table", 1).map = [start_line, line]
    state.push("table_close", "table", -1)
    state.parentType = old_parent
    state.line = line
    return True
