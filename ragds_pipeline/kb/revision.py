"""Revisions of the KB: what version a state of the folder is, and the archive from which any can be rebuilt.

``data/archive/blobs/<2 hex>/<sha256>`` holds every file once; ``data/archive/revisions/<source_version>.json`` says
which files a revision is made of. A declared version whose content changed becomes ``<version>+<8 hex>``, so a frozen
partition is never silently rewritten (DESIGN.md 7).

What is confidential is no part of a revision's content: it is a decision of today, and holds for old revisions too.
"""

from __future__ import annotations

import errno
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ragds_pipeline.config import KbManifest, load_kb_manifest
from ragds_pipeline.kb.normalise import NORMALISER_VERSION
from ragds_pipeline.kb.scan import Scan, ScannedFile, scan
from ragds_pipeline.records import KbIssue, canonical_json
from ragds_pipeline.storage.files import write_bytes, write_text


class UnknownRevision(LookupError):
    """A source version that is neither what the folder holds now nor in the archive."""


class UnrepeatableRevision(RuntimeError):
    """An archived revision whose texts would no longer be those it was made of."""


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
        """Return the bytes of a file of an archived revision; raise OSError if they could not be archived."""
        try:
            return self._blob(file.sha256).read_bytes()
        except FileNotFoundError as error:
            raise OSError(errno.ENOENT, "not in the archive: it could not be read when it was archived") from error

    def _blob(self, sha256: str) -> Path:
        return self.root / "blobs" / sha256[:2] / sha256

    def _manifest(self, source_version: str) -> Path:
        return self.root / "revisions" / f"{source_version}.json"

    def content_of(self, source_version: str) -> str | None:
        """Return the content hash of an archived revision, or None."""
        path = self._manifest(source_version)
        return str(json.loads(path.read_text(encoding="utf-8"))["content_sha256"]) if path.exists() else None

    def missing(self, source_version: str) -> list[str]:
        """Return the documents of an archived revision that could not be read when it was archived."""
        return list(json.loads(self._manifest(source_version).read_text(encoding="utf-8"))["missing"])

    def store(self, revision: Revision, source: KbSource) -> None:
        """Copy what is not there yet and write the revision's manifest, unless it already says the same.

        A file that cannot be read now is listed as missing; the next call tries again. Safe beside other processes:
        blobs are named by their content, and every file is written aside and renamed.
        """
        path = self._manifest(revision.source_version)
        written = path.read_text(encoding="utf-8") if path.exists() else ""
        if written == _manifest_text(revision, []):
            return
        missing = []
        for file in revision.scan.files:
            if not self._blob(file.sha256).exists():
                try:
                    write_bytes(self._blob(file.sha256), source.read(file))
                except OSError:  # reading the documents reports it
                    missing.append(file.path)
        text = _manifest_text(revision, missing)
        if text != written:
            write_text(path, text)

    def load(self, source_version: str) -> Revision:
        """Return an archived revision; raise UnknownRevision if there is none of that name.

        It says what was confidential then; :func:`archived_revision` also knows what is so now.
        """
        path = self._manifest(source_version)
        if not path.exists():
            raise UnknownRevision(source_version)
        content = json.loads(path.read_text(encoding="utf-8"))
        files = tuple(ScannedFile(f["path"], f["size"], f["sha256"], f.get("target", "")) for f in content["files"])
        issues = tuple(KbIssue(*issue) for issue in content["issues"])
        state = Scan(files, issues, tuple(content.get("withheld", ())))
        manifest = KbManifest.model_validate(content["kb"])
        made_with = content.get("made_with", "another version")
        return Revision(source_version, content["content_sha256"], manifest, state, made_with=made_with)

    def confidential_lists(self) -> set[tuple[str, ...]]:
        """Return the ``confidential`` lists of all archived revisions, each once."""
        texts = (path.read_text(encoding="utf-8") for path in sorted((self.root / "revisions").glob("*.json")))
        return {tuple(json.loads(text)["kb"]["confidential"]) for text in texts}


def _manifest_text(revision: Revision, missing: list[str]) -> str:
    content = {
        "source_version": revision.source_version,
        "content_sha256": revision.content_sha256,
        "made_with": revision.made_with,
        "kb": revision.manifest.model_dump(mode="json"),
        "files": [
            {"path": f.path, "sha256": f.sha256, "size": f.size} | ({"target": f.target} if f.target else {})
            for f in revision.scan.files
        ],
        "missing": missing,
        "issues": [[i.path, i.reason, i.detail, i.skipped] for i in revision.scan.issues],
        "withheld": revision.scan.withheld,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class Revision:
    """One state of the whole KB."""

    source_version: str
    content_sha256: str
    manifest: KbManifest
    scan: Scan
    confidential_elsewhere: tuple[tuple[str, ...], ...] = ()
    """``confidential`` lists that hold besides the manifest's own: today's, and those of other revisions."""
    made_with: str = ""
    """Normaliser and converter that its content hash stands for, for messages."""


def content_sha256(state: Scan, manifest: KbManifest, converter: str) -> str:
    """Return the hash of all that a revision's texts depend on: files, encodings, normaliser and converter."""
    parts = [state.listing_sha256(), manifest.encodings, NORMALISER_VERSION]
    if any(not is_native(file.path) for file in state.files):
        parts.append(converter)
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def is_native(path: str) -> bool:
    """Return whether a document is read as it is, without a converter."""
    return path.lower().endswith((".md", ".markdown", ".txt"))


def _made_with(converter: str) -> str:
    return f"normaliser {NORMALISER_VERSION}, converter {converter}"


def current_revision(
    kb_dir: Path,
    archive: Archive,
    max_file_bytes: int,
    converter: str,
    stat_cache: Path | None = None,
    data_dir: Path | None = None,
) -> Revision:
    """Return the revision that the KB folder holds now, with its source version.

    Raises ConfigError for a bad ``kb.yaml`` and KbMissing for a missing or empty folder.
    """
    manifest = load_kb_manifest(kb_dir)
    state = scan(kb_dir, manifest, max_file_bytes, stat_cache, data_dir)
    content = content_sha256(state, manifest, converter)
    version = manifest.source_version or f"rev-{content[:12]}"
    if archive.content_of(version) not in (None, content):
        version = f"{version}+{content[:8]}"
    return Revision(version, content, manifest, state, made_with=_made_with(converter))


def archived_revision(source_version: str, archive: Archive, converter: str, today: KbManifest | None) -> Revision:
    """Return an archived revision with all that is confidential by any list: its own, another revision's or today's.

    ``today`` is the folder's manifest, None where the folder is not there: other revisions' lists stand in for it.
    Raises UnknownRevision, and UnrepeatableRevision where the texts would come out differently from how they were.
    """
    revision = archive.load(source_version)
    if content_sha256(revision.scan, revision.manifest, converter) != revision.content_sha256:
        raise UnrepeatableRevision(
            f"{source_version} was made with {revision.made_with}; here is {_made_with(converter)}, which may give "
            f"other texts than those that its evidence refers to. Install what it was made with to rebuild it, or "
            f"materialise what the KB folder holds now, which gets a version of its own"
        )
    lists = archive.confidential_lists() | ({tuple(today.confidential)} if today else set())
    return replace(revision, confidential_elsewhere=tuple(sorted(lists - {tuple(revision.manifest.confidential), ()})))


def find_revision(source_version: str, current: Revision, archive: Archive, converter: str) -> tuple[Revision, bool]:
    """Return the revision of that name and whether it is what the folder holds now.

    Raises UnknownRevision where the folder has moved on and the revision was never archived, and UnrepeatableRevision
    as :func:`archived_revision` does.
    """
    if current.source_version == source_version:
        return current, True
    try:
        return archived_revision(source_version, archive, converter, current.manifest), False
    except UnknownRevision:
        raise UnknownRevision(
            f"{source_version} is not in the archive and the KB folder now holds {current.source_version}: "
            f"materialise {current.source_version}, or put the old documents back"
        ) from None
