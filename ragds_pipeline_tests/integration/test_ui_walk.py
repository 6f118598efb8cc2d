"""What a data engineer does in the Dagster UI, in a real browser, against the product as a user starts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from ragds_pipeline_tests.browser import chromium
from ragds_pipeline_tests.integration.ui_walk import new_project, walk


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine")
@pytest.mark.skipif("RAGDS_BROWSER" not in os.environ, reason="takes minutes: make walk, or RAGDS_BROWSER=1")
def test_from_documents_to_two_frozen_sets_and_the_next_revision(tmp_path: Path) -> None:
    # One test, because each step needs the one before: as tests of their own they would be spread over workers.
    walk(new_project(tmp_path / "handbook"), tmp_path / "pictures")
