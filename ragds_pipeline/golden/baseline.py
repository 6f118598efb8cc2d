"""The frozen set that a revision is held against, with the documents of its time.

All old documents come from the tables of that revision. Where those are gone (another machine, a cleaned data folder),
the snapshot's own texts stand in: they are all that the frozen spans refer to, and every other document counts as new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ragds_pipeline.filters.no_answer_check import NOT_CHECKED
from ragds_pipeline.golden import snapshot as snapshots
from ragds_pipeline.golden.releases import Release, baseline_of
from ragds_pipeline.kb.documents import texts
from ragds_pipeline.records import Candidate, Drop, GoldenItem
from ragds_pipeline.records_no_answer import NoAnswerCandidate, NoAnswerDraft
from ragds_pipeline.storage.files import inside
from ragds_pipeline.storage.schemas import from_json
from ragds_pipeline.storage.tables import TableFile

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Baseline:
    """The last frozen set before a revision."""

    release: Release
    folder: Path
    """The snapshot's folder."""
    items: list[GoldenItem]
    no_answer: list[GoldenItem]
    candidates: list[Candidate]
    """All candidates of its revision, decided or not; empty where its tables are gone."""
    documents: dict[str, str]
    """SHA-256 of the normalised text of each document, by path."""
    table: TableFile | None
    """The documents' table, where it is still there."""
    no_answer_candidates: list[NoAnswerCandidate] = field(default_factory=list)
    """All questions without an answer of its revision, as asked for and as reviewers changed them; empty where its
    tables are gone."""
    no_answer_held: list[NoAnswerDraft] = field(default_factory=list)
    """Questions that could not be asked of every document then: nobody knows yet."""

    @property
    def sections(self) -> TableFile | None:
        """The table of the documents' sections, where it may still be there."""
        if self.table is None:
            return None
        return TableFile(self.table.path.parent.parent / "kb_sections" / self.table.path.name)

    @property
    def confidential(self) -> frozenset[str]:
        """Documents that were confidential then, where that is still known."""
        if self.table is None:
            return frozenset()
        rows = self.table.read(["path", "confidential"]).to_pylist()
        return frozenset(row["path"] for row in rows if row["confidential"])

    def texts(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the normalised texts of the documents at ``paths``; one that is not known is left out."""
        wanted = set(paths)
        if self.table is not None:
            return dict(texts(self.table, wanted))
        files = _shipped(self.folder)
        return {
            path: inside(self.folder, files[path][0]).read_bytes().decode("utf-8") for path in wanted & files.keys()
        }


def load_baseline(golden: Path, tables: Path, source_version: str) -> Baseline | None:
    """Return the frozen set that ``source_version`` is held against, or None where there is none.

    ``golden`` is the folder of all snapshots, ``tables`` that of the assets' tables. Raises SnapshotDamaged where the
    snapshot is not as it was frozen.
    """
    release = baseline_of(golden, source_version)
    if release is None:
        return None
    folder = snapshots.folder_of(golden, release.source_version) / f"snapshot-{release.snapshot:04d}"
    snapshots.verify(folder)
    documents = TableFile(tables / "kb_documents" / f"{release.source_version}.parquet")
    there = documents.path.exists()

    def records(record: type[R], *assets: str) -> list[R]:
        files = [TableFile(tables / asset / f"{release.source_version}.parquet") for asset in assets]
        return [row for file in files if file.path.exists() for row in file.records(record)]

    held = [drop for drop in records(Drop, "no_answer_drops") if drop.reason == NOT_CHECKED]
    return Baseline(
        release=release,
        folder=folder,
        items=snapshots.read_items(folder),
        no_answer=snapshots.read_items(folder, snapshots.NO_ANSWER),
        candidates=records(Candidate, "candidates"),
        documents=text_hashes(documents) if there else {path: sha for path, (_, sha) in _shipped(folder).items()},
        table=documents if there else None,
        no_answer_candidates=records(NoAnswerCandidate, "no_answer_candidates", "no_answer_corrected"),
        no_answer_held=[from_json(NoAnswerDraft, json.loads(drop.payload)) for drop in held],
    )


def text_hashes(documents: TableFile, confidential: bool = True) -> dict[str, str]:
    """Return the SHA-256 of each document's normalised text by path; without the confidential ones if so wished."""
    rows = documents.read(["path", "text_sha256", "confidential"]).to_pylist()
    return {row["path"]: row["text_sha256"] for row in rows if confidential or not row["confidential"]}


def _shipped(folder: Path) -> dict[str, tuple[str, str]]:
    """Return (file, SHA-256 of the text) of every text that a snapshot ships, by document path."""
    manifest = json.loads((folder / snapshots.MANIFEST).read_text(encoding="utf-8"))
    return {row["document_path"]: (row["file"], row["text_sha256"]) for row in manifest["documents"]}
