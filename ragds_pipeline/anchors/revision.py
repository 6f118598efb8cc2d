"""A revision of the documents as the ladder needs it: hashes of all, texts only of those that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ragds_pipeline.anchors.view import SectionsOf, TextView


@dataclass(frozen=True, slots=True)
class Revision:
    """All documents of one revision that may hold evidence (confidential ones left out, as at freezing)."""

    source_version: str
    documents: Mapping[str, str]
    """Path to the SHA-256 of the normalised text."""
    load: Callable[[str], str]
    """Gives the normalised text of a path."""
    sections_of: SectionsOf | None = None
    """Gives the sections of a document; None where they are not known: then only text nearby is compared."""

    def view(self, path: str) -> TextView:
        """Return a document as the ladder looks at it."""
        return TextView(path, self.load(path), self.sections_of)

    def texts(self, paths: list[str]) -> Iterator[tuple[str, str]]:
        """Yield paths with their texts, one at a time."""
        for path in paths:
            yield path, self.load(path)
