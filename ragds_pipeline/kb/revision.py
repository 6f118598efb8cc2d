"""Revisions of the KB: what version a state of the folder is, and the archive from which any can be rebuilt.

``data/archive/blobs/<2 hex>/<sha256>`` holds every file once; ``data/archive/revisions/<source_version>.json`` says
which files a revision is made of. A declared version whose content changed becomes ``<version>+<8 hex>``, so a frozen
partition is never silently rewritten (DESIGN.md 7).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ragds_pipeline.config import KbManifest, load_kb_manifest
from ragds_pipeline.kb.normalise import NORMALISER_VERSION
from ragds_pipeline.kb.scan import Scan, ScannedFile, scan
from ragds_pipeline.records import KbIssue, canonical_json
from ragds_pipeline.storage.files import write_bytes, write_text


class UnknownRevision(LookupError):
    """A source version that is neither what the folder holds now nor in the archive."""


class KbSource(Protocol):
    """Where the bytes of a revision come from: the folder, or the archive."""

    def read(self, file: ScannedFile) -> bytes:
        """Return the bytes of one file; raise OSError if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The KB folder itself."""

    root: Path

    def read(self, file: ScannedFile) -> bytes:
        """Return the file's bytes; raise OSError also if they are no longer those that were scanned."""
        data = (self.root / file.path).read_bytes()
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise OSError(0, "changed while it was read; run again when the folder is quiet")
        return data


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive of revisions below ``root`` (``data/archive``)."""

    root: Path

    def read(self, file: ScannedFile) -> bytes:
        """Return the bytes of a file of an archived revision."""
        return self._blob(file.sha256).read_bytes()

    def _blob(self, sha256: str) -> Path:
        return self.root / "blobs" / sha256[:2] / sha256

    def _manifest(self, source_version: str) -> Path:
        return self.root / "revisions" / f"{source_version}.json"

    def content_of(self, source_version: str) -> str | None:
        """Return the content hash of an archived revision, or None."""
        path = self._manifest(source_version)
        return str(json.loads(path.read_text(encoding="utf-8"))["content_sha256"]) if path.exists() else None

    def store(self, revision: Revision, source: KbSource) -> None:
        """Copy what is not there yet, then write the revision's manifest; a second time it does nothing."""
        if self.content_of(revision.source_version) == revision.content_sha256:
            return
        kept = []
        for file in revision.scan.files:
            if not self._blob(file.sha256).exists():
                try:
                    write_bytes(self._blob(file.sha256), source.read(file))
                except OSError:
                    continue  # reading the documents reports it; the archive holds what could be read
            kept.append({"path": file.path, "sha256": file.sha256, "size": file.size})
        content = {
            "source_version": revision.source_version,
            "content_sha256": revision.content_sha256,
            "kb": revision.manifest.model_dump(mode="json"),
            "files": kept,
            "issues": [[i.path, i.reason, i.detail] for i in revision.scan.issues],
        }
        write_text(self._manifest(revision.source_version), json.dumps(content, ensure_ascii=False, indent=1) + "\n")

    def load(self, source_version: str) -> Revision:
        """Return an archived revision; raise UnknownRevision if there is none of that name."""
        path = self._manifest(source_version)
        if not path.exists():
            raise UnknownRevision(source_version)
        content = json.loads(path.read_text(encoding="utf-8"))
        files = tuple(ScannedFile(f["path"], f["size"], f["sha256"]) for f in content["files"])
        issues = tuple(KbIssue(path, reason, detail, True) for path, reason, detail in content["issues"])
        manifest = KbManifest.model_validate(content["kb"])
        return Revision(source_version, content["content_sha256"], manifest, Scan(files, issues))


@dataclass(frozen=True, slots=True)
class Revision:
    """One state of the whole KB."""

    source_version: str
    content_sha256: str
    manifest: KbManifest
    scan: Scan


def content_sha256(state: Scan, manifest: KbManifest, converter: str) -> str:
    """Return the hash of all that a revision's texts depend on: files, encodings, normaliser and converter."""
    parts = [state.listing_sha256(), manifest.encodings, NORMALISER_VERSION]
    if any(not is_native(file.path) for file in state.files):
        parts.append(converter)
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def is_native(path: str) -> bool:
    """Return whether a document is read as it is, without a converter."""
    return path.lower().endswith((".md", ".markdown", ".txt"))


def current_revision(
    kb_dir: Path, archive: Archive, max_file_bytes: int, converter: str, stat_cache: Path | None = None
) -> Revision:
    """Return the revision that the KB folder holds now, with its source version.

    Raises ConfigError for a bad ``kb.yaml`` and KbMissing for a missing or empty folder.
    """
    manifest = load_kb_manifest(kb_dir)
    state = scan(kb_dir, manifest, max_file_bytes, stat_cache)
    content = content_sha256(state, manifest, converter)
    version = manifest.source_version or f"rev-{content[:12]}"
    if archive.content_of(version) not in (None, content):
        version = f"{version}+{content[:8]}"
    return Revision(version, content, manifest, state)


def find_revision(source_version: str, current: Revision, archive: Archive) -> tuple[Revision, bool]:
    """Return the revision of that name and whether it is what the folder holds now.

    Raises UnknownRevision where the folder has moved on and the revision was never archived.
    """
    if current.source_version == source_version:
        return current, True
    try:
        return archive.load(source_version), False
    except UnknownRevision:
        raise UnknownRevision(
            f"{source_version} is not in the archive and the KB folder now holds {current.source_version}: "
            f"materialise {current.source_version}, or put the old documents back"
        ) from None
