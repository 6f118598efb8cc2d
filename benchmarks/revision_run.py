"""A revision run of the part that re-validates: 100,000 evidence spans over 10,000 documents (70 MB), 10 % changed.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.revision_run                         # writes results/revision_run.md
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.revision_run --documents 1000 --show   # a quick look, nothing written

The documents are those of ``reanchoring_scale``: paragraphs of a real handbook, varied, under headings. The first
revision is taken in by a Dagster run; its candidates and its frozen snapshot are written by the product's own
functions, as if every candidate had been kept. Then the documents change, and a fresh process runs, through Dagster,
what ``revision_job`` runs before anything is asked: ``kb_documents``, ``kb_passages`` and ``golden_revalidation``. The
function alone (``reanchor``) is measured in another process, with its texts in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import reanchoring_scale
from ragds_pipeline import runs
from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.config import load_settings
from ragds_pipeline.golden.registry import Registry
from ragds_pipeline.golden.snapshot import Contents, freeze, register
from ragds_pipeline.records import (
    Candidate,
    Evidence,
    GivenId,
    GoldenItem,
    GoldenPassage,
    Outcome,
    Provenance,
    RevalidatedItem,
    candidate_id,
)
from ragds_pipeline.storage.schemas import to_records, to_table
from ragds_pipeline.storage.tables import TableFile, write_table
from ragds_pipeline_tests.shared_data import SHARED_DATA

ROOT = Path(__file__).resolve().parents[1]
KB_STAGE = ("kb_documents", "kb_issues", "kb_sections", "kb_passages")
REVALIDATION = (
    "kb_changes",
    "anchor_events",
    "revalidated_items",
    "carried_candidates",
    "carried_no_answer",
    "no_answer_to_ask",
)
SIZES = (1, 1, 1, 2, 1, 1, 2, 1)
"""Spans of the items of a document, in turn: ten spans in eight items."""
BEFORE, AFTER = "2026-10-01", "2026-12-01"


def write_kb(root: Path, texts: dict[str, str], version: str) -> None:
    """Make the KB folder hold ``texts`` and nothing else; files that are right already are left alone."""
    for path in sorted(root.rglob("*.md")):
        if str(path.relative_to(root)) not in texts:
            path.unlink()
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
    (root / "kb.yaml").write_text(f'name: benchmark\nsource_version: "{version}"\nlanguages: [en]\n', encoding="utf-8")


def items_of(spans: Sequence[AnchoredSpan]) -> Iterator[list[AnchoredSpan]]:
    """Yield the spans of each item: those of one document one after another."""
    rest = iter(spans)
    while True:
        for size in SIZES:
            if not (group := list(islice(rest, size))):
                return
            yield group


def frozen(spans: Sequence[AnchoredSpan]) -> tuple[list[Candidate], list[GoldenItem], list[GivenId]]:
    """Return candidates over the spans, the items they were frozen as, and the ids these got."""
    candidates, items, ids = [], [], []
    for number, group in enumerate(items_of(spans), 1):
        path, question = group[0].document_path, f"What does {group[0].document_path} say in passage {number}?"
        contents = [span.content for span in group]
        id_ = candidate_id(path, "factual", question, contents[0], contents)
        evidence = tuple(
            Evidence(s.document_path, s.start_char, s.end_char, s.content, "", "", "", True, "exact", s.alternatives)
            for s in group
        )
        candidates.append(
            Candidate(
                id=id_, draft_id="", document_path=path, chunk_id="", question=question, answer=contents[0],
                type="factual", difficulty="easy", hops="single", language="en", source_version=BEFORE,
                evidence=evidence, origin="generated", parent_id="", round=0, request_key="", model="",
                prompt_version="", root_id=id_,
            )
        )  # fmt: skip
        passages = tuple(
            GoldenPassage(s.document_path, s.start_char, s.end_char, s.content, True, s.alternatives, "", "", "")
            for s in group
        )
        provenance = Provenance(id_, (), (), (), "keep by benchmark", BEFORE)
        item_id = f"g-{number:06}"
        items.append(
            GoldenItem(
                item_id, question, contents[0], "factual", "easy", "single", "en", "dev", BEFORE, passages, "",
                contents[0], provenance=provenance,
            )
        )  # fmt: skip
        ids.append(GivenId(item_id, id_, "dev", BEFORE, 0, id_))
    return candidates, items, ids


def prepare(root: Path, documents: int, characters: int) -> dict[str, Any]:
    """Make a project with a frozen first revision, change its documents, and say how large it is."""
    reanchoring_scale.CHARACTERS = characters
    old, new, spans = reanchoring_scale.make(documents)
    kb = root / "kb"
    write_kb(kb, old, BEFORE)
    (root / "ragds.yaml").write_text("kb: {path: kb}\nreview: {reviewer: benchmark}\n", encoding="utf-8")
    run_job(root, KB_STAGE)
    settings = load_settings(root / "ragds.yaml")
    candidates, items, ids = frozen(spans)
    write_table(to_table(Candidate, candidates), settings.data_dir / "tables/candidates" / f"{BEFORE}.parquet")
    golden = settings.data_dir / "golden"
    freeze(
        Contents(BEFORE, items, [], old, [], [], {}),
        golden,
        lambda: register(Registry(golden / "registry.jsonl"), ids),
    )
    write_kb(kb, new, AFTER)
    time.sleep(2.5)  # files this young are read again on purpose; see RACY_NS in kb/scan.py
    megabytes = sum(len(text.encode()) for text in old.values()) / 1e6
    return {"documents": len(old), "megabytes": megabytes, "spans": len(spans), "items": len(items)}


def run_job(root: Path, selection: Sequence[str]) -> dict[str, Any]:
    """Run a part of ``revision_job`` through Dagster and say what it took, in all and by step."""
    config = root / "ragds.yaml"
    settings = load_settings(config)
    instance = runs.dagster_instance(settings)
    wall, cpu = time.perf_counter(), time.process_time()
    version = runs.register_current(settings, instance)
    outcome = runs.execute(config, "revision_job", version, instance, selection=selection)
    took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "version": version}
    if not outcome.success:
        raise RuntimeError("; ".join(outcome.errors))
    steps = {s.step_key: (s.end_time or 0) - (s.start_time or 0) for s in instance.get_run_step_stats(outcome.run_id)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    reused = outcome.metadata["kb_documents"]["taken over unchanged"]
    return {**took, "steps": steps, "peak": peak, "reused": reused}


def function(documents: int, characters: int) -> dict[str, Any]:
    """Measure ``reanchor`` alone, texts and hashes given."""
    reanchoring_scale.CHARACTERS = characters
    cost = reanchoring_scale.run(reanchoring_scale.make(documents))
    rungs = Counter(str(event.rung) for event in cost.events)
    return {"wall": cost.wall_seconds, "cpu": cost.cpu_seconds, "rungs": dict(rungs.most_common())}


def outcomes_of(root: Path) -> dict[str, int]:
    """Return how many items there are of each outcome, and check that nothing was dropped."""
    tables = load_settings(root / "ragds.yaml").data_dir / "tables"
    rows = to_records(RevalidatedItem, TableFile(tables / "revalidated_items" / f"{AFTER}.parquet").read())
    counts = Counter(str(row.outcome) for row in rows)
    assert sum(counts.values()) == len({row.id for row in rows})
    return {str(outcome): counts[str(outcome)] for outcome in Outcome if counts[str(outcome)]}


def apart(*arguments: str) -> dict[str, Any]:
    """Do one part in a process of its own, so that its peak memory and CPU time are its own."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.revision_run", *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def measured(documents: int, characters: int) -> dict[str, Any]:
    """Measure one size of KB: make it in one process, run its new revision in another."""
    sizes = ["--documents", str(documents), "--characters", str(characters)]
    with tempfile.TemporaryDirectory() as folder:
        made = apart("--part", "prepare", "--root", folder, *sizes)
        run = apart("--part", "run", "--root", folder)
        said = {"made": made, "run": run, "outcomes": outcomes_of(Path(folder))}
    return said


def page(sizes: Sequence[dict[str, Any]], alone: dict[str, Any], yardstick: float) -> str:
    """Return the results as a page."""
    first = sizes[0]["made"]
    lines = [
        "# A revision run",
        "",
        f"`OPENBLAS_NUM_THREADS=1 python -m benchmarks.revision_run` on 2 cores, load {os.getloadavg()[0]:.0f}.",
        f"Hashing 1 MB took {yardstick:.0f} ms CPU at the time; it takes 18 ms where the machine is quiet.",
        "",
        f"{first['spans']:,} spans in {first['items']:,} frozen items over {first['documents']:,} documents, 10 %",
        "of which changed (one in twenty of them renamed as well). Asked for: 15 s of wall on a quiet machine.",
        "",
        "| KB | spans | whole run, CPU s | wall s | `kb_documents` wall | `kb_passages` wall "
        "| `golden_revalidation` wall | documents taken over | peak memory |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for size in sizes:
        made, run = size["made"], size["run"]
        steps = " | ".join(
            f"{run['steps'][name]:.1f}" for name in ("kb_documents", "kb_passages", "golden_revalidation")
        )
        lines.append(
            f"| {made['documents']:,} documents, {made['megabytes']:.0f} MB | {made['spans']:,} | **{run['cpu']:.1f}** "
            f"| {run['wall']:.1f} | {steps} | {run['reused']:,} | {run['peak']:.0f} MB |"
        )
    found = ", ".join(f"{count:,} {name}" for name, count in sizes[0]["outcomes"].items())
    rungs = ", ".join(f"{count:,} {name}" for name, count in alone["rungs"].items())
    lines += [
        "",
        f"Items: {found}.",
        "",
        f"The function alone (`anchors.reanchor`, texts in memory): {alone['cpu']:.1f} s CPU, {alone['wall']:.1f} s",
        f"wall; {rungs}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=reanchoring_scale.DOCUMENTS)
    parser.add_argument("--characters", type=int, default=reanchoring_scale.CHARACTERS)
    parser.add_argument("--part", choices=("prepare", "run", "function"))
    parser.add_argument("--root", type=Path)
    parser.add_argument("--show", action="store_true", help="print the page, write none; one size only")
    given = parser.parse_args()
    if given.part:
        parts = {
            "prepare": lambda: prepare(given.root, given.documents, given.characters),
            "run": lambda: run_job(given.root, [*KB_STAGE, *REVALIDATION]),
            "function": lambda: function(given.documents, given.characters),
        }
        print(json.dumps(parts[given.part]()))
        return
    if not SHARED_DATA.exists():
        print(f"skipped: real data absent: {SHARED_DATA}")
        return
    wanted = [given.characters] if given.show else [given.characters, 3 * given.characters]
    sizes = [measured(given.documents, characters) for characters in wanted]
    alone = apart("--part", "function", "--documents", str(given.documents), "--characters", str(given.characters))
    text = page(sizes, alone, reanchoring_scale_yardstick())
    print(text)
    if not given.show:
        (ROOT / "benchmarks/results/revision_run.md").write_text(text, encoding="utf-8")


def reanchoring_scale_yardstick() -> float:
    """Return the CPU milliseconds of the fixed piece of work that ``reanchoring`` uses as well."""
    from benchmarks.reanchoring import yardstick

    return yardstick()


if __name__ == "__main__":
    main()
