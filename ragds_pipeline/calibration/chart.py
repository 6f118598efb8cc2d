"""Kappa of each judge with its interval, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from ragds_pipeline.calibration.measure import Measured
from ragds_pipeline.storage import svg

_LEFT, _WIDTH, _RIGHT, _ROW, _TOP = 190, 420, 150, 26, 30
_LEAST = -0.2
"""Left end of the scale; a kappa below it is drawn there, with its figure beside it."""


def chart(measured: Sequence[Measured], min_kappa: float) -> str:
    """Return an SVG with a row for each judge and source; those with too few labels are grey, those below alarm."""
    bottom = _TOP + _ROW * len(measured)
    parts = [svg.text(10, 18, "kappa (95 %)", fill=svg.FAINT)]
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(svg.line(_x(tick), _TOP - 4, _x(tick), bottom, "#e5e7eb"))
        parts.append(svg.text(_x(tick), 18, f"{tick:g}", size=11, fill=svg.FAINT, anchor="middle"))
    parts.append(svg.line(_x(min_kappa), _TOP - 4, _x(min_kappa), bottom, svg.ALARM, dashed=True))
    for at, each in enumerate(measured):
        parts += _row(each, _TOP + _ROW * at + _ROW / 2, min_kappa)
    return svg.picture(_LEFT + _WIDTH + _RIGHT, bottom + 10, parts)


def _row(measured: Measured, y: float, min_kappa: float) -> list[str]:
    found, kappa = measured.calibration, measured.kappa
    parts = [svg.text(10, y + 4, f"{measured.judge} / {measured.source}")]
    if kappa is None:
        return [*parts, svg.text(_x(0) + 4, y + 4, f"no kappa, {found.labels} labels", fill=svg.FAINT)]
    colour = svg.WEAK if not found.enough else svg.ALARM if kappa.value < min_kappa else svg.STRONG
    figure = f"{kappa.value:.2f}, {found.labels} labels" + ("" if found.enough else ": too few")
    return [
        *parts,
        svg.line(_x(kappa.low), y, _x(kappa.high), y, colour, width=3),
        svg.dot(_x(kappa.value), y, 5, colour),
        svg.text(_x(1) + 12, y + 4, figure, size=11, fill=svg.FAINT),
    ]


def _x(kappa: float) -> float:
    return round(_LEFT + _WIDTH * (min(1.0, max(_LEAST, kappa)) - _LEAST) / (1 - _LEAST), 1)
