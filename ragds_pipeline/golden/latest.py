"""Which snapshot was released last, for everyone who asks for 'the' golden set.

Time stamps do not tell: in a checkout of a repository all files are equally old. The log of releases does.
"""

from __future__ import annotations

from pathlib import Path

from ragds_pipeline.golden.releases import released
from ragds_pipeline.golden.snapshot import MANIFEST, folder_of, snapshots
from ragds_pipeline.storage.files import UnsafePath


def latest_snapshot(root: Path) -> Path | None:
    """Return the snapshot below ``root`` (``data/golden``) that was released last, or None where there is none.

    Where none on record is there (snapshots of earlier versions, or copied ones), it is the one with the newest
    manifest.
    """
    for release in reversed(released(root)):
        try:
            folder = folder_of(root, release.source_version)
        except UnsafePath:
            continue
        path = folder / f"snapshot-{release.snapshot:04d}"
        if path in snapshots(folder):
            return path
    found = [path for folder in sorted(root.glob("*/")) for path in snapshots(folder) if (path / MANIFEST).exists()]
    return max(found, key=lambda path: ((path / MANIFEST).stat().st_mtime_ns, path.parts[-2:]), default=None)
