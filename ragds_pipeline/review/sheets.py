"""Where the review sheets lie: sent out to ``data/review/<source_version>/``, put back into ``inbox/`` below it.

A sheet that a person may have written on is never overwritten.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragds_pipeline.review.rows import COLUMNS, ReviewRow
from ragds_pipeline.review.sheet_out import GUIDE, write_csv, write_xlsx
from ragds_pipeline.storage.files import inside, locked, sha256_file, write_text

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
        sheets = [p for p in files if p.suffix.lower() in (".csv", ".xlsx", ".tsv", ".txt") and p.name[0] not in ".~"]
        return [path for path in sheets if path.is_file()]

    def sheets(self) -> list[Path]:
        """Return the spreadsheets that were written to be sent out, the newest of each kind, by name."""
        newest: dict[str, Path] = {}
        for path in sorted(self.root.glob("*.xlsx"), key=lambda path: (path.stat().st_mtime_ns, path.name)):
            newest[path.stem.partition("-")[0]] = path
        return [newest[kind] for kind in sorted(newest)]

    def send(
        self,
        rows: Sequence[ReviewRow],
        name: str = "review",
        guide: Sequence[str] = GUIDE,
        columns: Sequence[str] = COLUMNS,
    ) -> list[Path]:
        """Write the sheets with ``rows`` and return their paths (CSV, XLSX). ``guide`` says what to look for.

        Files that are as we wrote them are replaced; one that was changed since is left alone, and the new sheet gets
        the next number. What we write is on record before it is in place, so that after a kill at any moment our own
        files are known as ours.
        """
        self.inbox.mkdir(parents=True, exist_ok=True)
        with locked(self.root / ".lock"):
            sent = self._sent()
            number = 1
            while any(self._touched(path, sent) for path in self._paths(number, name)):
                number += 1
            paths = self._paths(number, name)
            with tempfile.TemporaryDirectory(prefix=".staged-", dir=self.root) as folder:
                staged = [Path(folder) / path.name for path in paths]
                write_csv(rows, staged[0], columns)
                write_xlsx(rows, staged[1], guide, columns)
                for path, new in zip(paths, staged, strict=True):
                    there = [sha256_file(path)] if path.exists() else []
                    sent[path.name] = sorted({*there, sha256_file(new)})
                write_text(self.root / _SENT, json.dumps(sent, indent=1, sort_keys=True) + "\n")
                for path, new in zip(paths, staged, strict=True):
                    new.replace(path)
        return paths

    def sent(self, name: str) -> bool:
        """Return whether a sheet of that name was sent out."""
        return any(path.exists() for path in self._paths(1, name))

    def _paths(self, number: int, name: str) -> list[Path]:
        stem = name if number == 1 else f"{name}-{number}"
        return [self.root / f"{stem}.csv", self.root / f"{stem}.xlsx"]

    def _touched(self, path: Path, sent: dict[str, list[str]]) -> bool:
        return path.exists() and sha256_file(path) not in sent.get(path.name, [])

    def _sent(self) -> dict[str, list[str]]:
        """Return the SHA-256 that each of our files may have: that of the file in place, and of its replacement."""
        path = self.root / _SENT
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
        except ValueError:
            return {}  # then every sheet counts as touched, and none is overwritten
        return {name: [sha] if isinstance(sha, str) else list(sha) for name, sha in found.items()}
