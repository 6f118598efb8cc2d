"""What the ladder costs on 100,000 spans over 10,000 documents (70 MB), 10 % of them changed.

Documents are paragraphs of the real ones in random order under headings, with 60 % of the words replaced, so that
their sentences are not copies. A changed document has one of its ten spans edited in a word or number, a paragraph put
in before another, one taken out; one in twenty is renamed as well. Called by ``benchmarks/reanchoring.py``.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.kb.normalise import normalise
from ragds_pipeline.records import AnchorEvent, sha256_text
from ragds_pipeline_tests.shared_data import SHARED_DATA

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS, CHARACTERS, SPANS_EACH, CHANGED, VARIED, SEED = 10_000, 7_000, 10, 0.1, 0.6, 20_261
Made = tuple[dict[str, str], dict[str, str], list[AnchoredSpan]]


def make(documents: int = DOCUMENTS) -> Made:
    """Return the old texts, the new ones and the spans."""
    rng = random.Random(SEED)
    lines = [
        line.split(" ")
        for path in sorted((SHARED_DATA / "18f-handbook/rev-2023-12-01").rglob("*.md"))
        for line in normalise(path.read_text(encoding="utf-8")).split("\n\n")
        if 60 < len(line) < 900 and line[0].isalpha() and "\n#" not in line
    ]
    old = {f"made/{at:05}.md": "\n\n".join(_paragraphs(lines, rng)) + "\n" for at in range(documents)}
    spans = [span for path, text in old.items() for span in _spans(path, text, rng)]
    new = dict(old)
    for at, path in enumerate(rng.sample(sorted(old), round(documents * CHANGED))):
        text = _changed(old[path], spans[int(path[5:10]) * SPANS_EACH + 3].content, lines, rng)
        new.pop(path)
        new[f"renamed/{path}" if at % 20 == 0 else path] = text
    return old, new, spans


def _paragraphs(lines: list[list[str]], rng: random.Random) -> list[str]:
    found: list[str] = []
    while sum(map(len, found)) < CHARACTERS:
        if len(found) % 6 == 0:
            found.append(f"## {' '.join(_varied(lines, rng)[:5])}")
        found.append(" ".join(_varied(lines, rng)))
    return found


def _varied(lines: list[list[str]], rng: random.Random) -> list[str]:
    words = list(rng.choice(lines))
    for at in rng.sample(range(len(words)), round(len(words) * VARIED)):
        words[at] = rng.choice(rng.choice(lines))
    return words


def _spans(path: str, text: str, rng: random.Random) -> list[AnchoredSpan]:
    sentences = [match.span() for match in re.finditer(r"(?<=[.\n] )?[A-Z][^.\n#]{40,250}\.", text)]
    while len(sentences) < SPANS_EACH:
        start = rng.randrange(len(text) - 200)
        sentences.append((start, start + 150))
    chosen = sorted(rng.sample(sentences, SPANS_EACH))
    return [AnchoredSpan(f"{path}:{start}", 0, True, path, start, end, text[start:end]) for start, end in chosen]


def _changed(text: str, edited: str, lines: list[list[str]], rng: random.Random) -> str:
    words = edited.split(" ")
    words[len(words) // 2] = rng.choice(["30", "never", "or", "Anna", "sometimes"])
    text = text.replace(edited, " ".join(words))
    paragraphs = text.split("\n\n")
    del paragraphs[rng.randrange(1, len(paragraphs))]
    paragraphs.insert(rng.randrange(1, len(paragraphs)), " ".join(_varied(lines, rng)))
    return "\n\n".join(paragraphs)


_HEADING = re.compile(r"^## [^\n]*\n", re.MULTILINE)


def _sections(path: str, text: str) -> list[tuple[int, int, int]]:
    """Sections as a pipeline has them in its tables; finding them here costs a scan for headings."""
    starts = [match.span() for match in _HEADING.finditer(text)]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return [(0, 0, len(text)), *((start, body, end) for (start, body), end in zip(starts, ends, strict=True))]


class Cost(NamedTuple):
    """What one run took."""

    cpu_seconds: float
    wall_seconds: float
    events: list[AnchorEvent]
    documents: int
    megabytes: float


def run(made: Made) -> Cost:
    """Re-anchor everything once, hashes given."""
    old, new, spans = made
    before = Revision("v1", {path: sha256_text(text) for path, text in old.items()}, old.__getitem__, _sections)
    after = Revision("v2", {path: sha256_text(text) for path, text in new.items()}, new.__getitem__, _sections)
    cpu, wall = time.process_time(), time.perf_counter()
    events = reanchor(spans, before, after)
    cost = time.process_time() - cpu, time.perf_counter() - wall
    return Cost(*cost, events, len(old), sum(len(text.encode()) for text in old.values()) / 1e6)


def peak_memory() -> str:
    """Return what re-anchoring adds to the memory of a process that holds the texts, measured in a fresh one."""
    code = (
        "import resource; from benchmarks.reanchoring_scale import make, run; made = make(); "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; run(made); "
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; print(before // 1024, after // 1024)"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    held, peak = printed.split()
    return f"{peak} MB, of which {held} MB are the texts of both revisions and the spans"
