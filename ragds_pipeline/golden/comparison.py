"""Any two frozen sets side by side, by their names."""

from __future__ import annotations

from pathlib import Path

from ragds_pipeline.golden import snapshot as snapshots
from ragds_pipeline.golden.changelog import compare_sets
from ragds_pipeline.golden.releases import released
from ragds_pipeline.records import ChangelogRow, GoldenItem
from ragds_pipeline.storage.files import UnsafePath


class UnknownSnapshot(LookupError):
    """A snapshot that is not there, or too few to compare."""


def compared(root: Path, before: str = "", now: str = "") -> tuple[str, str, list[ChangelogRow]]:
    """Return the names of two frozen sets below ``root`` (``data/golden``) and what differs between them, the no_answer
    sets beside them included.

    Without names they are the last two that were released. Raises UnknownSnapshot, with those there are, and
    SnapshotDamaged for one that is not as it was frozen.
    """
    names = [release.name for release in released(root)]
    if not now:
        now = next((name for name in reversed(names) if name != before), "")
    if not before:
        before = next((name for name in reversed(names) if name != now), "")
    if not before or not now:
        raise UnknownSnapshot(f"two frozen sets are needed; there are: {', '.join(names) or 'none'}")
    sets = [_read(root, name, names) for name in (before, now)]
    return before, now, compare_sets(*sets)


def _read(root: Path, name: str, names: list[str]) -> list[GoldenItem]:
    version, _, snapshot = name.rpartition("/")
    try:
        folder = snapshots.folder_of(root, version) / snapshot if version else root / "-"
    except UnsafePath:
        folder = root / "-"
    if folder not in snapshots.snapshots(folder.parent):
        raise UnknownSnapshot(f"{name} is no snapshot; there are: {', '.join(names) or 'none'}")
    snapshots.verify(folder)
    return snapshots.read_items(folder) + snapshots.read_items(folder, snapshots.NO_ANSWER)
