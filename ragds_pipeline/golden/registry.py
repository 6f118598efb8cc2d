"""The register of golden ids: given once, never reused, each with its side of the split.

``data/golden/registry.jsonl`` grows only by snapshots that were released. An id stays with its item across revisions;
an item is known again by its candidate id, or by that of the candidate it corrects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ragds_pipeline.storage.files import write_text
from ragds_pipeline.storage.schemas import as_json


@dataclass(frozen=True, slots=True)
class Registered:
    """One golden id."""

    id: str
    candidate_id: str
    split: str
    first_frozen_in: str


@dataclass(frozen=True, slots=True)
class Registry:
    """The register file."""

    path: Path

    def entries(self) -> list[Registered]:
        """Return all ids ever given, in the order in which they were."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        return [Registered(**json.loads(line)) for line in lines if line]

    def by_candidate(self) -> dict[str, Registered]:
        """Return the entry that counts by candidate id (an item that was corrected has two candidate ids)."""
        return {entry.candidate_id: entry for entry in self.entries()}

    def add(self, new: Iterable[Registered]) -> None:
        """Append entries; the file is replaced as a whole, so that it is never half-written."""
        entries = [*self.entries(), *new]
        write_text(self.path, "".join(json.dumps(as_json(e), ensure_ascii=False) + "\n" for e in entries))


def next_number(entries: Iterable[Registered]) -> int:
    """Return the number of the next new id."""
    return 1 + max((int(entry.id.removeprefix("g-")) for entry in entries), default=0)


def golden_id(number: int) -> str:
    """Return the id with that number: ``g-0001``, with more digits from 10,000 on."""
    return f"g-{number:04d}"
