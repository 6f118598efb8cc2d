"""The funnel for people: a picture, and its parts with reasons and examples as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ragds_pipeline.candidates.reading import REASONS as READING
from ragds_pipeline.filters.breakdown import Part, Reason
from ragds_pipeline.filters.code_filter import REASONS as CODE
from ragds_pipeline.filters.judges import REASONS as JUDGES
from ragds_pipeline.filters.judging import REASONS as VOTES
from ragds_pipeline.records import FunnelStep
from ragds_pipeline.storage import svg

MEANINGS: Mapping[str, str] = {**READING, **CODE, **VOTES, **JUDGES}
"""What each reason of the filters means."""

_LEFT, _WIDTH, _ROW, _BAR = 130, 430, 28, 20


def picture(steps: Sequence[FunnelStep]) -> str:
    """Return an SVG: for each stage what came in (pale) and what it kept (strong), with the number kept."""
    most = max((each.came_in for each in steps), default=0) or 1
    rows = [(each, 18 + _ROW * at) for at, each in enumerate(steps)]

    def bars(counts: Iterable[int], colour: str) -> str:
        lines = [svg.across(y, _LEFT, _LEFT + round(_WIDTH * n / most)) for n, (_, y) in zip(counts, rows, strict=True)]
        return svg.path(lines, colour, _BAR)

    labels = [svg.text(y + 4, f"{each.stage} {each.kept}") for each, y in rows]
    came_in, kept = bars((s.came_in for s in steps), svg.PALE), bars((s.kept for s in steps), svg.STRONG)
    return svg.picture(_LEFT + _WIDTH + 10, _ROW * len(steps) + 8, [came_in, kept, *labels])


def parts_table(found: Sequence[Part], stages: Sequence[str], name: str) -> str:
    """Return one line a part: how many came in and how many each stage kept, with the sum at the end."""
    if not found:
        return "(nothing came in)"
    lines = [f"| {name} | asked for | {' | '.join(stages)} |", f"|---|--:|{'--:|' * len(stages)}"]
    for part in found:
        numbers = " | ".join(str(n) for n in (part.came_in, *part.kept))
        lines.append(f"| {_cell(part.name) or '(not known)'} | {numbers} |")
    sums = [sum(p.came_in for p in found), *(sum(p.kept[at] for p in found) for at in range(len(stages)))]
    lines.append(f"| **all** | {' | '.join(f'**{n}**' for n in sums)} |")
    return "\n".join(lines)


def why_table(found: Sequence[Part], name: str) -> str:
    """Return one line a part of which anything was dropped: the reasons, most frequent first."""
    lines = [f"| {name} | dropped | as |", "|---|--:|---|"]
    for part in found:
        if part.reasons:
            why = ", ".join(f"{reason} {count}" for reason, count in part.reasons)
            total = sum(count for _, count in part.reasons)
            lines.append(f"| {_cell(part.name) or '(not known)'} | {total} | {_cell(why)} |")
    return "\n".join(lines) if len(lines) > 2 else "Nothing was dropped."


def reasons_table(found: Sequence[Reason], meanings: Mapping[str, str] = MEANINGS) -> str:
    """Return one line a reason, in the order of the funnel: how many, and what it means."""
    if not found:
        return "Nothing was dropped."
    lines = ["| reason | dropped | what it means |", "|---|--:|---|"]
    for each in found:
        lines.append(f"| {each.reason} | {each.count} | {_cell(meanings.get(each.reason, ''))} |")
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
