"""Kappa of each judge with its interval, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from ragds_pipeline.calibration.measure import Measured
from ragds_pipeline.calibration.selection import Bounded
from ragds_pipeline.storage import svg

_LEFT, _WIDTH, _ROW, _TOP = 150, 360, 24, 24
_LEAST = -0.2
"""Left end of the scale; a kappa below it is drawn there, with its figure beside it."""


def chart(measured: Sequence[Measured], min_kappa: float) -> str:
    """Return an SVG with a row for each judge: kappa, its interval and its figure.

    Those with too few labels are grey, those below ``min_kappa`` (the red line) have the colour of an alarm.
    """
    rows = [(each, _TOP + _ROW * at + _ROW // 2) for at, each in enumerate(measured)]
    bottom = _TOP + _ROW * len(measured)
    parts = [svg.path([svg.down(_x(tick), _TOP, bottom) for tick in (0.0, 1.0)], svg.PALE)]
    parts += [svg.path([svg.down(_x(min_kappa), _TOP, bottom)], svg.ALARM)]
    parts += [svg.text(16, f"{tick:g}", _x(tick) - 4) for tick in (0.0, 1.0)]
    for colour in (svg.WEAK, svg.ALARM, svg.STRONG):
        own = [(k, y) for each, y in rows if (k := each.kappa) is not None and _colour(each, k, min_kappa) == colour]
        drawn = [svg.across(y, _x(k.low), _x(k.high)) + svg.down(_x(k.value), y - 6, y + 6) for k, y in own]
        parts.append(svg.path(drawn, colour, 3))
    for each, y in rows:
        figure = f"{each.kappa.value:.2f}" if each.kappa else "no kappa"
        parts.append(svg.text(y + 4, f"{each.judge} {figure}"))
    return svg.picture(_LEFT + _WIDTH + 20, bottom + 6, parts)


def _colour(measured: Measured, kappa: Bounded, min_kappa: float) -> str:
    if not measured.calibration.enough:
        return svg.WEAK
    return svg.ALARM if kappa.value < min_kappa else svg.STRONG


def _x(kappa: float) -> int:
    return round(_LEFT + _WIDTH * (min(1.0, max(_LEAST, kappa)) - _LEAST) / (1 - _LEAST))
