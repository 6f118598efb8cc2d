"""One look of the sensor at a KB folder of many documents: nothing changed, and one document changed.

    python -m benchmarks.watching --documents 10000 --megabytes 60

Does what a tick does without Dagster's event log: scan with the stat cache, version, state, quietness. Each figure is
the median of ``--looks`` looks, in one process, as the code server is one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.kb_stage import make_kb
from ragds_pipeline.kb.convert import converter_version
from ragds_pipeline.kb.revision import Archive, current_revision
from ragds_pipeline.kb.watch import look, quiet_for, state_of


def timed(what: Callable[[], object], looks: int) -> tuple[float, float]:
    """Return the median wall and CPU seconds of a call."""
    walls, cpus = [], []
    for _ in range(looks):
        wall, cpu = time.perf_counter(), time.process_time()
        what()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--looks", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kb, out = Path(folder) / "kb", Path(folder) / "out"
        size = make_kb(kb, arguments.documents, arguments.megabytes)

        def tick() -> None:
            revision = current_revision(kb, Archive(out / "archive"), 10**9, converter_version(), out / "stat.json")
            quiet_for(revision, look(revision, None, time.time()), time.time())
            state_of(revision)

        def changed() -> None:
            with (kb / "00" / "d000000.md").open("a", encoding="utf-8") as file:
                file.write("\nOne more line.\n")
            tick()

        print(f"{arguments.documents:,} documents, {size / 1e6:,.0f} MB\n")
        print("| look | wall s | CPU s |\n|---|--:|--:|")
        rows = [("first: every file is read", timed(tick, 1))]
        time.sleep(2.5)  # files this young are read again on purpose; see RACY_NS in kb/scan.py
        rows.append(("second: files that were too young are read once more", timed(tick, 1)))
        rows.append(("nothing changed", timed(tick, arguments.looks)))
        rows.append(("one document changed", timed(changed, arguments.looks)))
        for label, (wall, cpu) in rows:
            print(f"| {label} | {wall:.2f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
