"""How fast documents are normalised, parsed and cut into passages, in MB of UTF-8 per CPU second of one core.

Run ``python -m benchmarks.kb_structure``; it reads the public documents in ``../shared/data`` and prints the
table that ``benchmarks/results/kb_structure.md`` keeps.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ragds_pipeline.kb.block_rules import with_fast_rules
from ragds_pipeline.kb.normalise import decode, front_matter_end, normalise
from ragds_pipeline.kb.passages import passages
from ragds_pipeline.kb.structure import parse
from ragds_pipeline.records import Passage, Section
from ragds_pipeline.spans.blocks import Block
from ragds_pipeline.spans.sentences import sentences

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SOURCES = (
    "18f-handbook/rev-2023-12-01",
    "srd-5.2.1-datapizza/docs",
    "chroma-chunking-evaluation/corpora/state_of_the_union.md",
)
ROUNDS = 7
TARGET, MAX = 1_200, 2_400


def main() -> None:
    """Print the figures, the best of ``ROUNDS`` rounds each."""
    files = [path for source in SOURCES for path in _files(SHARED / source)]
    if not files:
        raise SystemExit(f"no documents under {SHARED}")
    data = [path.read_bytes() for path in files]
    texts = [normalise(decode(raw).text) for raw in data]
    structures = [parse("a.md", text, "", front_matter_end(text)) for text in texts]
    both = list(zip(texts, structures, strict=True))
    gc.freeze()  # what is kept for the single steps must not slow the others down
    stock = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    fast = with_fast_rules(MarkdownIt("commonmark", {"maxNesting": 100}).enable("table"))
    steps: list[tuple[str, Callable[[], object]]] = [
        ("decode", lambda: [decode(raw) for raw in data]),
        ("normalise", lambda: [normalise(text) for text in texts]),
        ("block parse of markdown-it-py, unchanged", lambda: [_block_parse(stock, text) for text in texts]),
        ("block parse with kb.block_rules", lambda: [_block_parse(fast, text) for text in texts]),
        ("parse (sections and blocks)", lambda: [parse("a.md", t, "", front_matter_end(t)) for t in texts]),
        ("passages", lambda: [_passages(t, s.sections, s.blocks) for t, s in both]),
        ("sentences (on demand only)", lambda: [sentences(t, s.blocks) for t, s in both]),
        ("**decode, normalise, parse, passages**", lambda: [_all(raw) for raw in data]),
    ]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    count = sum(len(_passages(t, s.sections, s.blocks)) for t, s in both)
    print(f"{len(texts)} documents, {megabytes:.2f} MB, {count} passages\n")
    best = {name: float("inf") for name, _ in steps}
    for _ in range(ROUNDS):  # in turn, so that a busy moment of the machine hits no step alone
        for name, step in steps:
            best[name] = min(best[name], _seconds(step))
    print("| step | MB/s |\n|---|---:|")
    for name, seconds in best.items():
        print(f"| {name} | {megabytes / seconds:.1f} |")


def _files(source: Path) -> list[Path]:
    return [source] if source.is_file() else sorted(source.rglob("*.md"))


def _block_parse(parser: MarkdownIt, text: str) -> int:
    tokens: list[Token] = []
    parser.block.parse(text, parser, {}, tokens)
    return len(tokens)


def _passages(text: str, sections: Sequence[Section], blocks: Sequence[Block]) -> list[Passage]:
    return passages("a.md", text, "", sections, blocks, TARGET, MAX)


def _all(raw: bytes) -> list[Passage]:
    text = normalise(decode(raw).text)
    structure = parse("a.md", text, "", front_matter_end(text))
    return _passages(text, structure.sections, structure.blocks)


def _seconds(step: Callable[[], object]) -> float:
    start = time.process_time()
    step()
    return time.process_time() - start


if __name__ == "__main__":
    main()
