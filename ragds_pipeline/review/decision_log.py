"""The decisions of all reviewers, for all revisions: append-only, one file an import.

``data/review/decisions/0003-1f2e3d4c5b6a.jsonl`` holds the decisions of the third import; the hex digits are those of
the sheet's SHA-256, so that the same file imported twice counts once. A file is written whole or not at all, and never
changed. Where several decide on one candidate, the last import counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragds_pipeline.records import Decision
from ragds_pipeline.storage.files import locked, write_text
from ragds_pipeline.storage.schemas import as_json


class DamagedLog(RuntimeError):
    """A file of the decision log cannot be read; it was changed from outside."""


@dataclass(frozen=True, slots=True)
class DecisionLog:
    """The log below ``root`` (``data/review/decisions``)."""

    root: Path

    def append(self, decisions: Sequence[Decision], sheet_sha256: str) -> bool:
        """Append one import; False if the same sheet was imported before (nothing is added then)."""
        mark = sheet_sha256[:12]
        with locked(self.root / ".lock"):
            if any(path.stem.endswith(f"-{mark}") for path in self._files()):
                return False
            number = 1 + max((int(path.stem.split("-")[0]) for path in self._files()), default=0)
            lines = [json.dumps(as_json(decision), ensure_ascii=False) + "\n" for decision in decisions]
            write_text(self.root / f"{number:04d}-{mark}.jsonl", "".join(lines))
        return True

    def all(self) -> list[Decision]:
        """Return every decision, oldest import first; raise DamagedLog with file and line for one that is damaged."""
        found = []
        for path in self._files():
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
        """Return the decision that counts, by candidate id."""
        return {decision.candidate_id: decision for decision in self.all()}

    def _files(self) -> list[Path]:
        return sorted(self.root.glob("[0-9]*-*.jsonl"))
