"""The funnel for people: a picture, and its parts with reasons and examples as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragds_pipeline.candidates.reading import REASONS as READING
from ragds_pipeline.filters.breakdown import Part, Reason
from ragds_pipeline.filters.code_filter import REASONS as CODE
from ragds_pipeline.filters.judges import REASONS as JUDGES
from ragds_pipeline.filters.judging import REASONS as VOTES
from ragds_pipeline.records import FunnelStep
from ragds_pipeline.storage import svg

MEANINGS: Mapping[str, str] = {**READING, **CODE, **VOTES, **JUDGES}
"""What each reason of the filters means."""

_LEFT, _WIDTH, _RIGHT, _ROW, _TOP = 110, 420, 420, 30, 12
_SHOWN_REASONS = 3


def picture(steps: Sequence[FunnelStep]) -> str:
    """Return an SVG: for each stage what came in (pale) and what it kept (strong), with the reasons beside it."""
    most = max((each.came_in for each in steps), default=0) or 1
    parts = []
    for at, each in enumerate(steps):
        y = _TOP + _ROW * at
        parts.append(svg.text(_LEFT - 10, y + 16, each.stage, anchor="end"))
        parts.append(svg.box(_LEFT, y + 2, round(_WIDTH * each.came_in / most, 1), _ROW - 10, "#dfe3e8"))
        parts.append(svg.box(_LEFT, y + 2, round(_WIDTH * each.kept / most, 1), _ROW - 10, svg.STRONG))
        parts.append(svg.text(_LEFT + _WIDTH + 12, y + 16, _told(each), size=11, fill=svg.FAINT))
    return svg.picture(_LEFT + _WIDTH + _RIGHT, _TOP + _ROW * len(steps) + 6, parts)


def _told(each: FunnelStep) -> str:
    if not each.dropped:
        return f"{each.kept} of {each.came_in}"
    reasons = [f"{r.reason} {r.count}" for r in each.reasons[:_SHOWN_REASONS]]
    more = len(each.reasons) - _SHOWN_REASONS
    return f"{each.kept} of {each.came_in}: {', '.join(reasons)}" + (f" and {more} more reasons" if more > 0 else "")


def parts_table(found: Sequence[Part], stages: Sequence[str], name: str) -> str:
    """Return one line a part: how many came in and how many each stage kept, with the sum at the end."""
    if not found:
        return "(nothing came in)"
    lines = [
        f"| {name} | asked for | {' | '.join(stages)} | dropped as |",
        f"|---|--:|{'--:|' * len(stages)}---|",
    ]
    for part in found:
        why = ", ".join(f"{reason} {count}" for reason, count in part.reasons)
        numbers = " | ".join(str(n) for n in (part.came_in, *part.kept))
        lines.append(f"| {_cell(part.name) or '(not known)'} | {numbers} | {_cell(why)} |")
    sums = [sum(p.came_in for p in found), *(sum(p.kept[at] for p in found) for at in range(len(stages)))]
    lines.append(f"| **all** | {' | '.join(f'**{n}**' for n in sums)} | |")
    return "\n".join(lines)


def reasons_table(found: Sequence[Reason], meanings: Mapping[str, str] = MEANINGS) -> str:
    """Return one line a stage and reason: how many, and what the reason means."""
    if not found:
        return "Nothing was dropped."
    lines = ["| stage | reason | dropped | what it means |", "|---|---|--:|---|"]
    for each in found:
        lines.append(f"| {each.stage} | {each.reason} | {each.count} | {_cell(meanings.get(each.reason, ''))} |")
    return "\n".join(lines)


def examples_table(found: Sequence[Reason]) -> str:
    """Return up to three examples of each reason, with the command that tells the whole story of one."""
    if not found:
        return "Nothing was dropped."
    lines = ["| stage | reason | question | detail | the whole story |", "|---|---|---|---|---|"]
    for each in found:
        for drop in each.examples:
            story = f"`ragds why {drop.item_id}`" if drop.item_id else f"{_cell(drop.document_path)}"
            question = _cell(drop.question[:140]) or "(none came back)"
            lines.append(f"| {each.stage} | {each.reason} | {question} | {_cell(drop.detail[:200])} | {story} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
