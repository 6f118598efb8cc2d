"""The order in which snapshots were released, over all revisions: which frozen set a revision is held against.

``data/golden/releases.jsonl`` gets a line when a snapshot is in its place. Where a kill came in between, the snapshot
is there without a line; freezing the same again writes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ragds_pipeline.storage.files import locked, write_text

RELEASES = "releases.jsonl"


@dataclass(frozen=True, slots=True)
class Release:
    """One snapshot that was released."""

    source_version: str
    snapshot: int

    @property
    def name(self) -> str:
        """The release as people name it: ``2026-10-01/snapshot-0002``."""
        return f"{self.source_version}/snapshot-{self.snapshot:04d}"


def released(root: Path) -> list[Release]:
    """Return all releases below ``root`` (``data/golden``), oldest first, each once."""
    path = root / RELEASES
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return list(dict.fromkeys(Release(line["source_version"], line["snapshot"]) for line in lines))


def record(root: Path, source_version: str, snapshot: int) -> None:
    """Record a release; a second time it does nothing."""
    new = Release(source_version, snapshot)
    with locked(root / "releases.lock"):
        if new in released(root):
            return
        path = root / RELEASES
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        write_text(path, before + json.dumps({"source_version": source_version, "snapshot": snapshot}) + "\n")


def baseline_of(root: Path, source_version: str) -> Release | None:
    """Return the frozen set that a revision is held against: the last one of another revision.

    For a revision that has snapshots of its own it is the one before the first of these (None where that was the first
    of all), so that running it again compares with the same.
    """
    before: Release | None = None
    for release in released(root):
        if release.source_version == source_version:
            return before
        before = release
    return before
