"""Where the review sheets lie: sent out to ``data/review/<source_version>/``, put back into ``inbox/`` below it.

A sheet that a person may have written on is never overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline.review.sheet_out import write_csv, write_xlsx
from ragds_pipeline.storage.files import inside, sha256_file, write_text

_SENT = ".sent.json"


@dataclass(frozen=True, slots=True)
class SheetFolder:
    """The folder of one revision's sheets."""

    root: Path

    @classmethod
    def of(cls, data_dir: Path, source_version: str) -> SheetFolder:
        """Return the folder for ``source_version``; raise UnsafePath for one that would lead elsewhere."""
        return cls(inside(data_dir / "review", source_version))

    @property
    def inbox(self) -> Path:
        """Where returned sheets are put to be imported."""
        return self.root / "inbox"

    def returned(self) -> list[Path]:
        """Return the sheets in the inbox, by name."""
        files = sorted(self.inbox.iterdir()) if self.inbox.is_dir() else []
        return [p for p in files if p.suffix.lower() in (".csv", ".xlsx", ".tsv", ".txt") and p.name[0] not in ".~"]

    def send(self, rows: Sequence[ReviewRow]) -> list[Path]:
        """Write the sheets with ``rows`` and return their paths (CSV, XLSX).

        Files that are as we wrote them are replaced; one that was changed since is left alone, and the new sheet gets
        the next number.
        """
        self.inbox.mkdir(parents=True, exist_ok=True)
        sent = self._sent()
        number = 1
        while any(self._touched(path, sent) for path in self._paths(number)):
            number += 1
        paths = self._paths(number)
        write_csv(rows, paths[0])
        write_xlsx(rows, paths[1])
        sent |= {path.name: sha256_file(path) for path in paths}
        write_text(self.root / _SENT, json.dumps(sent, indent=1, sort_keys=True) + "\n")
        return paths

    def _paths(self, number: int) -> list[Path]:
        name = "review" if number == 1 else f"review-{number}"
        return [self.root / f"{name}.csv", self.root / f"{name}.xlsx"]

    def _touched(self, path: Path, sent: dict[str, str]) -> bool:
        return path.exists() and sha256_file(path) != sent.get(path.name)

    def _sent(self) -> dict[str, str]:
        path = self.root / _SENT
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except ValueError:
            return {}  # then every sheet counts as touched, and none is overwritten
