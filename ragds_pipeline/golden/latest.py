"""Which snapshot was frozen last: ``data/golden/latest.json``, for everyone who asks for 'the' golden set.

Time stamps do not tell: in a checkout of a repository all files are equally old.
"""

from __future__ import annotations

import json
from pathlib import Path

from ragds_pipeline.golden.snapshot import MANIFEST, Frozen, folder_of, snapshots
from ragds_pipeline.storage.files import UnsafePath, write_text

LATEST = "latest.json"


def mark_latest(root: Path, source_version: str, frozen: Frozen) -> None:
    """Record that ``frozen`` is the snapshot that was released last."""
    text = json.dumps({"source_version": source_version, "snapshot": frozen.path.name}, ensure_ascii=False) + "\n"
    write_text(root / LATEST, text)


def latest_snapshot(root: Path) -> Path | None:
    """Return the snapshot that was frozen last, or None where there is none.

    Where nothing is on record (snapshots of earlier versions, or copied ones), it is the one with the newest manifest.
    """
    try:
        marked = json.loads((root / LATEST).read_text(encoding="utf-8"))
        path = folder_of(root, str(marked["source_version"])) / str(marked["snapshot"])
        if path in snapshots(path.parent):
            return path
    except (OSError, ValueError, KeyError, TypeError, UnsafePath):
        pass
    found = [path for folder in sorted(root.glob("*/")) for path in snapshots(folder) if (path / MANIFEST).exists()]
    return max(found, key=lambda path: ((path / MANIFEST).stat().st_mtime_ns, path.parts[-2:]), default=None)
