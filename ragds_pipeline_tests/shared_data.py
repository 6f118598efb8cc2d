"""The public documents and published spans that real-data tests and benchmarks read.

They lie beside the repository, in ``../shared/data``, and are no part of it; a test that needs them is
skipped where they are absent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(name: str) -> Path:
    """Return the path ``name`` under the shared data; skip the test, with the reason, if it is not there."""
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"real data absent: {path}")
    return path
