"""The SHA-256 of each snapshot's manifest, kept beside the snapshots, so that an edited manifest is noticed.

``data/golden/<source_version>/snapshots.jsonl`` gets a line just before a snapshot is put in its place; where a kill
came in between, the next snapshot of that number gets another line, and the last one counts. It guards against slips,
not against somebody who edits both files.
"""

from __future__ import annotations

import json
from pathlib import Path

from ragds_pipeline.storage.files import sha256_file, write_text

SEALS = "snapshots.jsonl"


def recorded(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the manifests by the snapshot's name; snapshots of earlier versions are not in it."""
    path = folder / SEALS
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return {f"snapshot-{line['snapshot']:04d}": line["manifest_sha256"] for line in lines}


def record(folder: Path, number: int, manifest: Path) -> None:
    """Record the manifest of a snapshot; a second time it does nothing."""
    sha = sha256_file(manifest)
    if recorded(folder).get(f"snapshot-{number:04d}") == sha:
        return
    path = folder / SEALS
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    write_text(path, before + json.dumps({"snapshot": number, "manifest_sha256": sha}) + "\n")
