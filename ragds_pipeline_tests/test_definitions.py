"""What the UI shows of every asset, and that the definitions load and bind."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from ragds_pipeline.config import load_settings
from ragds_pipeline.definitions import SHEETS, build_defs
from ragds_pipeline_tests.projects import REPOSITORY

DEFS = build_defs(REPOSITORY / "ragds.yaml")

PROBES = {"probe_verdicts", "probe_calibration"}
"""Of no knowledge base, and so of no revision."""


def test_the_definitions_bind() -> None:
    dg.Definitions.validate_loadable(DEFS)


GROUPS = {"kb", "revalidation", "candidates", "filters", "review", "calibration", "golden", "costs", "checks"}

ALONE = {"snapshot_comparison", "golden_set_today"}
"""Made when somebody asks for it; about the present, whatever revision that is."""


def test_every_asset_says_what_it_is() -> None:
    specs = list(DEFS.resolve_asset_graph().asset_nodes)
    assert len(specs) >= 20
    for node in specs:
        name = node.key.to_user_string()
        assert node.group_name in GROUPS, name
        assert node.description and len(node.description.split()) >= 6, name
        assert node.kinds, name
        if not node.is_observable:  # what is observed has no code of its own
            assert node.owners and node.code_version, name
        if name in PROBES | ALONE:
            assert node.partitions_def is None, name
            continue
        assert node.partitions_def is not None and node.partitions_def.name == "kb_revisions", name  # type: ignore[attr-defined]


WARNINGS = {"judges_agree", "costs_reconcile", "estimate_within_caps"}
"""Checks of money that is spent, or not yet: nothing is wrong with the data."""


def test_every_check_of_data_blocks_and_all_are_described() -> None:
    checks = [DEFS.resolve_asset_graph().get(key) for key in DEFS.resolve_asset_graph().asset_check_keys]
    assert {check.key.name for check in checks} >= {
        "spans_resolve", "ids_stable", "funnel_reconciles", "split_leak_free", "requested_is_delivered", "sets_apart",
    }  # fmt: skip
    assert {check.key.name for check in checks} >= WARNINGS
    for check in checks:
        assert check.blocking is (check.key.name not in WARNINGS) and check.description


def test_the_jobs_cover_every_asset() -> None:
    one, other = (
        {key.to_user_string() for key in DEFS.resolve_job_def(name).asset_layer.executable_asset_keys}
        for name in ("revision_job", "freeze_job")
    )
    both = {"review_decisions", "costs", "item_costs", *SHEETS}
    assert {"review_queue", "no_answer_queue"} < set(SHEETS)
    assert one & other == both, "made for the sheet, and again when decisions came in"
    probes = {key.to_user_string() for key in DEFS.resolve_job_def("probe_job").asset_layer.executable_asset_keys}
    assert probes == PROBES
    keys = {dg.AssetKey(name) for name in one | other | probes | ALONE}
    assert keys == {node.key for node in DEFS.resolve_asset_graph().asset_nodes if not node.is_observable}
    today = DEFS.resolve_job_def("checks_job").asset_layer
    assert today.executable_asset_keys == {dg.AssetKey("golden_set_today")}


def test_a_newcomer_pays_nothing_unasked() -> None:
    defs = DEFS.get_repository_def()
    assert {sensor.default_status for sensor in defs.sensor_defs} == {dg.DefaultSensorStatus.STOPPED}
    assert {schedule.default_status for schedule in defs.schedule_defs} == {dg.DefaultScheduleStatus.STOPPED}
    conditions = {n.key.to_user_string() for n in DEFS.resolve_asset_graph().asset_nodes if n.automation_condition}
    assert conditions == {"golden_set_today"}, "nothing that asks Claude or goes to people"


def test_a_resource_can_be_replaced(tmp_path: Path) -> None:
    settings = load_settings(REPOSITORY / "ragds.yaml")
    assert settings.data_dir == REPOSITORY / "data"
    from ragds_pipeline.storage.parquet_io import ParquetIOManager

    other = build_defs(REPOSITORY / "ragds.yaml", {"tables": ParquetIOManager(base_dir=str(tmp_path))})
    resources = other.get_repository_def().get_top_level_resources()
    assert "tables" in resources and "project" in resources
