"""What the tests of the Claude layer ask, and how they are set up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragds_pipeline.claude import Request
from ragds_pipeline.config import Settings


def request(text: str = "hello", attempt: int = 0, **params: Any) -> Request:
    """Return a request to the cheapest model."""
    body = {"model": "claude-haiku-5-5", "max_tokens": 400, "messages": [{"role": "user", "content": text}], **params}
    return Request("test", text, body, "p@1", attempt)


def settings(root: Path, url: str | None, **claude: Any) -> Settings:
    """Return settings of a project at ``root`` whose server is at ``url``."""
    # Models are checked in a test of its own; here every request that reaches the server is counted.
    fixed = {"ledger": "sqlite:///ledger.sqlite", "max_retries": 1, "concurrency": 4, "check_models": False}
    given = {"base_url": url, **fixed, **claude}
    return Settings.model_validate({"claude": given, "root": root})
