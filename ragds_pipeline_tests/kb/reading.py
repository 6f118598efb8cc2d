"""Read a KB in a test as the asset does: scan, archive, documents."""

from __future__ import annotations

from pathlib import Path

from ragds_pipeline.kb.documents import REASONS, DocumentReport, write_documents
from ragds_pipeline.kb.revision import Archive, FolderSource, KbSource, Revision, current_revision
from ragds_pipeline.records import Document, KbIssue
from ragds_pipeline.storage.tables import TableFile

CONVERTER = "none"


def folder(kb: Path, out: Path) -> Revision:
    """Return the revision that the folder holds."""
    return current_revision(kb, Archive(out / "archive"), 10_000, CONVERTER, data_dir=out)


def read(
    kb: Path, out: Path, revision: Revision | None = None, source: KbSource | None = None
) -> tuple[DocumentReport, dict[str, Document], dict[str, str]]:
    """Return (report, documents by path, reasons by path); the tables of the call before are the earlier ones."""
    out.mkdir(exist_ok=True)
    if revision is None:
        revision, source = folder(kb, out), FolderSource(kb)
        Archive(out / "archive").store(revision, source)
    assert source is not None
    tables = TableFile(out / "d.parquet"), TableFile(out / "i.parquet")
    earlier = tables if tables[0].path.exists() else None
    report = write_documents(revision, source, out / "d2.parquet", out / "i2.parquet", earlier)
    (out / "d2.parquet").replace(tables[0].path)
    (out / "i2.parquet").replace(tables[1].path)
    documents = {d.path: d for d in tables[0].records(Document)}
    issues = {i.path: i.reason for i in tables[1].records(KbIssue)}
    assert set(issues.values()) <= REASONS.keys()
    return report, documents, issues
