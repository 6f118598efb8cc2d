"""Patterns of ``kb.yaml`` (as in ``.gitignore``) against paths in the KB.

Both sides are compared in NFC: macOS hands out file names in NFD, and a pattern typed on another keyboard must not
miss them. Patterns that match nothing are told (``Unmatched``), because a typing error in ``confidential`` would
otherwise send a document to a model without a word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import pathspec


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


class Patterns:
    """A list of patterns, the last that matches decides."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._spec = pathspec.GitIgnoreSpec.from_lines(map(_nfc, patterns))
        self._none = not self._spec.patterns  # most lists are empty, and a KB may have many files

    def match(self, *paths: str) -> bool:
        """Return whether any of ``paths`` matches: a file's own and its link's target (which may be empty)."""
        return not self._none and any(path and self._spec.match_file(_nfc(path)) for path in paths)


class FirstMatch:
    """A mapping from patterns to values; the first pattern that matches decides."""

    def __init__(self, values: dict[str, str]) -> None:
        self._patterns = [(Patterns([pattern]), value) for pattern, value in values.items()]

    def get(self, path: str) -> str | None:
        """Return the value for ``path``, or None."""
        return next((value for patterns, value in self._patterns if patterns.match(path)), None)


class Unmatched:
    """Those of some patterns that no path has matched so far. Exceptions (``!pattern``) are not looked at."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._left = {pattern: Patterns([pattern]) for pattern in patterns if not pattern.startswith("!")}

    def see(self, *paths: str) -> None:
        """Take a file into account."""
        if self._left:
            for pattern in [pattern for pattern, one in self._left.items() if one.match(*paths)]:
                del self._left[pattern]

    def left(self) -> list[str]:
        """Return the patterns that have matched nothing."""
        return list(self._left)
