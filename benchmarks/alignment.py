"""Where spans of one revision truly stand in the next, by an alignment that shares no code with the ladder.

Lines are aligned by git (``diff --histogram``), changed hunks character by character by diff-match-patch; files that
are gone are paired with new ones by difflib's ratio of their lines. Moves are not seen by such an alignment, so
words that stand exactly once in both revisions are their own proof, wherever they are.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Mapping
from difflib import SequenceMatcher
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from diff_match_patch import diff_match_patch

ALIVE = 0.5
"""Share of a span's characters that must be aligned for it to be alive."""
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)

Run = tuple[int, int, int]
"""Offset in the old text, offset in the new one, and how many characters are the same from there on."""


class Truth(NamedTuple):
    """Where a span is: ``unique`` (its words stand once in both revisions), ``same`` (aligned, the same words),
    ``edited`` (aligned, other words) or ``unknown`` (gone, or moved out of the alignment's sight)."""

    kind: str
    path: str = ""
    start: int = -1
    end: int = -1


class Alignment:
    """All documents of two revisions, aligned."""

    def __init__(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self._old = old
        self._new = new
        self._all_old = "\x00".join(old.values())
        self._all_new = "\x00".join(new.values())
        self.target = _pair_documents(old, new)
        self._runs: dict[str, list[Run]] = {}

    def truth(self, path: str, start: int, end: int) -> Truth:
        """Return the truth about ``old[path][start:end]``."""
        content = self._old[path][start:end]
        if _once(self._all_new, content) and _once(self._all_old, content):
            for other, text in self._new.items():
                at = text.find(content)
                if at >= 0:
                    return Truth("unique", other, at, at + len(content))
        target = self.target.get(path)
        if target is None:
            return Truth("unknown")
        if path not in self._runs:
            self._runs[path] = _runs(self._old[path], self._new[target])
        mapped = _map(self._runs[path], start, end)
        if mapped is None:
            return Truth("unknown")
        same = self._new[target][mapped[0] : mapped[1]] == content
        return Truth("same" if same else "edited", target, *mapped)


def _once(text: str, content: str) -> bool:
    at = text.find(content)
    return at >= 0 and text.find(content, at + 1) < 0


def _pair_documents(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    target = {path: path for path in old if path in new}
    added = {path: text.split("\n") for path, text in new.items() if path not in old}
    for path, text in old.items():
        if path in new or not added:
            continue
        lines = text.split("\n")
        ratios = {other: _ratio(lines, others) for other, others in added.items()}
        best = max(ratios, key=lambda other: ratios[other])
        if ratios[best] >= 0.5:
            target[path] = best
    return target


def _ratio(lines: list[str], others: list[str]) -> float:
    matcher = SequenceMatcher(None, lines, others, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= 0.5 and matcher.quick_ratio() >= 0.5 else 0.0


def _runs(old: str, new: str) -> list[Run]:
    if old == new:
        return [(0, 0, len(old))]
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder) / "old", Path(folder) / "new"
        one.write_text(old, encoding="utf-8", newline="")
        other.write_text(new, encoding="utf-8", newline="")
        command = ["git", "diff", "--no-index", "--histogram", "-U0", "--text", str(one), str(other)]
        diff = subprocess.run(command, capture_output=True, check=False).stdout.decode("utf-8")
    old_starts, new_starts = _line_starts(old), _line_starts(new)
    runs: list[Run] = []
    at_old = at_new = 0
    for match in _HUNK.finditer(diff):
        first, size, new_first, new_size = (int(group) if group else 1 for group in match.groups())
        # A hunk that takes nothing names the line before it.
        first, new_first = first - (size > 0), new_first - (new_size > 0)
        low, high = old_starts[first], old_starts[first + size]
        new_low, new_high = new_starts[new_first], new_starts[new_first + new_size]
        runs.append((at_old, at_new, low - at_old))
        runs += _within(old[low:high], new[new_low:new_high], low, new_low)
        at_old, at_new = high, new_high
    runs.append((at_old, at_new, len(old) - at_old))
    return [run for run in runs if run[2] > 0]


def _line_starts(text: str) -> list[int]:
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    starts[-1] = len(text)
    return [*starts, len(text)]


def _within(old: str, new: str, at_old: int, at_new: int) -> list[Run]:
    differ = diff_match_patch()
    differ.Diff_Timeout = 5
    diffs = differ.diff_main(old, new, False)
    differ.diff_cleanupSemantic(diffs)
    runs = []
    for kind, text in diffs:
        if kind == 0:
            runs.append((at_old, at_new, len(text)))
        at_old += len(text) if kind <= 0 else 0
        at_new += len(text) if kind >= 0 else 0
    return runs


def _map(runs: list[Run], start: int, end: int) -> tuple[int, int] | None:
    """Return the range from the first to the last aligned character; None if too few are, or they lie far apart."""
    first = max(0, bisect_right(runs, (start,)) - 1)
    aligned = 0
    low = high = -1
    for old, new, size in runs[first:]:
        if old >= end:
            break
        begin, stop = max(old, start), min(old + size, end)
        if begin < stop:
            aligned += stop - begin
            low = new + begin - old if low < 0 else low
            high = new + stop - old
    if aligned < ALIVE * (end - start) or high - low > 3 * (end - start) + 40:
        return None
    return low, high
