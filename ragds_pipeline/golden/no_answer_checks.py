"""The checks on the no_answer set before anything is frozen. What they check is in ``verify``; this is the shell.

https://docs.dagster.io/guides/test/asset-checks
"""

from collections.abc import Iterator

import dagster as dg
import pyarrow as pa

from ragds_pipeline.golden import verify
from ragds_pipeline.golden.assets import registry_of
from ragds_pipeline.golden.changelog import faults as changelog_faults
from ragds_pipeline.records import (
    ChangelogRow,
    FunnelStep,
    GivenId,
    GoldenItem,
    MissingRow,
    PlanRow,
    RevalidatedItem,
)
from ragds_pipeline.records_no_answer import NO_ANSWER, NoAnswerCandidate, planned_for
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.storage.metadata import fault_facts
from ragds_pipeline.storage.schemas import to_records

_CHECKS = {
    "sets_apart": "No question stands in both sets; only those of the main set have evidence.",
    "no_answer_ids_stable": "Ids are unique, and items frozen before keep their id and their side of the split.",
    "no_answer_funnel_reconciles": "Every stage of this set adds up: in = kept + dropped by reason.",
    "no_answer_split_leak_free": "No near-equal question of this set stands on both sides of the split.",
    "no_answer_changelog_adds_up": "Every such item of the set before is told of once, and so is each of this.",
    "no_answer_requested_is_delivered": "For each document: near misses planned = delivered + reported as missing.",
}

_READ = ("golden_items", "no_answer_ids", "no_answer_funnel", "no_answer_plan", "no_answer_candidates",
         "no_answer_missing", "no_answer_changelog", "revalidated_items")  # fmt: skip
"""What the checks read besides the items."""


@dg.multi_asset_check(
    specs=[
        dg.AssetCheckSpec(
            name, asset="no_answer_items", blocking=True, partitions_def=kb_revisions, description=text,
            additional_deps=_READ,
        )
        for name, text in _CHECKS.items()
    ],
    ins={name: dg.AssetIn(name) for name in ("no_answer_items", *_READ)},
)  # fmt: skip
def no_answer_checks(
    project: Project,
    no_answer_items: pa.Table,
    golden_items: pa.Table,
    no_answer_ids: pa.Table,
    no_answer_funnel: pa.Table,
    no_answer_plan: pa.Table,
    no_answer_candidates: pa.Table,
    no_answer_missing: pa.Table,
    no_answer_changelog: pa.Table,
    revalidated_items: pa.Table,
) -> Iterator[dg.AssetCheckResult]:
    """Check what must hold for this set before anything is frozen."""
    settings = project.settings()
    items, alike = to_records(GoldenItem, no_answer_items), settings.filters.duplicate_score
    given, known = to_records(GivenId, no_answer_ids), registry_of(settings).known()
    candidates = to_records(NoAnswerCandidate, no_answer_candidates)
    kinds = [(c.document_path, "", NO_ANSWER) for c in candidates if planned_for(c)]
    changes, came_over = to_records(ChangelogRow, no_answer_changelog), to_records(RevalidatedItem, revalidated_items)
    before = sum(item.member == NO_ANSWER for item in came_over)
    plan, absent = to_records(PlanRow, no_answer_plan), to_records(MissingRow, no_answer_missing)
    found = {
        "sets_apart": verify.sets_apart(to_records(GoldenItem, golden_items), items, alike),
        "no_answer_ids_stable": verify.ids_stable(items, given, known),
        "no_answer_funnel_reconciles": verify.funnel_reconciles(to_records(FunnelStep, no_answer_funnel), items),
        "no_answer_split_leak_free": verify.split_leak_free(items, alike),
        "no_answer_changelog_adds_up": changelog_faults(changes, before, len(items)) if came_over else [],
        "no_answer_requested_is_delivered": verify.requested_is_delivered(plan, kinds, absent),
    }
    for name, faults in found.items():
        yield dg.AssetCheckResult(
            check_name=name,
            asset_key="no_answer_items",
            passed=not faults,
            severity=dg.AssetCheckSeverity.ERROR,
            description="; ".join(faults[:3]) or None,
            metadata=fault_facts(faults),
        )


CHECKS = [no_answer_checks]
