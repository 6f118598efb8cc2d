"""The re-anchoring ladder on real revisions, next to five simpler ways, and its cost on 100,000 spans.

Run: ``OPENBLAS_NUM_THREADS=1 python -m benchmarks.reanchoring``. Writes ``benchmarks/results/reanchoring.md``. Spans
are all sentences and all paragraphs of at least 20 characters of the older revision; ``benchmarks/alignment.py`` says
where they truly are.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import numpy as np
from diff_match_patch import diff_match_patch
from rapidfuzz import fuzz

from benchmarks.alignment import Alignment, Truth
from benchmarks.reanchoring_scale import Cost, make, peak_memory, run
from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.kb.normalise import front_matter_end, normalise
from ragds_pipeline.kb.structure import Structure, parse
from ragds_pipeline.records import AnchorEvent, Rung, sha256_text
from ragds_pipeline.spans import seeds
from ragds_pipeline.spans.blocks import LIST_ITEM, PARAGRAPH, TABLE
from ragds_pipeline.spans.occurrences import find_everywhere
from ragds_pipeline.spans.sentences import sentences
from ragds_pipeline_tests.shared_data import SHARED_DATA

ROOT = Path(__file__).resolve().parents[1]
SEED = 20_261
SHORTEST = 20
ALL, SOME, FEW = 0, 300, 25
"""Spans of each pair of revisions on which a method is run: the slowest take up to seconds for one."""
PAIRS = (
    ("18f", "rev-2022-11-30", "rev-2023-12-01"),
    ("18f", "rev-2023-12-01", "rev-2025-02-27"),
    ("18f", "rev-2022-11-30", "rev-2025-02-27"),
    ("openapi", "2.0", "3.0.0"),
    ("openapi", "3.0.0", "3.0.1"),
    ("openapi", "3.0.1", "3.0.2"),
    ("openapi", "3.0.2", "3.0.3"),
    ("openapi", "3.0.3", "3.0.4"),
    ("openapi", "3.0.3", "3.1.0"),
    ("openapi", "3.1.0", "3.1.1"),
)
Documents = Mapping[str, str]


def documents(data: str, revision: str) -> Documents:
    """Return the normalised texts of one revision by path."""
    if data == "openapi":
        file = SHARED_DATA / "openapi-spec-versions/versions" / f"{revision}.md"
        return {"specification.md": normalise(file.read_text(encoding="utf-8"))}
    folder = SHARED_DATA / "18f-handbook" / revision
    return {
        path.relative_to(folder).as_posix(): normalise(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.md"))
    }


_structures: dict[tuple[str, str], Structure] = {}


def structure(path: str, text: str) -> Structure:
    """Return sections and blocks, parsed once: a pipeline has them in its tables."""
    key = (path, sha256_text(text))
    if key not in _structures:
        _structures[key] = parse(path, text, key[1], front_matter_end(text))
    return _structures[key]


def section_ranges(path: str, text: str) -> list[tuple[int, int, int]]:
    """Return the sections as the ladder takes them."""
    return [(each.start_char, each.body_start_char, each.end_char) for each in structure(path, text).sections]


def revision(name: str, texts: Documents) -> Revision:
    """Return a revision with its sections parsed."""
    for path, text in texts.items():
        structure(path, text)
    hashes = {path: sha256_text(text) for path, text in texts.items()}
    return Revision(name, hashes, texts.__getitem__, section_ranges)


def spans_of(texts: Documents, level: str) -> list[AnchoredSpan]:
    """Return all sentences or paragraphs as spans, with the other places of their words."""
    places: list[tuple[str, int, int]] = []
    for path, text in texts.items():
        blocks = structure(path, text).blocks
        if level == "sentence":
            found = [tuple(each) for each in sentences(text, blocks)]
        else:
            found = [(b.start_char, b.end_char) for b in blocks if b.kind in (PARAGRAPH, LIST_ITEM, TABLE)]
        places += [(path, start, end) for start, end in found if end - start >= SHORTEST]
    contents = [texts[path][start:end] for path, start, end in places]
    everywhere = find_everywhere(contents, texts.items())
    return [
        AnchoredSpan(
            f"{level}:{path}:{start}-{end}", 0, True, path, start, end, content,
            tuple(p for p in others if not (p.document_path == path and p.start_char < end and start < p.end_char)),
        )
        for (path, start, end), content, others in zip(places, contents, everywhere, strict=True)
    ]  # fmt: skip


Proposal = tuple[str, int, int] | None
Method = Callable[[AnchoredSpan, Documents, Documents], Proposal]


def by_offset(span: AnchoredSpan, old: Documents, new: Documents) -> Proposal:
    """The same offsets, if the same words stand there."""
    text = new.get(span.document_path, "")
    same = text[span.start_char : span.end_char] == span.content
    return (span.document_path, span.start_char, span.end_char) if same else None


def by_find(span: AnchoredSpan, old: Documents, new: Documents) -> Proposal:
    """The first hit of ``str.find``."""
    at = new.get(span.document_path, "").find(span.content)
    return (span.document_path, at, at + len(span.content)) if at >= 0 else None


_difflib: dict[tuple[int, int], list[tuple[int, int, int]]] = {}


def by_difflib(span: AnchoredSpan, old: Documents, new: Documents) -> Proposal:
    """Offsets mapped through difflib's matching blocks of words (with its default heuristic: without it, hours)."""
    before, after = old[span.document_path], new.get(span.document_path)
    if after is None:
        return None
    key = id(before), id(after)
    if key not in _difflib:
        _difflib[key] = list(_word_runs(before, after))
    inside = [
        (max(a, span.start_char) - a + b, min(a + size, span.end_char) - a + b)
        for a, b, size in _difflib[key]
        if a < span.end_char and span.start_char < a + size
    ]
    aligned = sum(end - start for start, end in inside)
    if aligned < 0.5 * len(span.content):
        return None
    return span.document_path, inside[0][0], inside[-1][1]


def _word_runs(before: str, after: str) -> Iterator[tuple[int, int, int]]:
    words, others = ([m.span() for m in re.finditer(r"\s*\S+", text)] for text in (before, after))
    one, other = [before[slice(*w)] for w in words], [after[slice(*w)] for w in others]
    for a, b, size in SequenceMatcher(None, one, other).get_matching_blocks():
        if size:
            yield words[a][0], others[b][0], words[a + size - 1][1] - words[a][0]


def by_match_main(span: AnchoredSpan, old: Documents, new: Documents) -> Proposal:
    """diff-match-patch's fuzzy match near the old offset."""
    text = new.get(span.document_path)
    if text is None:
        return None
    matcher = diff_match_patch()
    matcher.Match_MaxBits = 0
    matcher.Match_Distance = 100_000
    at = matcher.match_main(text, span.content, span.start_char)
    return (span.document_path, at, at + len(span.content)) if at >= 0 else None


def by_partial_ratio(span: AnchoredSpan, old: Documents, new: Documents) -> Proposal:
    """The window that RapidFuzz finds most alike."""
    text = new.get(span.document_path)
    if text is None:
        return None
    found = fuzz.partial_ratio_alignment(span.content, text, score_cutoff=60)
    if found is None or len(text) < len(span.content):
        return None
    return span.document_path, found.dest_start, found.dest_end


METHODS: dict[str, tuple[Method, int]] = {
    "offset equality": (by_offset, ALL),
    "`str.find`, first hit": (by_find, ALL),
    "difflib, words": (by_difflib, ALL),
    "RapidFuzz partial ratio": (by_partial_ratio, SOME),
    "diff-match-patch `match_main`": (by_match_main, FEW),
}


def is_right(proposal: Proposal, truth: Truth) -> bool:
    """Whether a proposal is the true place: more than half of what either covers is covered by both."""
    if proposal is None or proposal[0] != truth.path:
        return False
    shared = min(proposal[2], truth.end) - max(proposal[1], truth.start)
    return shared > 0.5 * (max(proposal[2], truth.end) - min(proposal[1], truth.start))


class Case(NamedTuple):
    """One span with its truth and what the ladder said."""

    pair: tuple[str, str, str]
    span: AnchoredSpan
    truth: Truth
    event: AnchorEvent

    @property
    def right(self) -> bool:
        """Whether the ladder's place is the true one."""
        return is_right(proposed(self.event), self.truth)


def proposed(event: AnchorEvent) -> Proposal:
    """Return the event's place."""
    if event.new_start_char < 0:
        return None
    return event.new_document_path, event.new_start_char, event.new_end_char


class Measured(NamedTuple):
    """All cases, the CPU seconds they took, and the tallies of the other methods."""

    cases: list[Case]
    seconds: dict[tuple[str, str, str], float]
    others: dict[str, Counter[str]]


def measure(pairs: tuple[tuple[str, str, str], ...] = PAIRS, *, compare: bool = True) -> Measured:
    """Re-anchor all spans of all pairs of revisions."""
    cases: list[Case] = []
    seconds: dict[tuple[str, str, str], float] = {}
    others: dict[str, Counter[str]] = defaultdict(Counter)
    rng = random.Random(SEED)
    for pair in pairs:
        data, before, after = pair
        old, new = documents(data, before), documents(data, after)
        spans = spans_of(old, "sentence") + spans_of(old, "paragraph")
        one, other = revision(before, old), revision(after, new)
        started = time.process_time()
        events = reanchor(spans, one, other)
        seconds[pair] = time.process_time() - started
        print(f"{' '.join(pair)}: {len(spans)} spans, {seconds[pair]:.1f} s", flush=True)
        alignment = Alignment(old, new)
        for span, event in zip(spans, events, strict=True):
            place = proposed(event)
            if place is not None:
                assert new[place[0]][place[1] : place[2]] == event.new_content
            truth = alignment.truth(span.document_path, span.start_char, span.end_char)
            cases.append(Case(pair, span, truth, event))
        if compare:
            of_pair = cases[-len(spans) :]
            for name, (method, size) in METHODS.items():
                chosen = rng.sample(of_pair, min(size, len(of_pair))) if size else of_pair
                tally(others[name], method, chosen, old, new)
    return Measured(cases, seconds, others)


def tally(counts: Counter[str], method: Method, cases: list[Case], old: Documents, new: Documents) -> None:
    """Count what one method does with spans whose true place is known."""
    for case in cases:
        if case.truth.kind == "unknown":
            continue
        started = time.process_time()
        place = method(case.span, old, new)
        counts["microseconds"] += round(1e6 * (time.process_time() - started))
        kind = case.truth.kind
        counts[f"{kind} all"] += 1
        if place is not None:
            counts[f"{kind} right" if is_right(place, case.truth) else f"{kind} wrong"] += 1


def main() -> None:
    """Measure and write the page."""
    if not SHARED_DATA.exists():
        print(f"skipped: real data absent: {SHARED_DATA}")
        return
    measured = measure()
    made = make()
    cost = run(made)
    lines = [
        *intro(measured),
        *rung_table(measured.cases),
        *aims(measured.cases),
        *method_table(measured),
        *pair_table(measured),
        *scale(cost, peak_memory()),
    ]
    (ROOT / "benchmarks/results/reanchoring.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def intro(measured: Measured) -> list[str]:
    """What was measured, on what."""
    return [
        "# Re-anchoring",
        "",
        "`OPENBLAS_NUM_THREADS=1 python -m benchmarks.reanchoring` on 2 cores that had much other work; one process,",
        f"CPU time. {len(measured.cases):,} spans: all sentences and all paragraphs of at least {SHORTEST} characters",
        f"of {len(PAIRS)} pairs of revisions of the 18F handbook and the OpenAPI specification. Truth is an alignment",
        "that shares no code with the ladder (`benchmarks/alignment.py`): *unique* words stand once in both",
        "revisions; *same* and *edited* ones were aligned by git and diff-match-patch; for *unknown* ones (gone, or",
        "out of its sight) it says nothing. A place is right if more than half of what it and the true one cover is",
        "covered by both.",
        "",
    ]


def rung_table(cases: list[Case]) -> list[str]:
    """The ladder, rung by rung."""
    rows = ["| rung | spans | carried | right | wrong | truth unknown | to people | right | wrong | truth unknown |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    for rung in Rung:
        of_rung = [case for case in cases if case.event.rung == rung]
        cells = [f"{len(of_rung):,}"]
        for carries in (True, False):
            side = [case for case in of_rung if case.event.carries == carries]
            known = [case for case in side if case.truth.kind != "unknown"]
            right = sum(case.right for case in known)
            cells += [f"{n:,}" for n in (len(side), right, len(known) - right, len(side) - len(known))]
        rows.append(f"| {rung} | {' | '.join(cells)} |")
    return [*rows, ""]


def aims(cases: list[Case]) -> list[str]:
    """What was aimed at, and what was reached."""
    carried = [case for case in cases if case.event.carries]
    known = [case for case in carried if case.truth.kind != "unknown"]
    wrong = sum(not case.right for case in known)
    unique = [case for case in cases if case.truth.kind == "unique"]
    alive = [case for case in cases if case.truth.kind == "edited"]
    found, places = sum(case.right for case in unique), sum(case.right for case in alive)
    by_itself = sum(case.event.carries for case in unique)
    return [
        "| aim | asked for | reached |",
        "|---|---|---|",
        f"| carried spans that are wrong | under 1 in 1,000 | {wrong} of {len(known):,} with a known truth "
        f"({1000 * wrong / len(known):.2f} in 1,000); {len(carried) - len(known)} more carried with no truth |",
        f"| words that stand once in both revisions: right place | 100 % | {found:,} of {len(unique):,} "
        f"({100 * found / len(unique):.2f} %); {by_itself:,} carried by themselves |",
        f"| edited but alive: right place proposed | 95 % | {places:,} of {len(alive):,} "
        f"({100 * places / len(alive):.1f} %) |",
        "",
    ]


def method_table(measured: Measured) -> list[str]:
    """The ladder next to simpler ways."""
    rows = ["| method | unique: right | wrong | same, not unique: right | wrong | edited: right | wrong | ms a span |",
            "|---|--:|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    ladder: Counter[str] = Counter()
    for case in measured.cases:
        kind = case.truth.kind
        ladder[f"{kind} all"] += 1
        if proposed(case.event) is not None:
            ladder[f"{kind} right" if case.right else f"{kind} wrong"] += 1
    ladder["microseconds"] = round(1e6 * sum(measured.seconds.values()))
    for name, counts in {"**the ladder**": ladder, **measured.others}.items():
        cells = []
        for kind in ("unique", "same", "edited"):
            total = max(1, counts[f"{kind} all"])
            cells += [
                f"{100 * counts[f'{kind} right'] / total:.1f} %",
                f"{100 * counts[f'{kind} wrong'] / total:.1f} %",
            ]
        spans = sum(counts[f"{kind} all"] for kind in ("unique", "same", "edited", "unknown"))
        rows.append(f"| {name} | {' | '.join(cells)} | {counts['microseconds'] / 1000 / max(1, spans):.2f} |")
    note = [
        "",
        f"RapidFuzz was run on {SOME} spans of each pair, `match_main` on {FEW}. What is neither right nor wrong",
        "was not found. The simpler ways say nothing of numbers, negations or the sentence around a span, and none",
        "knows that a place is in doubt; their time is that of the search alone.",
        "",
    ]
    return [*rows, *note]


def pair_table(measured: Measured) -> list[str]:
    """How much of a real set carries from one revision to the next."""
    rows = ["| revisions | spans | carried | of these marked for a look | to people | lost | CPU s |",
            "|---|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    for pair in PAIRS:
        events = [case.event for case in measured.cases if case.pair == pair]
        carried = [event for event in events if event.carries]
        lost = sum(event.rung == Rung.LOST for event in events)
        doubtful = len(events) - len(carried) - lost
        marked = sum(event.section_changed for event in carried)
        rows.append(
            f"| {pair[0]} {pair[1]} to {pair[2]} | {len(events):,} | {100 * len(carried) / len(events):.1f} % "
            f"| {100 * marked / max(1, len(carried)):.1f} % | {100 * doubtful / len(events):.1f} % "
            f"| {100 * lost / len(events):.1f} % | {measured.seconds[pair]:.1f} |"
        )
    return [*rows, ""]


def scale(cost: Cost, memory: str) -> list[str]:
    """What 100,000 spans cost."""
    rungs = Counter(event.rung for event in cost.events)
    counts = ", ".join(f"{count:,} {rung}" for rung, count in rungs.most_common())
    return [
        f"## {len(cost.events):,} spans over {cost.documents:,} documents",
        "",
        f"{cost.megabytes:.0f} MB, 10 % of the documents changed: **{cost.cpu_seconds:.1f} s CPU** "
        f"({cost.wall_seconds:.1f} s wall; asked for: 2 s CPU).",
        f"{counts}. Peak memory {memory}.",
        f"At the time, hashing 1 MB took {yardstick():.0f} ms CPU; it takes 18 ms where the machine is quiet.",
    ]


def yardstick() -> float:
    """CPU milliseconds of a fixed piece of work, to compare figures of busy and of quiet hours."""
    data = bytes(range(256)) * 4096
    started = time.process_time()
    for _ in range(10):
        _hash(data)
    return 100 * (time.process_time() - started)


def _hash(data: bytes) -> None:
    """Hash the 32 bytes at each position; what the join on seeds once did, kept so that old figures compare."""
    count = len(data) - 7
    words = np.empty(count, dtype=np.uint64)
    for shift in range(8):
        aligned = np.frombuffer(data, dtype="<u8", offset=shift, count=(len(data) - shift) // 8)
        words[shift::8] = aligned[: len(words[shift::8])]
    for width in (8, 16):
        words = words[:-width] * seeds._MIX ^ words[width:] * seeds._ODD
        words ^= words >> np.uint64(29)
    mixed = words * seeds._ODD
    mixed = (mixed ^ mixed >> np.uint64(32)) * seeds._MIX


if __name__ == "__main__":
    main()
