"""A process that asks, for tests that kill it or start two of them: what it got is printed as JSON.

Started by :func:`start`, from a fork server that has everything imported, so that a start costs milliseconds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from ragds_pipeline.claude import Reply
from ragds_pipeline.claude.ask import open_claude
from ragds_pipeline.claude.backends import api, batch  # noqa: F401  (with the SDK, once, in the fork server)
from ragds_pipeline_tests.claude.asking import request, settings

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["ragds_pipeline_tests.claude.asker", "psycopg2"])


def ask(root: Path, url: str, calls: int, run_id: str, out: Path, claude: dict[str, Any]) -> None:
    """Ask the questions q0, q1, …, backwards if asked to, and write key, text and replayed of each to ``out``."""
    os.environ["ANTHROPIC_API_KEY"] = "test"
    backwards = claude.pop("backwards", False)
    door = open_claude(settings(root, url, **claude), run_id)
    asked = [request(f"q{n}") for n in range(calls)]
    outcomes = door.ask(asked[::-1] if backwards else asked)
    door.close()
    told = {
        key: {"text": outcome.text, "replayed": outcome.replayed, "ok": isinstance(outcome, Reply)}
        for key, outcome in outcomes.items()
    }
    part = out.with_suffix(".part")
    part.write_text(json.dumps(told), encoding="utf-8")
    part.rename(out)


def start(*arguments: Any, target: Callable[..., None] = ask) -> ForkServerProcess:
    """Start a process that asks."""
    process = _context.Process(target=target, args=arguments)
    process.start()
    return process
