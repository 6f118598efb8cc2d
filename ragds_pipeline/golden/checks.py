"""The checks that stand between prepared items and a snapshot. What they check is in ``verify``; this is the shell.

https://docs.dagster.io/guides/test/asset-checks
"""

from collections.abc import Iterator

import dagster as dg
import pyarrow as pa

from ragds_pipeline.filters import breakdown
from ragds_pipeline.golden import verify
from ragds_pipeline.golden.assets import confidential_paths, registry_of
from ragds_pipeline.golden.changelog import faults as changelog_faults
from ragds_pipeline.kb.documents import texts
from ragds_pipeline.records import (
    Candidate,
    ChangelogRow,
    FunnelCell,
    FunnelStep,
    GivenId,
    GoldenItem,
    MissingRow,
    PlanRow,
    RevalidatedItem,
)
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.review.standing import FROZEN
from ragds_pipeline.storage.schemas import to_records
from ragds_pipeline.storage.tables import TableFile

_CHECKS = {
    "spans_resolve": "Every span and alternative holds its text at its exact place in the normalised document.",
    "ids_stable": "Ids are unique, and items frozen before keep their id and their side of the split.",
    "nothing_confidential": "No item rests on, or names a place in, a document that is confidential now.",
    "funnel_reconciles": "Every stage adds up, in its parts too: in = kept + dropped by reason, handed on to the next.",
    "split_leak_free": "No evidence and no near-equal question stands on both sides of the split.",
    "changelog_adds_up": "Every item of the set before is told of once, and so is every item of this one.",
    "requested_is_delivered": "For each document and type: planned = delivered + reported as missing.",
}

_READ = (
    "kb_documents",
    "golden_ids",
    "funnel",
    "funnel_cells",
    "question_plan",
    "candidates",
    "missing_questions",
    "changelog",
    "revalidated_items",
)
"""What the checks read besides the items."""

_SHOWN = 20


@dg.multi_asset_check(
    specs=[
        dg.AssetCheckSpec(
            name, asset="golden_items", blocking=True, partitions_def=kb_revisions, description=text,
            additional_deps=_READ,
        )
        for name, text in _CHECKS.items()
    ],
    ins={name: dg.AssetIn(name) for name in ("golden_items", *_READ)},
)  # fmt: skip
def golden_checks(
    project: Project,
    golden_items: pa.Table,
    kb_documents: TableFile,
    golden_ids: pa.Table,
    funnel: pa.Table,
    funnel_cells: pa.Table,
    question_plan: pa.Table,
    candidates: pa.Table,
    missing_questions: pa.Table,
    changelog: pa.Table,
    revalidated_items: pa.Table,
) -> Iterator[dg.AssetCheckResult]:
    """Check what must hold before anything is frozen."""
    items = to_records(GoldenItem, golden_items)
    settings = project.settings()
    paths = {path for item in items for path in verify.documents_of(item)}
    kinds = [(c.document_path, c.difficulty, c.type) for c in to_records(Candidate, candidates)]
    steps, small = to_records(FunnelStep, funnel), to_records(FunnelCell, funnel_cells)
    plan, absent = to_records(PlanRow, question_plan), to_records(MissingRow, missing_questions)
    found = {
        "spans_resolve": verify.spans_resolve(items, texts(kb_documents, paths)),
        "ids_stable": verify.ids_stable(items, to_records(GivenId, golden_ids), registry_of(settings).known()),
        "nothing_confidential": verify.nothing_confidential(items, confidential_paths(kb_documents)),
        "funnel_reconciles": verify.funnel_reconciles(steps, items) + breakdown.faults(steps, small),
        "split_leak_free": verify.split_leak_free(items, settings.filters.duplicate_score),
        "changelog_adds_up": _changelog_faults(changelog, revalidated_items, len(items)),
        "requested_is_delivered": verify.requested_is_delivered(plan, kinds, absent),
    }
    for name, faults in found.items():
        yield dg.AssetCheckResult(
            check_name=name,
            asset_key="golden_items",
            passed=not faults,
            severity=dg.AssetCheckSeverity.ERROR,
            description="; ".join(faults[:3]) or None,
            metadata={
                "faults": len(faults),
                "first of them": dg.MetadataValue.md("\n".join(f"- {fault}" for fault in faults[:_SHOWN])),
            },
        )


def _changelog_faults(changelog: pa.Table, revalidated_items: pa.Table, now: int) -> list[str]:
    before = sum(item.member == FROZEN for item in to_records(RevalidatedItem, revalidated_items))
    if not revalidated_items.num_rows:
        return []
    return changelog_faults(to_records(ChangelogRow, changelog), before, now)


CHECKS = [golden_checks]
