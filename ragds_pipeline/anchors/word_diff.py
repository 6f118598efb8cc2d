"""What changed between two stretches of text, in words a reader can follow.

``wdiff`` notation: ``[-old-]{+new+}``. The unit is a word or a sign; in scripts without spaces, a character.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from ragds_pipeline.anchors.reading import _TOKEN

MAX_TOKENS = 3_000
"""Longer texts are shown as replaced as a whole: the diff takes the square of their length."""
_KEEP_AROUND = 12
"""Unchanged units shown on either side of a change; what lies further away is shortened to an ellipsis."""

_UNIT = re.compile(rf"\s+|{_TOKEN.pattern}|.", re.DOTALL)


def word_diff(old: str, new: str, *, shorten: bool = False) -> str:
    """Return the changes from ``old`` to ``new``; empty if they are equal.

    Args:
        old: the text as it was.
        new: the text as it is.
        shorten: leave out unchanged text far from any change.
    """
    if old == new:
        return ""
    before, after = _UNIT.findall(old), _UNIT.findall(new)
    if len(before) + len(after) > MAX_TOKENS:
        return f"[-{old}-]{{+{new}+}}"
    parts: list[str] = []
    opcodes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for at, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag == "equal":
            parts.append(_equal(before[i1:i2], at == 0, at == len(opcodes) - 1, shorten))
            continue
        if i2 > i1:
            parts.append(f"[-{''.join(before[i1:i2])}-]")
        if j2 > j1:
            parts.append(f"{{+{''.join(after[j1:j2])}+}}")
    return "".join(parts)


def _equal(units: list[str], first: bool, last: bool, shorten: bool) -> str:
    keep = _KEEP_AROUND
    if not shorten or len(units) <= 2 * keep:
        return "".join(units)
    if first:
        return "… " + "".join(units[-keep:])
    if last:
        return "".join(units[:keep]) + " …"
    return "".join(units[:keep]) + " … " + "".join(units[-keep:])
