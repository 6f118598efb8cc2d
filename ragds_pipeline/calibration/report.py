"""The calibration as Markdown: for the Dagster UI, for a file, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragds_pipeline.calibration.measure import Measured, Needless, Steering, word
from ragds_pipeline.calibration.selection import Bounded
from ragds_pipeline.filters.calibration import figures, kappa_in_words
from ragds_pipeline.records import DifferenceRow

SHOWN = 40
"""Differing items of one judge in the Markdown; the table holds all."""


def overview(measured: Sequence[Measured]) -> str:
    """Return one line a judge and source: may it be trusted, and which way does it err."""
    if not measured:
        return "Nothing has been measured: no judge is switched on, nobody has reviewed, no probe has been asked."
    lines = [
        "| judge | labels from | labels | kappa (95 %) | over all items (95 %) | good dropped | bad let through | |",
        "|---|---|--:|---|---|--:|--:|---|",
    ]
    for each in measured:
        found = each.calibration
        _, dropped, passed, _ = found.table.cells()
        good, bad = sum(found.table.cells()[:2]), sum(found.table.cells()[2:])
        expected = _bounded(each.expected.kappa) if each.source == "people" else "–"
        lines.append(
            f"| {each.judge} | {each.source} | {found.labels} | {kappa_in_words(found)} | {expected} "
            f"| {dropped} of {good} | {passed} of {bad} | {'' if found.enough else 'too few labels'} |"
        )
    return "\n".join(lines)


def details(measured: Measured) -> str:
    """Return everything about one judge against one source."""
    head = (
        f"{measured.model or 'several models'}, rubric {measured.rubric or 'of each judge'}. `correct`: the item stays."
    )
    parts = [head, "", figures(measured.calibration)]
    found = measured.expected
    if found.kappa or found.agreement:
        parts += [
            "",
            "Over all items judged, seen by people or not (weighted by what the judges said of them): "
            f"agreement {_bounded(found.agreement, percent=True)}, kappa {_bounded(found.kappa)}, "
            f"good items let through {_bounded(found.recall_correct, percent=True)}, "
            f"bad items dropped {_bounded(found.recall_incorrect, percent=True)}.",
        ]
    return "\n".join(parts)


def differences(rows: Iterable[DifferenceRow]) -> str:
    """Return the items on which judge and label differ, worst first, with the question and both reasons."""
    rows = list(rows)
    if not rows:
        return "No item differs."
    lines = [
        "| item | language | should be | judged | question | label | the judge's reason |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows[:SHOWN]:
        cells = (
            row.item_id,
            row.language,
            row.should_be,
            row.judged,
            row.question[:160],
            row.label[:200],
            row.reason[:200],
        )
        lines.append(f"| {' | '.join(cell(text) for text in cells)} |")
    more = len(rows) - SHOWN
    return "\n".join([*lines, "", f"… and {more} more in the table judge_differences."] if more > 0 else lines)


def injections(found: Steering) -> str:
    """Return how the judges held against texts that try to steer them."""
    if not found.asked:
        return "Not asked yet: `ragds probes`."
    lines = [f"**{len(found.steered)} of {found.asked} planted texts steered a judge** (there must be none)."]
    if found.without_verdict:
        lines.append(f"{len(found.without_verdict)} got no verdict.")
    if found.steered:
        lines += ["", "| probe | judge | language | should be | judged | reason |", "|---|---|---|---|---|---|"]
        for each in found.steered:
            p = each.probe
            cells = (p.id, p.judge, p.language, word(p.expected), word(each.got), each.verdict.detail[:200])
            lines.append(f"| {' | '.join(cell(text) for text in cells)} |")
    return "\n".join(lines)


def needless_spans(found: Needless) -> str:
    """Return how well needless spans are told."""
    if not found.probes:
        return "Nothing to count."
    return (
        f"On {found.probes} probes rightly found correct, exactly the needless spans were named in {found.exact}: "
        f"{found.rightly} spans rightly, {found.missed} missed, {found.wrongly} wrongly."
    )


def whole(
    measured: Sequence[Measured], rows: Sequence[DifferenceRow], steered: Steering, spans: Needless, title: str
) -> str:
    """Return the report as one Markdown document."""
    parts = [f"# {title}", "", overview(measured)]
    for each in measured:
        own = [row for row in rows if (row.judge, row.source) == (each.judge, each.source)]
        parts += ["", f"## {each.judge}, against {each.source}", "", details(each), "", differences(own)]
    parts += ["", "## Planted texts", "", injections(steered), "", "## Needless spans", "", needless_spans(spans)]
    return "\n".join(parts) + "\n"


def cell(text: str) -> str:
    """Return a text that cannot break out of a cell of a Markdown table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _bounded(found: Bounded | None, percent: bool = False) -> str:
    if found is None:
        return "not known"
    values = (found.value, found.low, found.high)
    one, low, high = (f"{100 * v:.0f} %" if percent else f"{v:.2f}" for v in values)
    return f"{one} ({low} to {high})"
