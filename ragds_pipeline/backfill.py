"""``ragds backfill``: an old state of the KB becomes an archived revision with a partition of its own.

The KB folder and the pointer to the current revision stay as they are. ``kb.yaml`` is that of the old state; what is
confidential today is confidential there too (``kb.revision.archived_revision``).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from ragds_pipeline.config import ConfigError, Settings
from ragds_pipeline.kb.assets import archive_of, folder_revision
from ragds_pipeline.kb.convert import converter_version
from ragds_pipeline.kb.git_state import find_commit, write_state
from ragds_pipeline.kb.revision import FolderSource, Revision, current_revision
from ragds_pipeline.kb.scan import KbMissing
from ragds_pipeline.runs import register_version


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a state became."""

    source_version: str
    documents: int
    known: bool
    """True where the very same revision was archived before."""
    origin: str


class BackfillFailed(RuntimeError):
    """The state cannot become a revision; the message says why."""


def from_folder(settings: Settings, instance: dg.DagsterInstance, folder: Path) -> Backfilled:
    """Archive what ``folder`` holds as a revision and make it a partition.

    Raises KbMissing and ConfigError as for the KB folder itself, and BackfillFailed where a file could not be archived.
    """
    return _archive(settings, instance, folder, str(folder))


def from_git(settings: Settings, instance: dg.DagsterInstance, ref: str, repository: Path, path: str) -> Backfilled:
    """Archive the folder ``path`` of a commit as a revision and make it a partition; raise GitFailed if there is none.

    Nothing is checked out: working tree, index and branches of the repository stay untouched.
    """
    state = find_commit(repository, ref)
    with tempfile.TemporaryDirectory(prefix="ragds-backfill-") as temporary:
        folder = Path(temporary) / "kb"
        write_state(state, path, folder)
        return _archive(settings, instance, folder, f"{path} at {state.commit[:12]}")


def _archive(settings: Settings, instance: dg.DagsterInstance, folder: Path, origin: str) -> Backfilled:
    archive = archive_of(settings)
    _keep_name_of_the_present(settings)
    revision = _revision(settings, folder)
    known = archive.content_of(revision.source_version) == revision.content_sha256
    archive.store(revision, FolderSource(folder))
    if missing := archive.missing(revision.source_version):
        raise BackfillFailed(f"{origin}: {', '.join(missing[:5])} could not be read, so the revision is not whole")
    register_version(settings, instance, revision.source_version)
    return Backfilled(revision.source_version, len(revision.scan.files), known, origin)


def _keep_name_of_the_present(settings: Settings) -> None:
    """Archive what the KB folder holds first: where both declare one version, the old state gets the longer name."""
    try:
        present = folder_revision(settings)
    except (KbMissing, ConfigError):
        return
    archive_of(settings).store(present, FolderSource(settings.kb_dir))


def _revision(settings: Settings, folder: Path) -> Revision:
    return current_revision(
        folder, archive_of(settings), settings.kb.max_file_bytes, converter_version(), None, settings.data_dir
    )
