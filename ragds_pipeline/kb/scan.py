"""Look at the KB folder: which files are documents, what is their content hash, what was left out and why.

No file is read whose size and modification time are as they were at the last scan (the *stat cache*), so a KB in
which nothing changed costs one ``stat`` per file.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pathspec

from ragds_pipeline.config import KbManifest
from ragds_pipeline.records import KbIssue
from ragds_pipeline.storage.files import sha256_file, write_text

RACY_NS = 2_000_000_000
"""A file changed within two seconds before the cache was written may change again without its time stamp moving
(coarse clocks, the reason behind git's 'racy' entries), so its hash is not trusted the next time."""


class KbMissing(RuntimeError):
    """The KB folder is not there or holds no document: an error, never 'everything was deleted'."""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """One file that is a document by its name."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Scan:
    """The state of the KB folder: its documents in the order of their paths, and what was left out."""

    files: tuple[ScannedFile, ...]
    issues: tuple[KbIssue, ...]

    def listing_sha256(self) -> str:
        """Return one hash over every path and content, the same wherever the folder lies."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(f"{file.path}\0{file.sha256}\n".encode())
        return digest.hexdigest()


def _walk(root: Path, issues: list[KbIssue]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield (path, stat) of every regular file below ``root``; list what is neither file nor folder."""
    folders = [""]
    real_root = os.path.realpath(root)
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(os.path.join(root, folder)), key=lambda e: e.name)  # noqa: PTH118
        except OSError as error:
            issues.append(_issue(folder or ".", "unreadable", f"folder: {error.strerror}"))
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if any("\ud800" <= char <= "\udfff" for char in entry.name):
                issues.append(_issue(repr(path)[1:-1], "name_not_utf8", "rename the file; its name is not UTF-8"))
                continue
            if entry.is_symlink():
                target = os.path.realpath(entry.path)
                if target != real_root and not target.startswith(real_root + os.sep):
                    issues.append(_issue(path, "symlink_outside_root", "the link leads out of the KB folder"))
                    continue
                if os.path.isdir(target):  # noqa: PTH112
                    issues.append(_issue(path, "symlink_to_folder", "links to folders are not followed"))
                    continue
            elif entry.is_dir():
                folders.append(path)
                continue
            try:
                info = entry.stat()
            except OSError as error:
                issues.append(_issue(path, "unreadable", str(error.strerror)))
                continue
            if not stat.S_ISREG(info.st_mode):
                issues.append(_issue(path, "not_a_file", "a socket, pipe or device"))
                continue
            yield path, info


def _issue(path: str, reason: str, detail: str) -> KbIssue:
    return KbIssue(path=path, reason=reason, detail=detail, skipped=True)


class _StatCache:
    """Content hashes by path, valid while size and modification time stand."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._old: dict[str, list[object]] = {}
        self._new: dict[str, list[object]] = {}
        self._written_ns = 0
        if path is not None and path.exists():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                self._old, self._written_ns = content["files"], content["written_ns"]
            except (ValueError, KeyError, TypeError):
                self._old = {}  # a cache that cannot be read is only a slower scan

    def sha256(self, root: Path, path: str, info: os.stat_result) -> str:
        known = self._old.get(path)
        key = [info.st_size, info.st_mtime_ns, info.st_ino]
        if known is not None and known[:3] == key and info.st_mtime_ns < self._written_ns - RACY_NS:
            sha = str(known[3])
        else:
            sha = sha256_file(root / path)
        self._new[path] = [*key, sha]
        return sha

    def save(self) -> None:
        if self._path is not None and (self._new != self._old or not self._path.exists()):
            content = {"written_ns": time.time_ns(), "files": self._new}
            write_text(self._path, json.dumps(content, ensure_ascii=True))


def scan(root: Path, manifest: KbManifest, max_file_bytes: int, stat_cache: Path | None = None) -> Scan:
    """Return the state of the KB folder ``root``.

    Every file that is not part of the KB is in ``issues``: explicitly excluded ones and odd ones each on a line of
    their own, files of other kinds counted per extension. Raises KbMissing where there is no folder or no document
    at all, because an unmounted folder must never look like a deleted KB.
    """
    if not root.is_dir():
        raise KbMissing(f"the knowledge base {root} is not a folder: set kb.path in ragds.yaml, or mount it")
    include = pathspec.GitIgnoreSpec.from_lines(manifest.include)
    exclude = pathspec.GitIgnoreSpec.from_lines(manifest.exclude)
    issues: list[KbIssue] = []
    files: list[ScannedFile] = []
    others: Counter[str] = Counter()
    cache = _StatCache(stat_cache)
    for path, info in _walk(root, issues):
        if path == "kb.yaml" or path.startswith(".git/"):
            continue
        if not include.match_file(path):
            others[PurePosixPath(path).suffix or "(no extension)"] += 1
        elif exclude.match_file(path):
            issues.append(_issue(path, "excluded", "matches exclude in kb.yaml"))
        elif info.st_size > max_file_bytes:
            issues.append(_issue(path, "too_large", f"{info.st_size:,} bytes; kb.max_file_bytes is {max_file_bytes:,}"))
        else:
            try:
                files.append(ScannedFile(path, info.st_size, cache.sha256(root, path, info)))
            except OSError as error:
                issues.append(_issue(path, "unreadable", str(error.strerror)))
    for extension, count in sorted(others.items()):
        issues.append(_issue(f"*{extension}", "not_included", f"{count} file(s) match no include pattern in kb.yaml"))
    if not files:
        raise KbMissing(f"the knowledge base {root} holds no document: check kb.path and include in kb.yaml")
    cache.save()
    files.sort(key=lambda file: file.path)
    return Scan(tuple(files), tuple(sorted(issues, key=lambda i: (i.path, i.reason))))
