"""What became of each document since an earlier revision, and which passages are new.

A passage is new where its text, white space apart, does not stand in the document as it was, nor in any document that
has changed or gone since: what only moved is not new, and passages that were merely cut elsewhere are not either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from ragds_pipeline.records import DocumentChange, Passage
from ragds_pipeline.spans import seeds
from ragds_pipeline.spans.match_key import key_of

Texts = Callable[[Iterable[str]], Mapping[str, str]]
"""Returns the normalised texts of the documents at the given paths."""

Cut = Callable[[Iterable[str]], Iterable[Passage]]
"""Returns the passages of the documents at the given paths, in order."""


def first_revision(paths: Iterable[str]) -> list[DocumentChange]:
    """Return the changes where there is nothing earlier to compare with: every document is asked about as a whole."""
    return [DocumentChange(path, "first", "", (), 0, "") for path in sorted(paths)]


def compare(
    before: Mapping[str, str], now: Mapping[str, str], old_texts: Texts, cut: Cut, since: str
) -> list[DocumentChange]:
    """Return the change of every document since the revision ``since``, by path.

    ``before`` and ``now`` hold the SHA-256 of each document's normalised text by path. Only the texts of documents that
    have changed or gone are read, and only passages of those that are new or have changed.
    """
    gone = before.keys() - now.keys()
    by_sha: dict[str, list[str]] = {}
    for path in sorted(gone):
        by_sha.setdefault(before[path], []).append(path)
    found: dict[str, DocumentChange] = {}
    to_read: dict[str, str] = {}
    for path in sorted(now):
        if before.get(path) == now[path]:
            found[path] = DocumentChange(path, "unchanged", "", (), 0, since)
        elif path not in before and by_sha.get(now[path]):
            found[path] = DocumentChange(path, "renamed", by_sha[now[path]].pop(0), (), 0, since)
        else:
            to_read[path] = "changed" if path in before else "added"
    renamed = {change.was for change in found.values() if change.was}
    for path in sorted(gone - renamed):
        found[path] = DocumentChange(path, "removed", "", (), 0, since)
    altered = [path for path in before if path in gone - renamed or to_read.get(path) == "changed"]
    old = {path: key_of(text) for path, text in sorted(old_texts(altered).items())} if to_read else {}
    unlike: dict[str, list[tuple[Passage, str]]] = {path: [] for path in to_read}
    for passage in cut(to_read):
        key = key_of(passage.content)
        # Most passages of a changed document stand in it as it was: that short text is looked through first.
        if key and key not in old.get(passage.document_path, ""):
            unlike[passage.document_path].append((passage, key))
    stand = _standing({key for each in unlike.values() for _, key in each}, list(old.values()))
    for path, status in to_read.items():
        fresh = [passage for passage, key in unlike[path] if key not in stand]
        size = sum(p.end_char - p.start_char for p in fresh)
        found[path] = DocumentChange(path, status, "", tuple(p.start_char for p in fresh), size, since)
    return [found[path] for path in sorted(found)]


def _standing(keys: Set[str], texts: Sequence[str]) -> set[str]:
    """Return those of ``keys`` that stand in any of ``texts``, which are keys as well.

    By a join on seeds: a search for each key through all texts would be quadratic in what has changed.
    """
    everything = "\n".join(texts)  # white space stands in no key, so that none is found across two texts
    encoded = {key: key.encode("utf-8", "surrogatepass") for key in keys}
    long = [data for data in encoded.values() if len(data) >= seeds.SHORTEST]
    found = seeds.find_all(everything.encode("utf-8", "surrogatepass"), long).keys() if long else set()
    return {key for key, data in encoded.items() if data in found or (len(data) < seeds.SHORTEST and key in everything)}


def by_status(changes: Sequence[DocumentChange]) -> dict[str, int]:
    """Return how many documents there are of each status, in a fixed order."""
    order = ("first", "added", "changed", "renamed", "removed", "unchanged")
    counts = {status: sum(change.status == status for change in changes) for status in order}
    return {status: count for status, count in counts.items() if count}
