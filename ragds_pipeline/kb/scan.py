"""Look at the KB folder: which files are documents, what is their content hash, what was left out and why.

No file is read whose size and modification time are as they were at the last scan (the *stat cache*), so a KB in
which nothing changed costs one ``stat`` per file.

A link is judged by its own path and by that of the file it leads to. Folders of tools and the project's own data
folder are never entered.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from ragds_pipeline.config import ConfigError, KbManifest
from ragds_pipeline.kb.normalise import Undecodable, decode, normalise
from ragds_pipeline.kb.patterns import FirstMatch, Patterns, Unmatched
from ragds_pipeline.records import KbIssue, sha256_text
from ragds_pipeline.storage.files import sha256_file, write_text

RACY_NS = 2_000_000_000
"""A file changed within two seconds before the cache was written may change again without its time stamp moving
(coarse clocks, the reason behind git's 'racy' entries), so its hash is not trusted the next time."""

TOOL_FOLDERS = frozenset(
    [".git", ".hg", ".svn", ".venv", ".tox", ".nox", ".ipynb_checkpoints", "__pycache__", "node_modules"]
)
"""Folders that tools keep beside people's files; their READMEs and licences are nobody's knowledge base. Other hidden
folders are entered: people do write documents in ``.github``."""
TOOL_MARKS = ("pyvenv.cfg", "CACHEDIR.TAG")
"""Files that make a folder of any name a virtual environment or a cache (https://bford.info/cachedir/)."""


class KbMissing(RuntimeError):
    """The KB folder is not there or holds no document: an error, never 'everything was deleted'."""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """One file that is a document by its name."""

    path: str
    size: int
    sha256: str
    target: str = ""
    """Path in the KB of the file that a link leads to; empty for a file proper."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The state of the KB folder: its documents in the order of their paths, and what was left out."""

    files: tuple[ScannedFile, ...]
    issues: tuple[KbIssue, ...]
    withheld: tuple[str, ...] = ()
    """Hashes of confidential files that are no documents (excluded, of another kind): of their bytes and, where they
    are text, of the normalised text. A document with the same content is confidential too."""
    changed_at: float = dataclasses.field(default=0.0, compare=False)
    """When a document, a folder that holds one, or ``kb.yaml`` last changed, in seconds since 1970, by the file
    system's own marks. It says whether the folder is quiet, and is no part of what a revision is."""

    def listing_sha256(self) -> str:
        """Return one hash over every path and content, the same wherever the folder lies."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(f"{file.path}\0{file.sha256}\n".encode())
        return digest.hexdigest()


class _Walk:
    """Every regular file below a folder; what is neither file nor folder, or is left alone, goes to ``issues``."""

    def __init__(self, root: Path, data_dir: Path | None) -> None:
        self.issues: list[KbIssue] = []
        self.began_ns = time.time_ns()
        self.folders: dict[str, int] = {}
        """When each folder last changed; what was deleted shows there alone."""
        self._root = root
        self._real_root = os.path.realpath(root)
        self._data = self._inside(os.path.realpath(data_dir)) if data_dir is not None else None
        if self._data == "":
            raise ConfigError(f"kb.path and data are the same folder {root}: give the pipeline a folder of its own")

    def _inside(self, real: str) -> str | None:
        """Return a real path as one in the KB, or None if it lies elsewhere."""
        if real == self._real_root:
            return ""
        below = self._real_root.rstrip(os.sep) + os.sep
        return real.removeprefix(below).replace(os.sep, "/") if real.startswith(below) else None

    def _left_alone(self, path: str) -> str:
        """Return why nothing at or below ``path`` is looked at, or an empty text."""
        if self._data and (path == self._data or path.startswith(self._data + "/")):
            return "the project's data folder"
        if tool := next((part for part in path.split("/") if part in TOOL_FOLDERS), ""):
            return f"{tool} is a tool's folder"
        return ""

    def __iter__(self) -> Iterator[tuple[str, os.stat_result, str]]:
        """Yield (path, stat, target of a link)."""
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                here = os.path.join(self._root, folder)  # noqa: PTH118
                entries = sorted(os.scandir(here), key=lambda e: e.name)
                self.folders[folder] = _changed_ns(os.stat(here), self.began_ns)  # noqa: PTH116
            except OSError as error:
                self._leave(folder or ".", "unreadable", f"folder: {error.strerror}")
                continue
            if folder and (mark := next((e.name for e in entries if e.name in TOOL_MARKS), "")):
                self._leave(folder, "not_included", f"folder: holds {mark}, so it is a tool's")
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if any("\ud800" <= char <= "\udfff" for char in entry.name):
                    self._leave(repr(path)[1:-1], "name_not_utf8", "rename the file; its name is not UTF-8")
                elif entry.is_symlink():
                    yield from self._link(path, entry)
                elif not entry.is_dir():
                    yield from self._file(path, entry, "")
                elif why := self._left_alone(path):
                    self._leave(path, "not_included", f"folder: {why}")
                else:
                    folders.append(path)

    def _link(self, path: str, entry: os.DirEntry[str]) -> Iterator[tuple[str, os.stat_result, str]]:
        real = os.path.realpath(entry.path)
        target = self._inside(real)
        if target is None:
            self._leave(path, "symlink_outside_root", "the link leads out of the KB folder")
        elif os.path.isdir(real):  # noqa: PTH112
            self._leave(path, "symlink_to_folder", "links to folders are not followed")
        elif why := self._left_alone(target):
            self._leave(path, "not_included", f"links to {target}: {why}")
        else:
            yield from self._file(path, entry, target)

    def _file(self, path: str, entry: os.DirEntry[str], target: str) -> Iterator[tuple[str, os.stat_result, str]]:
        try:
            info = entry.stat()
        except OSError as error:
            self._leave(path, "unreadable", str(error.strerror))
            return
        if stat.S_ISREG(info.st_mode):
            yield path, info, target
        else:
            self._leave(path, "not_a_file", "a socket, pipe or device")

    def _leave(self, path: str, reason: str, detail: str) -> None:
        self.issues.append(_issue(path, reason, detail))


def _changed_ns(info: os.stat_result, now_ns: int) -> int:
    """Return when a file last changed: ``rsync -a`` and ``tar`` keep old modification times, the change time tells.

    A mark that lies in the future says nothing; it would keep a folder from ever being quiet.
    """
    return max((mark for mark in (info.st_mtime_ns, info.st_ctime_ns) if mark <= now_ns), default=0)


def _issue(path: str, reason: str, detail: str) -> KbIssue:
    return KbIssue(path=path, reason=reason, detail=detail, skipped=True)


class _StatCache:
    """Content hashes by path, valid while size and modification time stand."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._old: dict[str, list[object]] = {}
        self._new: dict[str, list[object]] = {}
        self._written_ns = 0
        self._computed = False
        if path is not None and path.exists():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                self._old, self._written_ns = content["files"], content["written_ns"]
            except (ValueError, KeyError, TypeError):
                self._old = {}  # a cache that cannot be read is only a slower scan

    def get(self, name: str, info: os.stat_result, compute: Callable[[], str]) -> str:
        """Return what was computed for ``name`` when its file was as ``info`` says, else compute it now."""
        known = self._old.get(name)
        key = [info.st_size, info.st_mtime_ns, info.st_ino]
        if known is not None and known[:3] == key and info.st_mtime_ns < self._written_ns - RACY_NS:
            value = str(known[3])
        else:
            value = compute()
            self._computed = True
        self._new[name] = [*key, value]
        return value

    def save(self) -> None:
        # Also where only hashes were computed again: with a later time, files that were too young can be trusted.
        if self._path is not None and (self._computed or self._new != self._old or not self._path.exists()):
            content = {"written_ns": time.time_ns(), "files": self._new}
            write_text(self._path, json.dumps(content, ensure_ascii=True))


def scan(
    root: Path,
    manifest: KbManifest,
    max_file_bytes: int,
    stat_cache: Path | None = None,
    data_dir: Path | None = None,
) -> Scan:
    """Return the state of the KB folder ``root``. ``data_dir`` is the project's own folder, which is never entered.

    Every file that is not part of the KB is in ``issues``: explicitly excluded ones and odd ones each on a line of
    their own, files of other kinds counted per extension. Raises KbMissing where there is no folder or no document
    at all, because an unmounted folder must never look like a deleted KB, and ConfigError where a ``confidential``
    pattern matches no file, because what it was meant to protect would be sent to a model.
    """
    if not root.is_dir():
        raise KbMissing(f"the knowledge base {root} is not a folder: set kb.path in ragds.yaml, or mount it")
    include, exclude, confidential = map(Patterns, (manifest.include, manifest.exclude, manifest.confidential))
    encodings = FirstMatch(manifest.encodings)
    unprotecting = Unmatched(manifest.confidential)
    others_unmatched = {
        field: Unmatched(getattr(manifest, field)) for field in ("exclude", "encodings", "document_languages")
    }
    files: list[ScannedFile] = []
    withheld: set[str] = set()
    others: Counter[str] = Counter()
    changed_ns = 0
    cache = _StatCache(stat_cache)
    walk = _Walk(root, data_dir)
    issues = walk.issues
    for path, info, target in walk:
        for patterns in (unprotecting, *others_unmatched.values()):
            patterns.see(path, target)
        if path == "kb.yaml":
            changed_ns = max(changed_ns, _changed_ns(info, walk.began_ns))
            continue
        sha256 = partial(cache.get, path, info, partial(_sha256_below, root, path))
        included = False
        if not include.match(path):
            others[PurePosixPath(path).suffix or "(no extension)"] += 1
        elif exclude.match(path):
            issues.append(_issue(path, "excluded", "matches exclude in kb.yaml"))
        elif exclude.match(target):
            issues.append(_issue(path, "excluded", f"links to {target}, which matches exclude in kb.yaml"))
        elif info.st_size > max_file_bytes:
            issues.append(_issue(path, "too_large", f"{info.st_size:,} bytes; kb.max_file_bytes is {max_file_bytes:,}"))
        else:
            included = True
        try:
            if included:
                files.append(ScannedFile(path, info.st_size, sha256(), target))
                changed_ns = max(changed_ns, _changed_ns(info, walk.began_ns), walk.folders[path.rpartition("/")[0]])
            elif info.st_size <= max_file_bytes and confidential.match(path, target):
                # A copy of a larger file cannot become a document.
                encoding = encodings.get(path)
                text = partial(_text_sha256, root / path, encoding)
                withheld |= {sha256(), cache.get(f"{path}\0{encoding or ''}", info, text)}
        except OSError as error:
            issues.append(_issue(path, "unreadable", str(error.strerror)))
    for issue in tuple(issues):  # what is not entered or cannot be opened may be what a pattern means
        unprotecting.see(issue.path, f"{issue.path}/_")
    if left := unprotecting.left():
        raise ConfigError(
            f"{root / 'kb.yaml'}: confidential: {', '.join(map(repr, left))} matches no file, so it protects nothing: "
            "correct the pattern (as in .gitignore, relative to the KB folder), or remove it"
        )
    for extension, count in sorted(others.items()):
        issues.append(_issue(f"*{extension}", "not_included", f"{count} file(s) match no include pattern in kb.yaml"))
    for field, unmatched in others_unmatched.items():
        detail = f"a pattern of {field} in kb.yaml that matches no file"
        issues += [KbIssue(pattern, "pattern_matches_nothing", detail, skipped=False) for pattern in unmatched.left()]
    if not files:
        raise KbMissing(f"the knowledge base {root} holds no document: check kb.path and include in kb.yaml")
    cache.save()
    files.sort(key=lambda file: file.path)
    ordered = sorted(issues, key=lambda i: (i.path, i.reason, i.detail))
    return Scan(tuple(files), tuple(ordered), tuple(sorted(withheld - {""})), changed_ns / 1e9)


def _sha256_below(root: Path, path: str) -> str:
    return sha256_file(root / path)  # joined here, as most files are not read again


def _text_sha256(path: Path, encoding: str | None) -> str:
    """Return the hash of a file's normalised text, or an empty text if it holds none."""
    try:
        text = normalise(decode(path.read_bytes(), encoding).text)
    except Undecodable:
        return ""
    return sha256_text(text) if text.strip() else ""
