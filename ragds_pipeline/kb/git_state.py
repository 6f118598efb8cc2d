"""An old state of the KB out of a git repository, into a folder, without touching anybody's working tree or index.

The blobs are read as they are stored (``ls-tree``, ``cat-file``): ``git archive`` and a checkout would apply attributes
(``export-ignore``, line ends) and run filters that a repository configures. Git is called without a shell, what people
give as a ref is resolved to a commit id first, and nothing is fetched.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ragds_pipeline.storage.files import UnsafePath, inside

_LFS = b"version https://git-lfs.github.com/spec/v1\n"
_LINK = "120000"
"""Mode of a symbolic link."""


class GitFailed(RuntimeError):
    """The state cannot be read; the message says what to do."""


@dataclass(frozen=True, slots=True)
class GitState:
    """A commit that was found."""

    repository: Path
    commit: str
    """Full commit id."""


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    blob: str
    path: str
    """Relative to the KB's folder."""


def find_commit(repository: Path, ref: str) -> GitState:
    """Return the commit that ``ref`` (a branch, tag, commit id, ``HEAD~3`` ...) names; raise GitFailed if none."""
    if not ref.strip() or ref.startswith("-") or any(ord(char) < 32 or ord(char) == 127 for char in ref):
        raise GitFailed(f"{ref!r} is no git ref")
    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    done = _git(repository, *asked)
    commit = done.stdout.decode("ascii", "replace").strip()
    if done.returncode or not commit:
        why = done.stderr.decode("utf-8", "replace").strip()
        raise GitFailed(why or f"{repository} has no commit {ref!r}: fetch it first (git fetch), or correct the name")
    return GitState(repository, commit)


def write_state(state: GitState, folder_in_repository: str, target: Path) -> int:
    """Write the files below a folder of a commit into ``target`` (new or empty) and return how many there are.

    Links are written after all files, so that no file is written through one. Raises GitFailed for a folder that is not
    there, a Git LFS pointer (its content is elsewhere) and a path that would lead out of ``target``.
    """
    entries = list(_entries(state, folder_in_repository))
    if not entries:
        raise GitFailed(
            f"{state.commit[:12]} has no folder {folder_in_repository!r} (--path, from the repository's root)"
        )
    target.mkdir(parents=True, exist_ok=True)
    for entry, data in zip(entries, _blobs(state.repository, [entry.blob for entry in entries]), strict=True):
        if data.startswith(_LFS):
            raise GitFailed(
                f"{entry.path} is a Git LFS pointer in {state.commit[:12]}: use --from-folder on a checkout"
            )
        try:
            path = inside(target, entry.path)
        except UnsafePath as error:
            raise GitFailed(f"{entry.path!r} leads out of the folder") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.mode == _LINK:
            path.symlink_to(os.fsdecode(data))
        else:
            path.write_bytes(data)
    return len(entries)


def _entries(state: GitState, folder: str) -> Iterator[_Entry]:
    """Yield files, then links, by path. Submodules are repositories of their own and are left out."""
    base = PurePosixPath(folder.strip("/") or ".")
    if ".." in base.parts:
        raise GitFailed(f"{folder!r} leads out of the repository")
    prefix = "" if str(base) == "." else f"{base}/"
    done = _git(
        state.repository, "ls-tree", "-r", "-z", "--full-tree", state.commit, "--", *([prefix] if prefix else [])
    )
    if done.returncode:
        raise GitFailed(done.stderr.decode("utf-8", "replace").strip())
    found = []
    for line in filter(None, done.stdout.split(b"\0")):
        about, _, name = line.partition(b"\t")
        mode, kind, blob = about.decode("ascii").split()
        path = os.fsdecode(name)
        if kind == "blob" and path.startswith(prefix):
            found.append(_Entry(mode, blob, path.removeprefix(prefix)))
    yield from sorted(found, key=lambda entry: (entry.mode == _LINK, entry.path))


def _blobs(repository: Path, ids: list[str]) -> Iterator[bytes]:
    """Yield the content of blobs, in their order, one in memory at a time."""
    with subprocess.Popen(  # noqa: S603
        _command(repository, "cat-file", "--batch"), env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:  # fmt: skip
        if process.stdin is None or process.stdout is None:
            raise GitFailed("git could not be started")
        for blob in ids:
            process.stdin.write(f"{blob}\n".encode())
            process.stdin.flush()
            header = process.stdout.readline().split()
            if len(header) != 3:
                raise GitFailed(f"{blob} is not in {repository} (a partial clone?): git fetch --refetch")
            data = process.stdout.read(int(header[2]))
            process.stdout.read(1)
            yield data
        process.stdin.close()


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603
            _command(repository, *arguments), env=_environment(), capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise GitFailed("git is not installed") from error


def _command(repository: Path, *arguments: str) -> list[str]:
    return ["git", "-C", str(repository), "--no-replace-objects", *arguments]


def _environment() -> dict[str, str]:
    """Return the environment without what a hook or a user set to point git elsewhere; nothing is asked or fetched."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
