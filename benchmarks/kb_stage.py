"""The KB stage on many documents: from nothing, and again with nothing changed.

    python benchmarks/kb_stage.py --documents 10000 --megabytes 60
    python benchmarks/kb_stage.py --documents 12000 --megabytes 1000

Makes a KB of Markdown documents in a temporary folder (seeded: headings, paragraphs, lists and tables in English,
Italian and Japanese; no two alike), then does what the assets ``kb_documents`` and ``kb_passages`` do: scan, archive,
read, normalise, cut, write. The second pass finds nothing changed. Each pass runs in a process of its own, so that its
peak memory is its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import tempfile
import time
from pathlib import Path

from ragds_pipeline.config import PassageSettings
from ragds_pipeline.kb.convert import converter_version
from ragds_pipeline.kb.cut import cut_documents
from ragds_pipeline.kb.documents import write_documents
from ragds_pipeline.kb.revision import Archive, FolderSource, current_revision
from ragds_pipeline.storage.tables import TableFile

WORDS = {
    "en": [
        "claim",
        "form",
        "approval",
        "desk",
        "receipt",
        "travel",
        "hotel",
        "limit",
        "amount",
        "leave",
        "week",
        "month",
        "captain",
        "ledger",
        "purchase",
    ],
    "it": [
        "richiesta",
        "modulo",
        "approvazione",
        "ricevuta",
        "viaggio",
        "albergo",
        "limite",
        "importo",
        "ferie",
        "settimana",
        "mese",
        "acquisto",
    ],
    "ja": [
        "申請",
        "領収書",
        "承認",
        "出張",
        "上限",
        "金額",
        "休暇",
        "課長",
        "期限",
        "経費",
        "規程",
        "購入",
        "様式",
        "精算",
        "営業日",
    ],
}


def document(rng: random.Random, number: int, size: int) -> str:
    """Return one document of about ``size`` bytes."""
    language = rng.choices(["en", "it", "ja"], [7, 2, 1])[0]
    words, glue, stop = WORDS[language], "" if language == "ja" else " ", "。" if language == "ja" else ". "
    parts = [f"# Document {number}\n"]
    length = 0
    while length < size:
        kind = rng.random()
        sentence = [
            glue.join(rng.choices(words, k=rng.randint(6, 16))) + f" {rng.randint(1, 9999)}{stop}" for _ in range(4)
        ]
        if kind < 0.15:
            part = f"\n## Section {rng.randint(1, 9999)}\n"
        elif kind < 0.3:
            part = "".join(f"- {line}\n" for line in sentence)
        elif kind < 0.4:
            part = "\n| a | b |\n|---|---|\n" + "".join(
                f"| {line[:20]} | {rng.randint(1, 99)} |\n" for line in sentence
            )
        else:
            part = "\n" + "".join(sentence) + "\n"
        parts.append(part)
        length += len(part.encode())
    return "\n".join(parts)


def make_kb(root: Path, documents: int, megabytes: int) -> int:
    """Write the KB and return its size in bytes."""
    rng = random.Random(20261001)
    size = megabytes * 1_000_000 // documents
    total = 0
    for number in range(documents):
        path = root / f"{number % 100:02d}" / f"d{number:06d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = document(rng, number, size).encode()
        path.write_bytes(data)
        total += len(data)
    (root / "kb.yaml").write_text("name: benchmark\nlanguages: [en, it, ja]\n", encoding="utf-8")
    return total


def kb_stage(kb: Path, out: Path, again: bool, results: multiprocessing.Queue[tuple[float, float, float, int]]) -> None:
    """Do the KB stage once and put (wall s, CPU s, peak MB, documents taken over) into ``results``."""
    wall, cpu = time.perf_counter(), time.process_time()
    archive = Archive(out / "archive")
    revision = current_revision(kb, archive, 10**9, converter_version(), out / "stat.json")
    archive.store(revision, FolderSource(kb))
    names = ["documents", "issues", "sections", "passages"]
    new = {name: out / f"{name}.new" for name in names}
    old = {name: TableFile(out / f"{name}.parquet") for name in names}
    report = write_documents(
        revision,
        FolderSource(kb),
        new["documents"],
        new["issues"],
        (old["documents"], old["issues"]) if again else None,
    )
    cut_documents(
        TableFile(new["documents"]),
        PassageSettings(),
        new["sections"],
        new["passages"],
        (old["sections"], old["passages"]) if again else None,
    )
    for name in names:
        new[name].replace(out / f"{name}.parquet")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((time.perf_counter() - wall, time.process_time() - cpu, peak, report.reused))


def main() -> None:
    """Print a Markdown table of both passes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=60)
    arguments = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        kb, out = Path(folder) / "kb", Path(folder) / "out"
        out.mkdir()
        size = make_kb(kb, arguments.documents, arguments.megabytes)
        time.sleep(2.5)  # files this young are read again on purpose; see RACY_NS in kb/scan.py
        print(f"{arguments.documents:,} documents, {size / 1e6:,.0f} MB\n")
        print("| pass | wall s | CPU s | MB/s (wall) | peak MB | documents taken over |\n|---|--:|--:|--:|--:|--:|")
        for label, again in (("from nothing", False), ("nothing changed", True)):
            results: multiprocessing.Queue[tuple[float, float, float, int]] = context.Queue()
            process = context.Process(target=kb_stage, args=(kb, out, again, results))
            process.start()
            wall, cpu, peak, reused = results.get()
            process.join()
            print(
                f"| {label} | {wall:.1f} | {cpu:.1f} | {size / 1e6 / wall:.1f} | {peak:.0f} | {reused:,} |", flush=True
            )


if __name__ == "__main__":
    main()
