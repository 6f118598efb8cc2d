"""The decisions of all reviewers, for all revisions: append-only, one file an import.

``data/review/decisions/0003-1f2e3d4c5b6a.jsonl`` holds the decisions of the third import; the hex digits are those of
the sheet's SHA-256, so that the same file imported twice counts once. A file is written whole or not at all, and never
changed. Where several decide on one candidate, the last import counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragds_pipeline.records import Decision
from ragds_pipeline.storage.files import locked, write_text
from ragds_pipeline.storage.schemas import as_json

_MARK = 12
"""How many hex digits of a sheet's SHA-256 a file name holds."""
_NAME = re.compile(rf"(\d+)-([0-9a-f]{{{_MARK}}})\.jsonl")


class DamagedLog(RuntimeError):
    """A file of the decision log cannot be read; it was changed from outside."""


@dataclass(frozen=True, slots=True)
class DecisionLog:
    """The log below ``root`` (``data/review/decisions``)."""

    root: Path

    def append(self, decisions: Sequence[Decision], sheet_sha256: str) -> bool:
        """Append one import; False if the same sheet was imported before (nothing is added then)."""
        mark = sheet_sha256[:_MARK]
        with locked(self.root / ".lock"):
            files = self._files()
            if any(found == mark for _, found, _ in files):
                return False
            number = 1 + max((number for number, _, _ in files), default=0)
            lines = [json.dumps(as_json(decision), ensure_ascii=False) + "\n" for decision in decisions]
            write_text(self.root / f"{number:04d}-{mark}.jsonl", "".join(lines))
        return True

    def all(self) -> list[Decision]:
        """Return every decision, oldest import first; raise DamagedLog with file and line for one that is damaged."""
        found = []
        for _, _, path in self._files():
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
                if line:
                    try:
                        found.append(Decision(**json.loads(line)))
                    except (ValueError, TypeError) as error:
                        raise DamagedLog(
                            f"{path}:{number}: not a decision ({error}); restore it from a backup"
                        ) from error
        return found

    def latest(self) -> dict[str, Decision]:
        """Return the decision that counts, by candidate id, in the order in which these were made."""
        counting: dict[str, Decision] = {}
        for decision in self.all():
            counting.pop(decision.candidate_id, None)
            counting[decision.candidate_id] = decision
        return counting

    def imported(self) -> frozenset[str]:
        """Return how the SHA-256 of each sheet that was imported begins."""
        return frozenset(mark for _, mark, _ in self._files())

    def _files(self) -> list[tuple[int, str, Path]]:
        """Return (number, mark, path) of the imports, oldest first: by number, for 10000 comes after 9999."""
        found = []
        for path in self.root.glob("*.jsonl"):
            name = _NAME.fullmatch(path.name)
            if name is None:
                raise DamagedLog(f"{path} is not named as an import; take it away, or give it its name back")
            found.append((int(name[1]), name[2], path))
        return sorted(found)
