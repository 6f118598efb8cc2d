"""All filters over 1,000, 5,000 and 10,000 candidates, through Dagster: memory by stage, and what Dagster itself costs.

    python -m benchmarks.filters_10k --sizes 1000
    python -m benchmarks.filters_10k --write

Each size is a process of its own and has a new project and ledger; the loopback server of the tests runs in another
process and drops a few of the items in every filter. Time in functions is that of the code filter, the judges and the
top-up; what is left of the run's time is Dagster, its event log, and tables written and read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

RESULTS = Path(__file__).parent / "results" / "filters_10k.md"
SIZES = (1_000, 5_000, 10_000)
A_DOCUMENT = 25
"""Questions asked of one document."""

_LINE = re.compile(r"^\[(\d+)\] .*rule (\d+) of site (\d+)", re.MULTILINE)
_ASK = re.compile(r"^- (\d+) of type (\S+)", re.MULTILINE)


def _share(text: str, salt: str) -> int:
    return hashlib.sha256((salt + text).encode()).digest()[0]


def respond(body: dict[str, Any]) -> Any:
    """Write questions, answer without the document, or judge; by a hash of what is shown, so that runs are alike."""
    content = body["messages"][0]["content"]
    if len(content) > 1:
        return _questions(content[0]["text"], content[1]["text"])
    system, text = body["system"][0]["text"], content[0]["text"]
    if "You have no documents" in system:
        return {"known": _share(text, "known") < 13, "answer": "within a month"}
    if "say what the reference says" in system:
        return {"reason": "It names the same time.", "verdict": "correct" if _share(text, "same") < 90 else "incorrect"}
    reason = "The spans name the rule, the site and the number of days, and the answer says the same of them."
    reply = {"reason": reason, "verdict": "incorrect" if _share(text, system[:40]) < 10 else "correct"}
    return {**reply, "needless": []} if "follow from the spans" in system else reply


def _questions(document: str, asked: str) -> dict[str, Any]:
    lines = _LINE.findall(document)
    # Another round shows the questions there are; it is given the sentences that were not asked about.
    free = [line for line in lines if f"rule {line[1]} of site {line[2]}" not in asked]
    questions = []
    for count, type_ in _ASK.findall(asked):
        for _ in range(min(int(count), len(free))):
            number, rule, site = free.pop(0)
            question = f"Within how many days is a claim settled under rule {rule} of site {site}?"
            answer = f"Within {int(rule) % 83 + 7} days of its receipt."
            questions.append({"question": question, "answer": answer, "type": type_, "evidence_ids": [int(number)]})
    return {"questions": questions}


def write_kb(folder: Path, questions: int) -> None:
    folder.mkdir(parents=True)
    for site in range(questions // A_DOCUMENT):
        rules = range(site * 40, site * 40 + 40)
        lines = [f"Under rule {n} of site {site} a claim is settled within {n % 83 + 7} days of it.\n\n" for n in rules]
        (folder / f"site-{site:04d}.md").write_text(f"# Site {site}\n\n{''.join(lines)}", encoding="utf-8")


@contextmanager
def loopback() -> Iterator[str]:
    command = [sys.executable, "-m", "ragds_pipeline_tests.loopback", "--responder", "benchmarks.filters_10k:respond"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


@dataclass
class Watch:
    """Resident memory over time, and seconds in functions."""

    samples: list[tuple[float, int]] = field(default_factory=list)
    wall: float = 0.0
    cpu: float = 0.0
    _depth: int = 0

    def start(self) -> None:
        process = psutil.Process()

        def look() -> None:
            while True:
                self.samples.append((time.time(), process.memory_info().rss))
                time.sleep(0.05)

        threading.Thread(target=look, daemon=True).start()

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, **kwargs: Any) -> Any:
            start, cpu = time.perf_counter(), time.process_time()
            self._depth += 1
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.wall += time.perf_counter() - start
                    self.cpu += time.process_time() - cpu

        return inner

    def peak(self, start: float, end: float) -> int:
        return max((rss for at, rss in self.samples if start <= at <= end), default=0)


def run_one(questions: int) -> dict[str, Any]:
    """Run the filters over so many drafts in this process and return the figures."""
    from ragds_pipeline import runs
    from ragds_pipeline.config import load_settings
    from ragds_pipeline.filters import assets

    watch = Watch()
    os.environ["ANTHROPIC_API_KEY"] = "bench"
    with tempfile.TemporaryDirectory() as folder, loopback() as url:
        root = Path(folder)
        write_kb(root / "kb", questions)
        judges = {"enabled": ["ambiguity", "closed_book", "support", "class"]}
        settings = {
            "kb": {"path": "kb"},
            "plan": {"questions": questions, "top_up_rounds": 1, "chars_per_question": 50},
            "candidates": {"questions_per_request": A_DOCUMENT},
            "filters": {"judges": judges},
            "claude": {"base_url": url, "check_models": False, "concurrency": 32, "budget_usd": 100_000},
        }
        config = root / "ragds.yaml"
        config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        loaded = load_settings(config)
        instance = runs.dagster_instance(loaded)
        version = runs.register_current(loaded, instance)
        must(runs.execute(config, "revision_job", version, instance, selection=[*BEFORE, *DRAFTS]))
        for name in ("code_filter", "verdicts_in_parts", "top_up", "apply_in_parts", "load_outlines"):
            setattr(assets, name, watch.timed(getattr(assets, name)))
        watch.start()
        idle = psutil.Process().memory_info().rss
        start, cpu = time.perf_counter(), time.process_time()
        outcome = must(runs.execute(config, "revision_job", version, instance, selection=FILTERS))
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        stats = instance.get_run_step_stats(outcome.run_id)
        steps = [
            (each.step_key, each.end_time - each.start_time, watch.peak(each.start_time, each.end_time))
            for each in stats
            if each.start_time is not None and each.end_time is not None
        ]
        facts = outcome.metadata
        return {
            "questions": questions,
            "first candidates": facts["first_candidates"]["candidates"],
            "candidates": facts["candidates"]["candidates"],
            "verdicts": facts["verdicts"]["verdicts"],
            "wall": wall,
            "cpu": cpu,
            "functions": watch.wall,
            "functions cpu": watch.cpu,
            "idle": idle,
            "steps": steps,
        }


BEFORE = [
    "kb_documents", "kb_issues", "kb_sections", "kb_passages", "kb_changes", "anchor_events", "revalidated_items",
    "carried_candidates", "carried_no_answer", "no_answer_to_ask", "question_plan", "plan_basis",
]  # fmt: skip
DRAFTS = ["drafts", "draft_drops", "draft_requests"]
FILTERS = [
    "first_candidates", "code_drops", "ambiguity_verdicts", "closed_book_verdicts", "support_verdicts",
    "class_verdicts", "candidates", "verdicts", "judge_drops", "top_up_drafts", "top_up_drops", "top_up_requests",
    "missing_questions",
]  # fmt: skip


def must(outcome: Any) -> Any:
    assert outcome.success, outcome.errors
    return outcome


def table(results: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| drafts | after the code filter | verdicts | kept | run | in functions | the rest | CPU of the rest |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in results:
        rest, rest_cpu = r["wall"] - r["functions"], r["cpu"] - r["functions cpu"]
        lines.append(
            f"| {r['questions']:,} | {r['first candidates']:,} | {r['verdicts']:,} | {r['candidates']:,} "
            f"| {r['wall']:.0f} s | {r['functions']:.0f} s | {rest:.1f} s | {rest_cpu:.1f} s |"
        )
    names = [name for name, _, _ in results[-1]["steps"]]
    lines += ["", "Peak of resident memory, by stage:", ""]
    lines += ["| stage | " + " | ".join(f"{r['questions']:,}" for r in results) + " |", "|---|" + "--:|" * len(results)]
    lines.append("| before the run | " + " | ".join(f"{r['idle'] / 1e6:.0f} MB" for r in results) + " |")
    for name in names:
        peaks = [next((peak for step, _, peak in r["steps"] if step == name), 0) for r in results]
        lines.append(f"| {name} | " + " | ".join(f"{peak / 1e6:.0f} MB" for peak in peaks) + " |")
    lines += ["", "Seconds by stage:", ""]
    lines += ["| stage | " + " | ".join(f"{r['questions']:,}" for r in results) + " |", "|---|" + "--:|" * len(results)]
    for name in names:
        seconds = [next((s for step, s, _ in r["steps"] if step == name), 0.0) for r in results]
        lines.append(f"| {name} | " + " | ".join(f"{s:.0f} s" for s in seconds) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--one", type=int, help="one size in this process, figures as JSON on the last line")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/filters_10k.md")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_one(options.one)))
        return
    load = os.getloadavg()[0]
    results = []
    for size in options.sizes:
        command = [sys.executable, "-m", "benchmarks.filters_10k", "--one", str(size)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
        print("\n".join(table(results)), flush=True)
    if options.write:
        head = (
            "# 10,000 candidates through all filters\n\n"
            "`python -m benchmarks.filters_10k --write` on 2 cores, with the loopback server in a process of its own, "
            f"concurrency 32,\nSQLite ledger. Load when it began: {load:.1f}. The rest is what is not in the code "
            "filter, the judges and the top-up: Dagster,\nits event log, and tables written and read.\n\n"
        )
        RESULTS.write_text(head + "\n".join(table(results)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
