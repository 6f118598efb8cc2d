"""One document, ready to be asked about: its text with sections, passages and quotable sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ragds_pipeline.kb.structure import Structure, parse
from ragds_pipeline.records import Document, Passage, Section
from ragds_pipeline.spans.sentences import Sentence, sentences
from ragds_pipeline.storage.schemas import to_records
from ragds_pipeline.storage.tables import TableFile


@dataclass(frozen=True)
class Outline:
    """A document's text and structure. Sections and sentences are made when they are first asked for."""

    document: Document
    passages: Sequence[Passage]
    """The document's passages, in order."""
    fresh: frozenset[int] | None = None
    """Start offsets of the passages that may be asked about; None for all of them."""

    @property
    def askable(self) -> Sequence[Passage]:
        """The passages that may be asked about, in order."""
        return [p for p in self.passages if self.fresh is None or p.start_char in self.fresh]

    @property
    def path(self) -> str:
        """The document's path."""
        return self.document.path

    @property
    def text(self) -> str:
        """The normalised text."""
        return self.document.text

    @property
    def title(self) -> str:
        """The document's title."""
        return self.document.title

    @property
    def language(self) -> str:
        """The document's language."""
        return self.document.language

    @cached_property
    def structure(self) -> Structure:
        """Sections and blocks, from one parse."""
        doc = self.document
        return parse(doc.path, doc.text, doc.text_sha256, doc.front_matter_end)

    @property
    def sections(self) -> Sequence[Section]:
        """The document's sections, in order, the root first."""
        return self.structure.sections

    @cached_property
    def sentences(self) -> list[Sentence]:
        """The document's quotable units, in order."""
        return sentences(self.text, self.structure.blocks)

    def passage_at(self, offset: int) -> Passage:
        """Return the passage that holds the character at ``offset``."""
        return next(p for p in self.passages if p.start_char <= offset < p.end_char)

    def section_chain(self, offset: int) -> list[int]:
        """Return the indexes of the sections around ``offset``, innermost first, down to the root's 0."""
        innermost = max(
            (s for s in self.sections if s.start_char <= offset < s.end_char or s.index == 0),
            key=lambda s: (s.level, s.start_char),
        )
        chain, at = [], innermost.index
        while at != -1:
            chain.append(at)
            at = self.sections[at].parent
        return chain


def load_outlines(
    documents: TableFile,
    passages: TableFile,
    paths: Iterable[str],
    fresh: Mapping[str, Iterable[int]] | None = None,
) -> dict[str, Outline]:
    """Return the outlines of the documents at ``paths``, by path; a path that is no document is left out.

    ``fresh`` holds, by path, the start offsets of the passages that may be asked about; without it all may.
    """
    wanted = set(paths)
    cut: dict[str, list[Passage]] = {}
    for passage in to_records(Passage, passages.where("document_path", wanted)):
        cut.setdefault(passage.document_path, []).append(passage)
    found = to_records(Document, documents.where("path", wanted))
    shown = {path: frozenset(starts) for path, starts in (fresh or {}).items()}
    return {
        doc.path: Outline(doc, cut.get(doc.path, []), None if fresh is None else shown.get(doc.path, frozenset()))
        for doc in found
    }
