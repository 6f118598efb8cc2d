"""What the UI shows of every asset, and that the definitions load and bind."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from ragds_pipeline.config import load_settings
from ragds_pipeline.definitions import SHEETS, build_defs
from ragds_pipeline_tests.projects import REPOSITORY

DEFS = build_defs(REPOSITORY / "ragds.yaml")


def test_the_definitions_bind() -> None:
    dg.Definitions.validate_loadable(DEFS)


def test_every_asset_says_what_it_is() -> None:
    specs = list(DEFS.resolve_asset_graph().asset_nodes)
    assert len(specs) >= 20
    for node in specs:
        name = node.key.to_user_string()
        assert node.group_name in {"kb", "candidates", "filters", "review", "golden"}, name
        assert node.description and len(node.description.split()) >= 6, name
        assert node.owners and node.kinds and node.code_version, name
        assert node.partitions_def is not None and node.partitions_def.name == "kb_revisions", name  # type: ignore[attr-defined]


def test_every_check_blocks_and_is_described() -> None:
    checks = [DEFS.resolve_asset_graph().get(key) for key in DEFS.resolve_asset_graph().asset_check_keys]
    assert {check.key.name for check in checks} >= {
        "spans_resolve", "ids_stable", "funnel_reconciles", "split_leak_free", "requested_is_delivered", "sets_apart",
    }  # fmt: skip
    for check in checks:
        assert check.blocking and check.description


def test_the_jobs_cover_every_asset() -> None:
    one, other = (
        {key.to_user_string() for key in DEFS.resolve_job_def(name).asset_layer.executable_asset_keys}
        for name in ("revision_job", "freeze_job")
    )
    assert one & other == set(SHEETS), "made for the sheets, and again when decisions came in"
    assert {"review_queue", "no_answer_queue"} < set(SHEETS)
    keys = {dg.AssetKey(name) for name in one | other}
    assert keys == {node.key for node in DEFS.resolve_asset_graph().asset_nodes}


def test_a_resource_can_be_replaced(tmp_path: Path) -> None:
    settings = load_settings(REPOSITORY / "ragds.yaml")
    assert settings.data_dir == REPOSITORY / "data"
    from ragds_pipeline.storage.parquet_io import ParquetIOManager

    other = build_defs(REPOSITORY / "ragds.yaml", {"tables": ParquetIOManager(base_dir=str(tmp_path))})
    resources = other.get_repository_def().get_top_level_resources()
    assert "tables" in resources and "project" in resources
