"""The Claude layer against a server of fixed latency: how near to the ideal, and what the ledger costs.

    python -m benchmarks.claude_layer
    python -m benchmarks.claude_layer --rounds 5 --write

The loopback server of the tests runs in a process of its own. Times are the best of several rounds, each with a new
ledger; the ideal is calls × latency / concurrency.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from ragds_pipeline.claude import Claude, Reply, Request
from ragds_pipeline.claude.backends.api import Callbacks, call_all
from ragds_pipeline.claude.database import replies
from ragds_pipeline.claude.ledger import Ledger, _row
from ragds_pipeline.config import Settings

CALLS = 1_000
CONCURRENCY = 32
REPLAYED = 100_000
RESULTS = Path(__file__).parent / "results" / "claude_layer.md"


def request(number: int, text: str = "") -> Request:
    body = {
        "model": "claude-haiku-5-5",
        "max_tokens": 400,
        "system": "You are asked for questions about a document.",
        "messages": [{"role": "user", "content": f"{number} {text}"}],
    }
    return Request("bench", str(number), body, "p@1")


def settings(root: Path, url: str | None) -> Settings:
    claude = {"base_url": url, "ledger": "sqlite:///ledger.sqlite", "concurrency": CONCURRENCY, "budget_usd": 1000}
    return Settings.model_validate({"claude": claude, "root": root})


@contextmanager
def loopback(latency: float) -> Iterator[str]:
    command = [sys.executable, "-m", "ragds_pipeline_tests.loopback", "--latency", str(latency)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


Seconds = tuple[float, float]
"""By the clock, and of this process's CPU. The second tells what is ours where the machine has other work."""


def now() -> Seconds:
    return time.perf_counter(), time.process_time()


def since(start: Seconds) -> Seconds:
    wall, cpu = now()
    return wall - start[0], cpu - start[1]


def with_ledger(url: str) -> Seconds:
    """Seconds for all calls through ``ask``."""
    with tempfile.TemporaryDirectory() as folder:
        door = Claude(settings(Path(folder), url), on_progress=lambda progress: None)
        asked = [request(n) for n in range(CALLS)]
        start = now()
        outcomes = door.ask(asked)
        seconds = since(start)
        door.close()
    assert all(isinstance(outcome, Reply) for outcome in outcomes.values())
    return seconds


def without_ledger(url: str) -> Seconds:
    """Seconds for all calls through the api backend alone."""
    done: list[Any] = []
    callbacks = Callbacks(
        lambda asked: None, lambda asked, message, id_: done.append(id_), lambda asked, failure: done.append(failure),
        lambda asked: None, lambda: None,
    )  # fmt: skip
    asked = [request(n) for n in range(CALLS)]
    start = now()
    call_all(asked, settings(Path(), url).claude, "bench", callbacks)
    seconds = since(start)
    assert len(done) == CALLS
    return seconds


def message(number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-haiku-5-5",
        "content": [{"type": "text", "text": f"answer {number} " * 30}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 500, "output_tokens": 90},
    }  # fmt: skip


def commits(threads: int, each: int) -> float:
    """Seconds a reply that ``Ledger.put`` takes, with so many threads putting at once."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"sqlite:///{folder}/ledger.sqlite")

        def put(first: int) -> None:
            for n in range(first, first + each):
                ledger.put(request(n), message(n), Decimal("0.001"), "api", "run", "req")

        workers = [threading.Thread(target=put, args=(n * each,)) for n in range(threads)]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds = time.perf_counter() - start
        ledger.close()
    return seconds / (threads * each)


def replay() -> float:
    """Seconds to answer all of REPLAYED requests from the ledger, their keys computed anew."""
    with tempfile.TemporaryDirectory() as folder:
        door = Claude(settings(Path(folder), None))
        document = "A traveller hands in the claim within ten days of the return. " * 8
        rows = [
            _row(request(n, document), message(n), Decimal("0.001"), "api", "run", "req", "rev")
            for n in range(REPLAYED)
        ]
        with door.ledger.engine.begin() as connection:
            for at in range(0, REPLAYED, 1000):
                connection.execute(replies.insert(), rows[at : at + 1000])
        del rows
        asked = [request(n, document) for n in range(REPLAYED)]
        start = time.perf_counter()
        outcomes = door.ask(asked)
        seconds = time.perf_counter() - start
        door.close()
    assert len(outcomes) == REPLAYED and all(isinstance(o, Reply) and o.replayed for o in outcomes.values())
    return seconds


def table(rounds: int) -> list[str]:
    os.environ["ANTHROPIC_API_KEY"] = "bench"
    lines = ["| what | ideal | measured | ratio | client's CPU |", "|---|---:|---:|---:|---:|"]
    for latency in (0.2, 0.05):
        ideal = CALLS * latency / CONCURRENCY
        with loopback(latency) as url:
            without_ledger(url)  # the first round pays for imports and connections
            full, alone = min(with_ledger(url) for _ in range(rounds)), min(without_ledger(url) for _ in range(rounds))
        for name, (wall, cpu) in (("with ledger and budget", full), ("backend alone", alone)):
            what = f"{CALLS:,} calls at {CONCURRENCY}, {latency * 1000:.0f} ms, {name}"
            lines.append(f"| {what} | {ideal:.2f} s | {wall:.2f} s | {wall / ideal:.2f} | {cpu:.2f} s |")
        wall, cpu = ((full[n] - alone[n]) / CALLS * 1000 for n in (0, 1))
        lines.append(f"| ledger and budget, per call, {latency * 1000:.0f} ms | | {wall:.2f} ms | | {cpu:.2f} ms |")
    for threads, each in ((1, 200), (CONCURRENCY, 40)):
        seconds = min(commits(threads, each) for _ in range(rounds))
        lines.append(f"| a reply made durable, {threads} at once | | {seconds * 1000:.2f} ms | | |")
    seconds = min(replay() for _ in range(max(1, rounds // 2)))
    lines.append(f"| {REPLAYED:,} replies from the ledger | 10 s | {seconds:.2f} s | {seconds / 10:.2f} | |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/claude_layer.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    lines = table(options.rounds)
    print("\n".join(lines))
    if options.write:
        head = (
            "# The Claude layer\n\n"
            f"`python -m benchmarks.claude_layer --rounds {options.rounds} --write` on 2 cores, SQLite ledger "
            "(WAL, every reply synced\nto disk), loopback server in a process of its own. Best of "
            f"{options.rounds} rounds. Ideal: calls × latency / concurrency. Load when it began: "
            f"{load:.1f}.\n\n"
        )
        RESULTS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
