"""How far the judges can be trusted, as assets: against people and probes for a revision, and the probes on their own.

Nothing is sent by ``judge_calibration``: it takes the probes that were answered before. ``probe_verdicts`` asks them.
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator, Sequence

import dagster as dg
import pyarrow as pa
from pydantic import Field

from ragds_pipeline.calibration import report
from ragds_pipeline.calibration.chart import chart
from ragds_pipeline.calibration.labels import Reviewed
from ragds_pipeline.calibration.measure import (
    Measured,
    against_people,
    against_probes,
    calibration_rows,
    difference_rows,
    findings,
    needless,
    steering,
)
from ragds_pipeline.candidates.assets import stopped
from ragds_pipeline.claude import RepliesMissing
from ragds_pipeline.config import ConfigError, Settings
from ragds_pipeline.filters.audit import auditable
from ragds_pipeline.filters.claude_filter import enabled_judges
from ragds_pipeline.filters.judging import batch_above
from ragds_pipeline.filters.probing import Probed, first_votes, known_probes, probe, probes_for, with_judge
from ragds_pipeline.records import CalibrationRow, Candidate, Decision, DifferenceRow, Drop, ProbeRow, Verdict
from ragds_pipeline.resources import Project, kb_revisions
from ragds_pipeline.storage import svg
from ragds_pipeline.storage.metadata import Facts, dollars
from ragds_pipeline.storage.schemas import to_records, to_table

GROUP = "calibration"
OWNERS = ["team:data-engineering"]


@dg.multi_asset(
    outs={
        "judge_calibration": dg.AssetOut(
            description="How each judge agrees with people's decisions and with labelled probes, by language.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "judge_differences": dg.AssetOut(
            description="The items on which a judge and its label differ, worst first, with both reasons.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    check_specs=[dg.AssetCheckSpec(
        "judges_agree", asset="judge_calibration", partitions_def=kb_revisions,
        description="Every judge that is switched on agrees with its labels (filters.judges.min_kappa), and no planted "
        "text steers one. A warning: it stops nothing.",
    )],
    partitions_def=kb_revisions,
)  # fmt: skip
def judge_calibration(
    context: dg.AssetExecutionContext,
    project: Project,
    candidates: pa.Table,
    verdicts: pa.Table,
    judge_drops: pa.Table,
    top_up_drops: pa.Table,
    review_decisions: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Compare the judges' verdicts with what people decided, and with the probes that were answered before."""
    settings = project.settings()
    kept = {candidate.id: candidate for candidate in to_records(Candidate, candidates)}
    drops = to_records(Drop, judge_drops) + to_records(Drop, top_up_drops)
    reviewed = Reviewed(
        candidates=kept,
        audited={candidate.id: candidate for candidate in auditable(drops, kept)},
        verdicts=to_records(Verdict, verdicts),
        decisions={decision.candidate_id: decision for decision in to_records(Decision, review_decisions)},
    )
    try:
        claude = project.claude(context, settings)
    except ConfigError as error:
        raise stopped(error) from error
    probed = known_probes(probes_for(), claude, settings)
    claude.close()
    judges = settings.filters.judges
    measured = against_people(reviewed, enabled_judges(settings), judges.min_labels)
    measured += against_probes(probed, judges.min_labels)
    found = findings(measured, enabled_judges(settings), judges.min_kappa, steering(probed))
    yield dg.MaterializeResult(
        asset_key="judge_calibration",
        value=to_table(CalibrationRow, calibration_rows(measured)),
        metadata=calibration_facts(measured, probed, settings),
        check_results=[
            dg.AssetCheckResult(
                passed=not any(each.warns for each in found),
                severity=dg.AssetCheckSeverity.WARN,
                description="; ".join(each.text for each in found) or "no judge is switched on",
                metadata={"smallest kappa that does not warn": judges.min_kappa, "labels asked for": judges.min_labels},
            )
        ],
    )
    rows = difference_rows(measured)
    told = {f"{each.judge}, against {each.source}": dg.MetadataValue.md(_own(rows, each)) for each in measured}
    yield dg.MaterializeResult(
        asset_key="judge_differences", value=to_table(DifferenceRow, rows), metadata={"differ": len(rows), **told}
    )


def calibration_facts(measured: Sequence[Measured], probed: Sequence[Probed], settings: Settings) -> Facts:
    """Return the metadata of a calibration: the overview with its picture, then everything about each judge."""
    drawn: Facts = {}
    for source in dict.fromkeys(each.source for each in measured):
        found = chart([m for m in measured if m.source == source], settings.filters.judges.min_kappa)
        drawn[f"kappa, against {source}"] = dg.MetadataValue.md(svg.as_markdown(found, "kappa with its interval"))
    return {
        "judges": dg.MetadataValue.md(report.overview(measured)),
        **drawn,
        "planted texts": dg.MetadataValue.md(report.injections(steering(probed))),
        "needless spans": report.needless_spans(needless(probed)),
        **{f"{m.judge}, against {m.source}": dg.MetadataValue.md(report.details(m)) for m in measured},
    }


def _own(rows: Sequence[DifferenceRow], measured: Measured) -> str:
    return report.differences(row for row in rows if (row.judge, row.source) == (measured.judge, measured.source))


class ProbesConfig(dg.Config):
    """Which probes to ask, and of which model."""

    judges: list[str] = Field(default_factory=list)
    """Names of judges; all of them by default."""
    model: str = ""
    """The model that judges; by default ``claude.models.judge``."""


@dg.multi_asset(
    outs={
        "probe_verdicts": dg.AssetOut(
            description="What the judges said of the labelled probes, one row a probe; nothing of a knowledge base.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS, code_version="1",
        ),
        "probe_calibration": dg.AssetOut(
            description="How each judge agrees with the labelled probes, by language, with the model that was asked.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    pool="claude",
)  # fmt: skip
def probe_verdicts(
    context: dg.AssetExecutionContext, config: ProbesConfig, project: Project
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Ask the judges about the labelled probes, through ledger and budget; what was answered before costs nothing."""
    settings = with_judge(project.settings(), config.model)
    try:
        probes = probes_for(config.judges)
        claude = project.claude(context, settings)
        before = claude.estimate(first_votes(probes, settings), batch_above(settings))
        context.log.info(f"{before.calls} first votes to ask for, estimated at {dollars(before.cost_usd)}")
        probed = probe(probes, claude, settings)
        claude.close()
    except (RepliesMissing, ConfigError) as error:
        raise stopped(error) from error
    except KeyError as error:
        raise dg.Failure(f"{error} is no judge", allow_retries=False) from error
    measured = against_probes(probed, settings.filters.judges.min_labels)
    rows = difference_rows(measured)
    yield dg.MaterializeResult(
        asset_key="probe_verdicts",
        value=to_table(ProbeRow, [each.row() for each in probed]),
        metadata={
            "probes": len(probed),
            "without a verdict": sum(each.got is None for each in probed),
            "differ": len(rows),
            "estimated cost of the first votes": dollars(before.cost_usd),
            "model": settings.claude.models.judge,
            **{m.judge: dg.MetadataValue.md(_own(rows, m)) for m in measured},
        },
    )
    yield dg.MaterializeResult(
        asset_key="probe_calibration",
        value=to_table(CalibrationRow, calibration_rows(measured)),
        metadata=calibration_facts(measured, probed, settings),
    )


ASSETS = [judge_calibration, probe_verdicts]
