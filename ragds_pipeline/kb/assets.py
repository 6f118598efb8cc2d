"""The KB as assets: documents and issues, sections and passages, the overview.

https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

import dagster as dg

from ragds_pipeline.config import Settings
from ragds_pipeline.kb.convert import converter_version
from ragds_pipeline.kb.current import move_to
from ragds_pipeline.kb.cut import cut_documents
from ragds_pipeline.kb.documents import write_documents
from ragds_pipeline.kb.overview import overview
from ragds_pipeline.kb.revision import (
    Archive,
    FolderSource,
    KbSource,
    Revision,
    UnknownRevision,
    UnrepeatableRevision,
    archived_revision,
    current_revision,
    find_revision,
)
from ragds_pipeline.kb.scan import KbMissing
from ragds_pipeline.kb.watch import state_of
from ragds_pipeline.records import Document, KbIssue, Section, canonical_json, sha256_text
from ragds_pipeline.resources import Project, earlier_pair, kb_revisions
from ragds_pipeline.storage.metadata import markdown_table
from ragds_pipeline.storage.schemas import schema_of
from ragds_pipeline.storage.tables import TableFile, preview

GROUP = "kb"
OWNERS = ["team:data-engineering"]


def archive_of(settings: Settings) -> Archive:
    """Return the project's archive of revisions."""
    return Archive(settings.data_dir / "archive")


def folder_revision(settings: Settings) -> Revision:
    """Return the revision that the KB folder holds now."""
    return current_revision(
        settings.kb_dir,
        archive_of(settings),
        settings.kb.max_file_bytes,
        converter_version(),
        settings.data_dir / "state" / "kb_stat.json",
        settings.data_dir,
    )


def _revision(settings: Settings, source_version: str) -> tuple[Revision, KbSource]:
    """Return the revision of a partition, from the folder or the archive; a clear failure where it is in neither."""
    archive = archive_of(settings)
    try:
        current = folder_revision(settings)
    except KbMissing as error:
        if archive.content_of(source_version) is None:
            raise dg.Failure(str(error), allow_retries=False) from error
        current = None
    try:
        if current is None:
            return archived_revision(source_version, archive, converter_version(), None), archive
        revision, in_folder = find_revision(source_version, current, archive, converter_version())
    except (UnknownRevision, UnrepeatableRevision) as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    return revision, FolderSource(settings.kb_dir) if in_folder else archive


KB_FOLDER = "kb_folder"


def folder_observation(instance: dg.DagsterInstance, revision: Revision) -> list[dg.AssetObservation]:
    """Return the observation that the folder holds ``revision``, unless that is the last thing that was observed.

    Its data version stands for documents and ``kb.yaml``. One partition a revision: an old revision does not become
    stale because the folder moved on, but one whose ``kb.yaml`` changed (what is confidential, say) does.
    """
    version, state = revision.source_version, state_of(revision)
    record = instance.get_latest_data_version_record(dg.AssetKey(KB_FOLDER), True, version)
    if record is not None:
        known = record.asset_observation.tags.get(DATA_VERSION) if record.asset_observation else None
        if known == state:
            return []
    elif version in instance.get_materialized_partitions(dg.AssetKey("kb_documents")):
        return []  # read before anybody observed: a first observation now would call it stale
    return [
        dg.AssetObservation(
            KB_FOLDER,
            partition=version,
            description="the KB folder holds this revision",
            metadata={"documents": len(revision.scan.files), "content": revision.content_sha256},
            tags={DATA_VERSION: state},
        )
    ]


DATA_VERSION = "dagster/data_version"


@dg.observable_source_asset(
    name=KB_FOLDER,
    partitions_def=kb_revisions,
    group_name=GROUP,
    tags={"dagster/kind/folder": "", "owner": "data-engineering"},
    description="The folder of the knowledge base. Its data version is a hash of documents and kb.yaml, so that a "
    "revision shows as stale when they changed.",
)
def kb_folder(context: dg.AssetExecutionContext, project: Project) -> dg.DataVersionsByPartition:
    """Observe which revision the folder holds, if it is a partition yet: noticing new ones is the sensor's task."""
    revision = folder_revision(project.settings())
    known = context.instance.has_dynamic_partition("kb_revisions", revision.source_version)
    state = dg.DataVersion(state_of(revision))
    return dg.DataVersionsByPartition({revision.source_version: state} if known else {})


@dg.multi_asset(
    outs={
        "kb_documents": dg.AssetOut(
            description="Every document of this revision with its normalised text; all offsets refer to it.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "kb_issues": dg.AssetOut(
            description="Files that were skipped or read with a reservation, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
    deps=[kb_folder],
)  # fmt: skip
def kb_documents(context: dg.AssetExecutionContext, project: Project) -> Iterator[dg.MaterializeResult[TableFile]]:
    """Read, convert and normalise the documents of a revision, and archive their bytes."""
    settings = project.settings()
    revision, source = _revision(settings, context.partition_key)
    if isinstance(source, FolderSource):
        archive_of(settings).store(revision, source)
        move_to(settings.data_dir, revision.source_version, revision.content_sha256)
    documents, issues = project.staged(context, "kb_documents"), project.staged(context, "kb_issues")
    earlier = earlier_pair(project, context, "kb_documents", "kb_issues")
    report = write_documents(revision, source, documents, issues, earlier)
    shown = TableFile(documents).read(["path", "title", "language", "source_bytes", "confidential"])
    found = TableFile(issues).read()
    # The name is in no row, but the overview downstream prints it.
    version = sha256_text(canonical_json([revision.manifest.name, report.documents_version]))
    yield dg.MaterializeResult(
        asset_key="kb_documents",
        value=TableFile(documents),
        metadata={
            "documents": report.documents,
            "characters": report.characters,
            "taken over unchanged": report.reused,
            "changed by normalising": report.changed_by_normalising,
            "files skipped": report.skipped,
            "folder": dg.MetadataValue.path(str(settings.kb_dir)),
            "preview": markdown_table(preview(shown, shown.column_names, rows=30)),
        },
        data_version=dg.DataVersion(version[:16]),
    )
    yield dg.MaterializeResult(
        asset_key="kb_issues",
        value=TableFile(issues),
        metadata={
            "issues": report.issues,
            "files skipped": report.skipped,
            "preview": markdown_table(preview(found, schema_of(KbIssue).names, rows=50)),
        },
        data_version=dg.DataVersion(report.issues_version[:16]),
    )


@dg.multi_asset(
    outs={
        "kb_sections": dg.AssetOut(
            description="Headings with the exact range of their text, nested as in the document.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "kb_passages": dg.AssetOut(
            description="The pieces shown to a model; they cover each document without gap or overlap.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
)  # fmt: skip
def kb_passages(
    context: dg.AssetExecutionContext, project: Project, kb_documents: TableFile
) -> Iterator[dg.MaterializeResult[TableFile]]:
    """Cut the documents along their structure."""
    sections, passages = project.staged(context, "kb_sections"), project.staged(context, "kb_passages")
    earlier = earlier_pair(project, context, "kb_sections", "kb_passages")
    report = cut_documents(kb_documents, project.settings().kb.passages, sections, passages, earlier)
    for asset, path, columns in (
        ("kb_sections", sections, ["document_path", "level", "heading_path", "start_char", "end_char"]),
        ("kb_passages", passages, ["id", "heading_path", "start_char", "end_char", "content"]),
    ):
        shown = next(TableFile(path).batches(columns), None)
        yield dg.MaterializeResult(
            asset_key=asset,
            value=TableFile(path),
            metadata={
                "documents": report.documents,
                "documents taken over unchanged": report.reused,
                "rows": report.sections if asset == "kb_sections" else report.passages,
                "preview": markdown_table(preview(shown, columns, rows=15) if shown is not None else []),
            },
        )


@dg.asset(
    partitions_def=kb_revisions, io_manager_key="texts", group_name=GROUP, kinds={"markdown"}, owners=OWNERS,
    code_version="1",
)  # fmt: skip
def kb_overview(
    context: dg.AssetExecutionContext, project: Project, kb_documents: TableFile, kb_sections: TableFile
) -> dg.MaterializeResult[str]:
    """What each document holds, its headings, size, language and naming: for people and for the multi-hop agent."""
    by_path = groupby(kb_sections.records(Section), key=attrgetter("document_path"))
    pairs = (
        (document, list(group)) for document, (_, group) in zip(kb_documents.records(Document), by_path, strict=True)
    )
    name = _revision(project.settings(), context.partition_key)[0].manifest.name
    text = overview(name, context.partition_key, pairs)
    return dg.MaterializeResult(
        value=text,
        metadata={"overview": dg.MetadataValue.md(text[:50_000]), "characters": len(text)},
    )


ASSETS: list[dg.AssetsDefinition | dg.SourceAsset] = [kb_folder, kb_documents, kb_passages, kb_overview]
