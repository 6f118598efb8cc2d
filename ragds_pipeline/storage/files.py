"""Files that are either whole or not there: write beside the place, flush, then rename."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class UnsafePath(ValueError):
    """A path from a document, a sheet or a model leads out of the folder it must stay in."""


def inside(root: Path, relative: str) -> Path:
    """Return ``root/relative``; raise UnsafePath if that (symlinks followed) is not below ``root``."""
    # By os.path: a snapshot has a file for each document, and pathlib takes ten times as long for each.
    base = os.path.realpath(root)
    path = os.path.realpath(os.path.join(base, relative))  # noqa: PTH118
    if not path.startswith(base.rstrip(os.sep) + os.sep):
        raise UnsafePath(f"{relative!r} leads out of {root}")
    return Path(path)


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``; see :func:`write_chunks`."""
    write_chunks(path, [data])


def write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """Write ``chunks`` to ``path`` so that a reader sees the old file or the new one, also after a kill."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:80]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)  # mkstemp makes files for the owner alone
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write ``text`` in UTF-8 with its line ends as they are; see :func:`write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def sha256_file(path: Path) -> str:
    """Return the hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock named by ``path`` (a file beside the data) across processes of this machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
