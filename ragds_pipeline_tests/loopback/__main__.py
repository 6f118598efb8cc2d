"""The loopback server as a process of its own, for benchmarks and kill tests.

    python -m ragds_pipeline_tests.loopback --port 0 --latency 0.05 --share overloaded=0.05 --seed 7

Prints the URL on the first line and serves until SIGTERM or SIGINT. Totals: GET /_loopback/stats, as JSON.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from types import FrameType

from ragds_pipeline_tests.loopback.answers import Responder, echo_responder
from ragds_pipeline_tests.loopback.batches import BatchPlan
from ragds_pipeline_tests.loopback.faults import Fault, FaultKind, FaultPlan
from ragds_pipeline_tests.loopback.server import LoopbackServer


def _share(text: str) -> tuple[Fault, float]:
    kind, _, share = text.partition("=")
    known: FaultKind = kind  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    return Fault(known, retry_after_ms=20), float(share)


def _responder(text: str | None) -> Responder:
    if text is None:
        return echo_responder
    module, _, name = text.partition(":")
    responder: Responder = getattr(importlib.import_module(module), name)
    return responder


def main(arguments: list[str] | None = None) -> int:
    """Serves until it is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m ragds_pipeline_tests.loopback", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each message answer")
    parser.add_argument("--responder", help="module:function; echoes by default")
    parser.add_argument("--share", type=_share, action="append", default=[], help="fault kind and share, kind=0.05")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-polls", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="keep request bodies in memory")
    options = parser.parse_args(arguments)
    server = LoopbackServer(
        _responder(options.responder),
        latency=options.latency,
        faults=FaultPlan(shares=options.share, seed=options.seed),
        batches=BatchPlan(polls=options.batch_polls, seed=options.seed),
        port=options.port,
        record=options.record,
    ).start()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print(server.url, flush=True)
    server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
