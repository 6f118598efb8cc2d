"""Asks through the batch backend in a process that can be killed at any chosen point.

``driver`` starts one process that has everything imported and forks a child for each run, so that a hundred runs are
cheap. A child that is given ``kill_at`` sends itself SIGKILL at its n-th step, where every call and return of a
function of the Claude layer or of the HTTP client is a step: between any two commits and any two parts of a request.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anthropic

from ragds_pipeline.claude import Claude
from ragds_pipeline.claude.requests import Reply, Request
from ragds_pipeline.config import Settings

FAST = {"batch_poll_s": 0.01, "batch_poll_max_s": 0.05, "batch_settle_s": 0.1, "timeout_s": 10.0, "max_retries": 1}


def requests_of(label: str, count: int) -> list[Request]:
    """Return ``count`` different requests."""
    return [request(f"{label} {number}") for number in range(count)]


def request(text: str, **params: Any) -> Request:
    """Return one request that a loopback server echoes."""
    body = {"model": "claude-haiku-5-5", "max_tokens": 400, "messages": [{"role": "user", "content": text}], **params}
    return Request("test", text, body, "p@1")


def run_every_batch(url: str) -> None:
    """Poll all batches of a server to their end: one that was made and forgotten is paid like any other."""
    with anthropic.Anthropic(base_url=url, api_key="key") as client:
        for batch in client.messages.batches.list(limit=1000):
            while client.messages.batches.retrieve(batch.id).processing_status != "ended":
                pass


def drive(folder: Path, url: str, requests: Sequence[Request], **claude: Any) -> dict[str, str]:
    """Ask through the ledger and the batch backend; return text or reason of failure by key."""
    given = {**FAST, "base_url": url, "backend": "batch", "ledger": "sqlite:///ledger.sqlite", **claude}
    door = Claude(Settings.model_validate({"claude": given, "root": folder}), say=lambda _: None)
    try:
        outcomes = door.ask(requests)
    finally:
        door.close()
    return {
        key: outcome.text if isinstance(outcome, Reply) else f"! {outcome.reason}" for key, outcome in outcomes.items()
    }


class _Killer:
    """Counts steps and ends the process at one of them."""

    def __init__(self, kill_at: int) -> None:
        self.steps = 0
        self.within: dict[str, list[tuple[int, int]]] = {"creating": [], "collecting": []}
        """First and last step of where a kill is worst: a batch is asked for and the answer has not come; results are
        taken one by one."""
        self._kill_at = kill_at
        self._began: dict[str, int] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event not in ("call", "return") or not any(part in frame.f_code.co_filename for part in _STEPS):
            return
        self.steps += 1
        if self.steps == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        name = frame.f_code.co_name
        if name == "create" and "batch_create" in frame.f_code.co_filename and event == "call":
            self._began.pop("sent", None)
            self._began["create"] = self.steps
        elif name == "_receive_response_headers" and "create" in self._began:
            self._began.setdefault("sent", self.steps)
        elif name == "created" and "batch_store" in frame.f_code.co_filename and event == "call":
            self._began.pop("create", None)
            self.within["creating"].append((self._began.pop("sent", self.steps), self.steps))
        elif name == "_collect" and event == "call":
            self._began["collect"] = self.steps
        elif name == "_collect":
            self.within["collecting"].append((self._began["collect"], self.steps))


COUNT = -1

_STEPS = ("ragds_pipeline/claude/", "httpcore2/_sync/")


def _run(order: dict[str, Any]) -> dict[str, Any]:
    killer = _Killer(int(order["kill_at"]))
    requests = requests_of(order["label"], order["count"])
    if order["kill_at"]:  # counting steps takes most of the time
        sys.setprofile(killer)
    try:
        outcomes = drive(Path(order["folder"]), order["url"], requests, **order.get("claude", {}))
    finally:
        sys.setprofile(None)
    return {"outcomes": outcomes, "steps": killer.steps, "within": killer.within}


def _serve() -> None:
    os.environ["ANTHROPIC_API_KEY"] = "key"
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            result = Path(order["folder"]) / "result.json"
            try:
                result.write_text(json.dumps(_run(order)), encoding="utf-8")
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


class Driver:
    """Starts runs in processes of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, folder: Path, url: str, label: str, count: int, kill_at: int = 0, **claude: Any) -> dict[str, Any]:
        """Run to the end or to the kill; return outcomes, or nothing if it was killed.

        Args:
            kill_at: The step at which to kill; 0 for never; ``COUNT`` for never, and to count the steps.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").unlink(missing_ok=True)
        order = {"folder": str(folder), "url": url, "label": label, "count": count, "kill_at": kill_at}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({**order, "claude": claude}) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        if code == -signal.SIGKILL:
            return {}
        assert code == 0, f"the run ended with {code}"
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        return result


@contextmanager
def driver() -> Iterator[Driver]:
    """Provide a driver with its process."""
    command = [sys.executable, "-m", "ragds_pipeline_tests.claude.batch_driver"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Driver(process)
        finally:
            process.kill()


if __name__ == "__main__":
    _serve()
