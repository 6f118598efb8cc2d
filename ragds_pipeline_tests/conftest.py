"""What all tests share: no key and no address of a real service in the environment, and no telemetry."""

from __future__ import annotations

import os

import pytest

# Before anything imports Dagster; also inherited by processes that tests start.
os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"


@pytest.fixture(autouse=True)
def no_real_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove every setting that could send a test's request to a real service."""
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_") or name == "RAGDS_CONFIG"]:
        monkeypatch.delenv(name)
