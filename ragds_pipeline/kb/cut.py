"""From the table of documents to the tables of sections and passages, one document in memory at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ragds_pipeline.config import PassageSettings
from ragds_pipeline.kb.passages import passage_stems, passages
from ragds_pipeline.kb.structure import STRUCTURE_VERSION, parse
from ragds_pipeline.records import Document, Passage, Section
from ragds_pipeline.storage.tables import TableFile, TableWriter


class _Cut(Protocol):
    """What sections and passages have in common."""

    @property
    def document_path(self) -> str: ...

    @property
    def text_sha256(self) -> str: ...


P = TypeVar("P", bound=_Cut)


@dataclass(frozen=True, slots=True)
class CutReport:
    """What cutting came to."""

    documents: int
    reused: int
    sections: int
    passages: int


class _Earlier(Generic[P]):
    """The rows of an earlier table by document, met in the order of paths."""

    def __init__(self, rows: Iterator[P]) -> None:
        self._groups = _by_document(rows)
        self._next = next(self._groups, None)

    def take(self, path: str, text_sha256: str) -> list[P] | None:
        while self._next is not None and self._next[0] < path:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != path or self._next[1][0].text_sha256 != text_sha256:
            return None
        return self._next[1]


def _by_document(rows: Iterator[P]) -> Iterator[tuple[str, list[P]]]:
    for path, group in groupby(rows, key=attrgetter("document_path")):
        yield path, list(group)


def cut_documents(
    documents: TableFile,
    settings: PassageSettings,
    sections_out: Path,
    passages_out: Path,
    previous: tuple[TableFile, TableFile] | None = None,
) -> CutReport:
    """Write the sections and the passages of every document.

    ``previous`` are both tables of an earlier materialisation: rows of documents whose text has not changed are taken
    from there, and if nothing changed at all the files are copied.
    """
    base = f"{STRUCTURE_VERSION}/{settings.target_chars}/{settings.max_chars}"
    whole = f"{base}:{documents.fingerprint}"
    if previous is not None and all(table.path.exists() and table.fingerprint == whole for table in previous):
        shutil.copyfile(previous[0].path, sections_out)
        shutil.copyfile(previous[1].path, passages_out)
        count = documents.num_rows
        return CutReport(count, count, TableFile(sections_out).num_rows, TableFile(passages_out).num_rows)
    usable = previous is not None and all(t.path.exists() and t.fingerprint.startswith(base + ":") for t in previous)
    old_sections = _Earlier[Section](previous[0].records(Section) if usable and previous else iter(()))
    old_passages = _Earlier[Passage](previous[1].records(Passage) if usable and previous else iter(()))
    stems = passage_stems(path for b in documents.batches(["path"]) for path in b.column("path").to_pylist())
    count = reused = 0
    with TableWriter(sections_out, Section, whole) as out_s, TableWriter(passages_out, Passage, whole) as out_p:
        for doc in documents.records(Document):
            found = old_sections.take(doc.path, doc.text_sha256)
            cut = old_passages.take(doc.path, doc.text_sha256)
            if found is None or cut is None or not cut[0].id.startswith(stems[doc.path] + "#"):
                structure = parse(doc.path, doc.text, doc.text_sha256, doc.front_matter_end)
                found = structure.sections
                cut = passages(
                    doc.path, doc.text, doc.text_sha256, found, structure.blocks,
                    settings.target_chars, settings.max_chars, stem=stems[doc.path],
                )  # fmt: skip
            else:
                reused += 1
            count += 1
            for section in found:
                out_s.add(section, 200)
            for passage in cut:
                out_p.add(passage, len(passage.content) * 2)
    return CutReport(count, reused, TableFile(sections_out).num_rows, TableFile(passages_out).num_rows)
