"""Which new document goes on where an old one ended: renamed files, followed by content as git does.

A file with the very same text is the same file under a new name. Else it is the new file that shares most of the old
one's lines, if that is enough (git's ``-M`` asks for 50 %; lines here, as there, weigh by their length).
"""

from __future__ import annotations

from collections import defaultdict

from rapidfuzz import fuzz

from ragds_pipeline.anchors.revision import Revision

LEAST_SHARED = 0.4
"""Share of the longer document's characters that must stand in lines common to both."""
_TELLING_LINE = 16
"""Shorter lines stand everywhere."""
_NAME_MARGIN = 5.0
"""Of several copies of a document, one whose name is closer to the old one by so much (of 100) is its successor."""


def renamed(gone: list[str], old: Revision, new: Revision) -> dict[str, list[str]]:
    """Return, for each path that is gone, the paths that hold the very same text and did not before.

    The most likely one comes first; a second one stands there only if its name is about as close.
    """
    by_hash = defaultdict(list)
    for path, digest in new.documents.items():
        if old.documents.get(path) != digest:
            by_hash[digest].append(path)
    found = {}
    for path in gone:
        copies = sorted(by_hash.get(old.documents[path], ()), key=lambda copy: (-fuzz.ratio(path, copy), copy))
        if copies:
            closest = fuzz.ratio(path, copies[0])
            found[path] = [copy for copy in copies if fuzz.ratio(path, copy) > closest - _NAME_MARGIN]
    return found


def successors(gone: list[str], old: Revision, new: Revision) -> dict[str, str]:
    """Return, for each path that is gone, the new path whose document shares most with it; only those that do."""
    if not gone:
        return {}
    holders: dict[int, list[str]] = defaultdict(list)
    sizes: dict[str, int] = {}
    for path in sorted(path for path in new.documents if path not in old.documents):
        lines = _lines(new.load(path))
        sizes[path] = sum(lines.values())
        for line in lines:
            holders[line].append(path)
    found = {}
    for path in gone:
        lines = _lines(old.load(path))
        shared: dict[str, int] = defaultdict(int)
        for line, size in lines.items():
            for holder in holders.get(line, ()):
                shared[holder] += size
        total = sum(lines.values())
        ranked = sorted(((-shared[each] / max(total, sizes[each]), each) for each in shared), key=lambda rank: rank)
        if ranked and -ranked[0][0] >= LEAST_SHARED:
            found[path] = ranked[0][1]
    return found


def _lines(text: str) -> dict[int, int]:
    """The distinct telling lines of a text, hashed, with their lengths."""
    stripped = (line.strip() for line in text.split("\n"))
    return {hash(line): len(line) for line in stripped if len(line) >= _TELLING_LINE}
