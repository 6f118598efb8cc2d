"""The checks that stand between prepared items and a snapshot, and those of a frozen one on the documents of today.

What they check is in ``verify`` and ``today``; this is the shell.

https://docs.dagster.io/guides/test/asset-checks
"""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
from pydantic import Field

from ragds_pipeline.filters import breakdown
from ragds_pipeline.golden import today, verify
from ragds_pipeline.golden.assets import OWNERS, confidential_paths, registry_of
from ragds_pipeline.golden.changelog import faults as changelog_faults
from ragds_pipeline.kb.assets import folder_revision
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
from ragds_pipeline.storage.metadata import fault_facts, markdown_table
from ragds_pipeline.storage.schemas import as_json, to_records
from ragds_pipeline.storage.tables import TableFile

_CHECKS = {
    "spans_resolve": "Every span and alternative holds its text at its exact place in the normalised document.",
    "ids_stable": "Ids are unique, and items frozen before keep their id and their side of the split.",
    "nothing_confidential": "No item rests on, or names a place in, a document that is confidential now.",
    "funnel_reconciles": "Every stage adds up, in its parts too: in = kept + dropped by reason, handed on to the next.",
    "split_leak_free": "No evidence and no near-equal question stands on both sides of the split.",
    "changelog_adds_up": "The changelog tells of every item of the set before once, and of every item of this one.",
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
            metadata=fault_facts(faults),
        )


def _changelog_faults(changelog: pa.Table, revalidated_items: pa.Table, now: int) -> list[str]:
    before = sum(item.member == FROZEN for item in to_records(RevalidatedItem, revalidated_items))
    if not revalidated_items.num_rows:
        return []
    return changelog_faults(to_records(ChangelogRow, changelog), before, now)


class TodayConfig(dg.Config):
    """Which snapshot to check."""

    snapshot: str = Field("", description="Folder of a snapshot; the one that was frozen last where it is empty.")


TODAY_GROUP = "checks"

_frozen_or_changed = dg.AutomationCondition.any_deps_match(
    dg.AutomationCondition.newly_updated() | dg.AutomationCondition.data_version_changed()
)
_anything_frozen = dg.AutomationCondition.any_deps_match(~dg.AutomationCondition.missing()).allow(
    dg.AssetSelection.assets("golden_set")
)
when_frozen_or_changed = (
    _frozen_or_changed.since_last_handled() & _anything_frozen & ~dg.AutomationCondition.in_progress()
).with_label("golden_set was frozen, or the KB folder changed")
"""It asks nobody and is made by no job that also makes its inputs. An asset that is had a needless run of its own now
and then: Dagster looked just as the job had made its inputs and was about to make it (seen with 1.13.27)."""


@dg.asset(
    group_name=TODAY_GROUP, kinds={"markdown"}, owners=OWNERS, code_version="1", deps=["kb_folder", "golden_set"],
    automation_condition=when_frozen_or_changed,
    check_specs=[
        # Blocking, so that a plain `dagster job execute` fails on an error; a warning lets it pass all the same.
        dg.AssetCheckSpec(name, asset="golden_set_today", blocking=True, description=text)
        for name, (_, text) in today.CHECKS.items()
    ],
)  # fmt: skip
def golden_set_today(
    context: dg.AssetExecutionContext, config: TodayConfig, project: Project
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Whether the golden set that was frozen last holds on the documents as they are now; what CI runs. No call."""
    settings = project.settings()
    snapshot = Path(config.snapshot) if config.snapshot else None
    outcomes = today.examine(settings, lambda: folder_revision(settings), snapshot)
    rows = [{"check": o.name, "severity": o.severity, "findings": len(o.findings), "note": o.note} for o in outcomes]
    yield dg.MaterializeResult(metadata={"checks": markdown_table(rows)})
    for outcome in outcomes:
        yield dg.AssetCheckResult(
            check_name=outcome.name,
            asset_key="golden_set_today",
            passed=outcome.passed,
            severity=dg.AssetCheckSeverity(outcome.severity.upper().replace("WARNING", "WARN")),
            description="; ".join(finding.message for finding in outcome.findings[:3]) or outcome.note or None,
            metadata={
                "findings": dg.MetadataValue.json([as_json(finding) for finding in outcome.findings]),
                "note": outcome.note,
            },
        )


CHECKS = [golden_checks]
TODAY = [golden_set_today]
