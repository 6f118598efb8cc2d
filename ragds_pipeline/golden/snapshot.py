"""Freezing: a snapshot is a folder of files that never changes.

``data/golden/<source_version>/snapshot-0001/`` holds the golden set as JSONL and Parquet, the no_answer set beside it,
the JSON Schema of a record, the normalised texts that the spans refer to, and a manifest with every file's SHA-256. The
SHA-256 of the manifest itself is kept beside the snapshots (``seals``).
Freezing the same again finds the same bytes and keeps the snapshot; anything else becomes the next number.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ragds_pipeline.golden import releases, seals
from ragds_pipeline.golden.changelog import as_markdown
from ragds_pipeline.golden.registry import Registered, Registry
from ragds_pipeline.golden.text_names import text_names
from ragds_pipeline.records import ChangelogRow, FunnelStep, GivenId, GoldenItem, MissingRow
from ragds_pipeline.storage.files import inside, locked, sha256_file
from ragds_pipeline.storage.schemas import as_json, to_table
from ragds_pipeline.storage.tables import write_table

GOLDEN_SET = "golden_set"
NO_ANSWER = "no_answer"
MANIFEST = "manifest.json"

_SNAPSHOT = re.compile(r"snapshot-\d{4,}")
_OURS = re.compile(r"(?:registry|releases)\.(?:jsonl|lock)_*", re.IGNORECASE)


class SnapshotDamaged(RuntimeError):
    """A file of a frozen snapshot is not what its manifest says."""


class RegistryMoved(RuntimeError):
    """Another snapshot was released since the items were prepared, so their ids may be taken."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """Where a snapshot is."""

    path: Path
    number: int
    created: bool
    """False where the same content was frozen before."""


@dataclass(frozen=True, slots=True)
class Contents:
    """All that goes into a snapshot."""

    source_version: str
    items: Sequence[GoldenItem]
    no_answer: Sequence[GoldenItem]
    texts: Mapping[str, str]
    """Normalised texts by document path, at least of those that the items refer to."""
    funnel: Sequence[FunnelStep]
    missing: Sequence[MissingRow]
    versions: Mapping[str, Any]
    """Versions of code, normaliser, structure, prompts and models, and the plan."""
    baseline: str = ""
    """The frozen set that the revision was held against; empty for a first one."""
    changelog: Sequence[ChangelogRow] = ()
    """What became of the items of that set; written out where there is one."""
    no_answer_funnel: Sequence[FunnelStep] = ()
    """The funnel of the no_answer set, which adds up on its own."""
    no_answer_missing: Sequence[MissingRow] = ()


def freeze(contents: Contents, root: Path, release: Callable[[], None] = lambda: None) -> Frozen:
    """Write the snapshot below ``root/<source_version>``, or find that it is there.

    It is made beside its place and renamed when it is complete; ``release`` is called just before, when nothing but a
    kill can come between, and what it raises leaves no snapshot. Raises SnapshotDamaged where the latest snapshot was
    changed: a damaged one is never built upon.
    """
    folder = folder_of(root, contents.source_version)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        latest = max((number_of(path) for path in snapshots(folder)), default=0)
        staged = Path(tempfile.mkdtemp(prefix=".staged-", dir=folder))
        try:
            if latest:
                path = _name(folder, latest)
                verify(path)
                _write(contents, staged, latest)
                if _manifest_bytes(staged) == _manifest_bytes(path):
                    seals.record(folder, latest, path / MANIFEST)
                    release()
                    releases.record(root, contents.source_version, latest)
                    return Frozen(path, latest, created=False)
                shutil.rmtree(staged)
                staged.mkdir()
            number = latest + 1
            _write(contents, staged, number)
            staged.chmod(0o755)
            release()
            seals.record(folder, number, staged / MANIFEST)
            staged.replace(_name(folder, number))
            _sync(folder)
            releases.record(root, contents.source_version, number)
            return Frozen(_name(folder, number), number, created=True)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


def folder_of(root: Path, source_version: str) -> Path:
    """Return the folder of a revision's snapshots below ``root``; raise UnsafePath for one that would lead elsewhere.

    A version that is called as a file of ours beside it gets an underscore more.
    """
    taken = _OURS.fullmatch(source_version) is not None
    return inside(root, f"{source_version}_" if taken else source_version)


def snapshots(folder: Path) -> list[Path]:
    """Return the snapshots in the folder of a revision, oldest first. A copy such as ``snapshot-0001.bak`` is none."""
    found = [path for path in folder.glob("snapshot-*") if _SNAPSHOT.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=number_of)


def number_of(path: Path) -> int:
    """Return the number of a snapshot."""
    return int(path.name.removeprefix("snapshot-"))


def register(registry: Registry, given: Sequence[GivenId]) -> None:
    """Enter the ids of a snapshot that is about to be released; a second time it does nothing.

    Raises RegistryMoved where ids were given elsewhere since these were, so that they may be taken.
    """
    with locked(registry.path.with_suffix(".lock")):
        entries = registry.entries()
        there = set(entries)
        named = {
            Registered(g.id, g.candidate_id, g.split, g.first_frozen_in, g.root_id, g.evidence_keys): g for g in given
        }
        # Of two sets, one may have been prepared before the last release and have all its ids in the register already.
        new = {entry: g for entry, g in named.items() if entry not in there}
        if any(g.register_length != len(entries) for g in new.values()):
            raise RegistryMoved(
                "another snapshot was released meanwhile: materialise golden_items and no_answer_items again, then this"
            )
        if new:
            registry.add(new)


def verify(path: Path) -> dict[str, Any]:
    """Return the manifest of the snapshot at ``path``.

    Raises SnapshotDamaged unless every file is as the manifest says, there is no other, and the manifest is the one
    that was written at freezing (where that is on record beside the snapshot; a copy that was handed on has no record).
    """
    try:
        sealed = seals.recorded(path.parent).get(path.name)
        if sealed is not None and sha256_file(path / MANIFEST) != sealed:
            raise SnapshotDamaged(f"{path / MANIFEST} was changed after freezing; restore it from a backup")
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        for name, sha in manifest["files"].items():
            if sha256_file(inside(path, name)) != sha:
                raise SnapshotDamaged(f"{path / name} was changed after freezing; restore it from a backup")
        present = {str(p.relative_to(path)) for p in path.rglob("*") if not p.is_dir() or p.is_symlink()}
        if extra := sorted(present - manifest["files"].keys() - {MANIFEST}):
            raise SnapshotDamaged(f"{path / extra[0]} is no part of the snapshot ({len(extra)} such); take it away")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise SnapshotDamaged(f"{path}: the manifest or a file it names cannot be read ({error})") from error
    return manifest


def read_items(path: Path, name: str = GOLDEN_SET) -> list[GoldenItem]:
    """Return the items of a snapshot from its JSONL."""
    adapter = TypeAdapter(GoldenItem)
    lines = (path / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [adapter.validate_json(line) for line in lines if line]


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of the golden set, made from the record."""
    schema = TypeAdapter(GoldenItem).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _name(folder: Path, number: int) -> Path:
    return folder / f"snapshot-{number:04d}"


def _manifest_bytes(path: Path) -> bytes:
    return (path / MANIFEST).read_bytes()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(contents: Contents, folder: Path, number: int) -> None:
    documents = _write_texts(contents, folder)
    for name, items in ((GOLDEN_SET, contents.items), (NO_ANSWER, contents.no_answer)):
        lines = [json.dumps(as_json(item), ensure_ascii=False) + "\n" for item in items]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
        write_table(to_table(GoldenItem, items), folder / f"{name}.parquet")
    if contents.baseline:
        _write_changelog(contents, folder)
    schema = json.dumps(record_schema(), ensure_ascii=False, indent=1) + "\n"
    (folder / "record.schema.json").write_text(schema, encoding="utf-8", newline="\n")
    files = {str(p.relative_to(folder)): sha256_file(p) for p in sorted(folder.rglob("*")) if p.is_file()}
    manifest = {
        "source_version": contents.source_version,
        "snapshot": number,
        "baseline": contents.baseline,
        "counts": _counts(contents),
        "funnel": [as_json(step) for step in contents.funnel],
        "missing": [as_json(row) for row in contents.missing],
        "no_answer": {
            "counts": {
                "items": len(contents.no_answer),
                "split": _by("split", contents.no_answer),
                "language": _by("language", contents.no_answer),
            },
            "funnel": [as_json(step) for step in contents.no_answer_funnel],
            "missing": [as_json(row) for row in contents.no_answer_missing],
        },
        "versions": contents.versions,
        "documents": documents,
        "files": files,
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")


def _write_changelog(contents: Contents, folder: Path) -> None:
    lines = [json.dumps(as_json(row), ensure_ascii=False) + "\n" for row in contents.changelog]
    (folder / "changelog.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
    page = as_markdown(contents.changelog, contents.baseline, contents.source_version)
    (folder / "changelog.md").write_text(page, encoding="utf-8", newline="\n")


def _write_texts(contents: Contents, folder: Path) -> list[dict[str, str]]:
    """Write the texts that items refer to and return where each is."""
    referred = {p.document_path for item in contents.items for p in item.passages}
    referred |= {a.document_path for item in contents.items for p in item.passages for a in p.alternatives}
    documents = []
    for path, name in sorted(text_names(referred).items()):
        target = inside(folder / "texts", name)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = contents.texts[path].encode("utf-8")
        target.write_bytes(data)
        documents.append(
            {"document_path": path, "file": f"texts/{name}", "text_sha256": hashlib.sha256(data).hexdigest()}
        )
    return documents


def _by(attribute: str, items: Sequence[GoldenItem]) -> dict[str, int]:
    return dict(sorted(Counter(str(getattr(item, attribute)) for item in items).items()))


def _counts(contents: Contents) -> dict[str, Any]:
    def by(attribute: str) -> dict[str, int]:
        return _by(attribute, contents.items)

    return {
        "items": len(contents.items),
        "no_answer": len(contents.no_answer),
        "split": by("split"),
        "type": by("type"),
        "difficulty": by("difficulty"),
        "language": by("language"),
        "document": dict(sorted(Counter(i.passages[0].document_path for i in contents.items).items())),
        "passages": sum(len(item.passages) for item in contents.items),
    }
