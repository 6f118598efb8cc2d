"""The current revision: an explicit pointer, because 'the newest partition' is wrong once a KB goes back (A → B → A).

``data/state/current_revision.json`` says which revision was last taken in from the KB folder. It moves when a run reads
the documents of the folder, and when the folder is seen to hold a revision again that was run before. A revision that
is rebuilt from the archive does not move it. Readers need :func:`current` only.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path

from ragds_pipeline.storage.files import locked, write_text
from ragds_pipeline.storage.schemas import as_json

POINTER = "state/current_revision.json"


@dataclass(frozen=True, slots=True)
class CurrentRevision:
    """Which revision the KB is at."""

    source_version: str
    content_sha256: str
    since: str
    """When it became the current one, ISO 8601 in UTC."""
    before: str
    """Source version of the one before, or empty."""


def current(data_dir: Path) -> CurrentRevision | None:
    """Return the current revision, or None where nothing was taken in yet (or the file cannot be read)."""
    try:
        content = json.loads((data_dir / POINTER).read_text(encoding="utf-8"))
        return CurrentRevision(**{name: str(content[name]) for name in CurrentRevision.__slots__})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def move_to(data_dir: Path, source_version: str, content_sha256: str) -> bool:
    """Make a revision the current one; return whether the pointer moved. Safe beside other processes."""
    path = data_dir / POINTER
    with locked(path.with_suffix(".lock")):
        now = current(data_dir)
        if now is not None and (now.source_version, now.content_sha256) == (source_version, content_sha256):
            return False
        since = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        new = CurrentRevision(source_version, content_sha256, since, now.source_version if now else "")
        write_text(path, json.dumps(as_json(new), ensure_ascii=False, indent=1) + "\n")
        return True
