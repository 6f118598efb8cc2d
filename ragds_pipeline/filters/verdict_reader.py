"""A judge's reply becomes a verdict, or no verdict. Nothing is guessed: ``incorrect`` never reads as ``correct``.

Two forms are read whichever was asked for: JSON (``{"reason": ..., "verdict": ...}``) and tags
(``<reason>...</reason><verdict>...</verdict>``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ragds_pipeline.claude.json_reader import UnreadableReply, read_json

CORRECT, INCORRECT = "correct", "incorrect"

_TAG = re.compile(r"<verdict>\s*(.*?)\s*</verdict>", re.DOTALL | re.IGNORECASE)
_REASON = re.compile(r"<reason>\s*(.*?)\s*</reason>", re.DOTALL | re.IGNORECASE)
_NEEDLESS = re.compile(r"<needless>\s*(.*?)\s*</needless>", re.DOTALL | re.IGNORECASE)


class NoVerdict(ValueError):
    """The reply holds no verdict, or more than one."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one reply says."""

    correct: bool
    reason: str
    needless: tuple[int, ...] = ()
    """Numbers (from 1) of the spans called needless; only the support judge names any."""


def read_verdict(text: str) -> Judgement:
    """Return the judgement in ``text``.

    The verdict must be one of the two words and nothing else, case and white space apart. Raises NoVerdict for any
    other word, for a reply that ends early, and for two verdicts that differ.
    """
    tags = [tag.strip().casefold() for tag in _TAG.findall(text)]
    if tags:
        reasons = _REASON.findall(text)
        needless = _NEEDLESS.findall(text)
        numbers = tuple(int(number) for number in re.findall(r"\d{1,3}", needless[-1])) if needless else ()
        return Judgement(_one(tags), _reason(reasons[-1] if reasons else ""), numbers)
    try:
        found = read_json(text, lambda value: isinstance(value, dict) and "verdict" in value)
    except UnreadableReply as error:
        raise NoVerdict(str(error)) from error
    if found.truncated:
        raise NoVerdict("the reply ended before its verdict was complete")
    value: dict[str, Any] = found.value
    verdict = value["verdict"]
    if not isinstance(verdict, str):
        raise NoVerdict(f"the verdict is {verdict!r}")
    return Judgement(_one([verdict.strip().casefold()]), _reason(value.get("reason")), _numbers(value.get("needless")))


def _numbers(value: Any) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(number for number in listed if isinstance(number, int) and not isinstance(number, bool))


def _one(words: list[str]) -> bool:
    if set(words) == {CORRECT}:
        return True
    if set(words) == {INCORRECT}:
        return False
    raise NoVerdict(f"the verdict is {' and '.join(repr(word[:40]) for word in dict.fromkeys(words))}")


def _reason(value: Any) -> str:
    return " ".join(value.split())[:600] if isinstance(value, str) and value.strip() else "no reason given"
