"""Under which names a snapshot holds the texts of documents: readable ones, and never two under one.

A text document keeps its path; any other gets ``.md``, for Markdown is what it was converted to. Where that name is
taken, differs from another in case or form only, is also a folder, or is too long for a file system, part of the hash
of the document's path goes into it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

LONGEST_NAME = 240
"""Bytes of one part of a path; most file systems end at 255."""

_TEXT_SUFFIXES = (".md", ".markdown", ".txt")


def text_names(paths: Iterable[str]) -> dict[str, str]:
    """Return a name relative to ``texts/`` for each document; the same documents get the same names."""
    documents = sorted(set(paths), key=lambda path: (not path.lower().endswith(_TEXT_SUFFIXES), path))
    plain = {path: path if path.lower().endswith(_TEXT_SUFFIXES) else f"{path}.md" for path in documents}
    folders = {_same(str(parent)) for name in plain.values() for parent in PurePosixPath(name).parents}
    taken: set[str] = set()
    names: dict[str, str] = {}
    for path, name in plain.items():
        fits = all(len(part.encode()) <= LONGEST_NAME for part in name.split("/"))
        if not fits or _same(name) in taken | folders:
            name = _marked(path, name)
        taken.add(_same(name))
        names[path] = name
    return names


def _same(name: str) -> str:
    """Return what names have in common that a file system may take for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _marked(path: str, name: str) -> str:
    digest = hashlib.sha256(path.encode()).hexdigest()[:16]
    *folders, last = name.split("/")
    stem, dot, suffix = last.rpartition(".")
    room = LONGEST_NAME - len(f"-{digest}{dot}{suffix}")
    parts = [_shortened(folder, LONGEST_NAME) for folder in folders]
    return "/".join([*parts, f"{_shortened(stem, room)}-{digest}{dot}{suffix}"])


def _shortened(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")
