"""What all tests share: no key and no address of a real service in the environment, and no telemetry."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The first example of a test pays for lazy imports and tables; a deadline would measure the machine.
settings.register_profile("ragds", deadline=None)
settings.load_profile("ragds")

# Before anything imports Dagster; also inherited by processes that tests start.
os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"


@pytest.fixture(autouse=True)
def no_real_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove every setting that could send a test's request to a real service."""
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_") or name == "RAGDS_CONFIG"]:
        monkeypatch.delenv(name)
