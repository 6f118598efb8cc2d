"""What must hold before anything is frozen. Each check returns what is wrong, in words; an empty list is a pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ragds_pipeline.filters.duplicates import near_duplicates
from ragds_pipeline.filters.funnel import faults
from ragds_pipeline.golden.registry import Registered
from ragds_pipeline.golden.split import overlapping
from ragds_pipeline.records import FunnelStep, GoldenItem, MissingRow, PlanRow, Span, SpanMismatch


def spans_resolve(items: Sequence[GoldenItem], texts: Mapping[str, str]) -> list[str]:
    """Every span holds its content, at its place, in the normalised text; every alternative holds the same text."""
    found = []
    for item in items:
        if not item.passages:
            found.append(f"{item.id}: no evidence")
        for passage in item.passages:
            text = texts.get(passage.document_path)
            if text is None:
                found.append(f"{item.id}: {passage.document_path} is not in the KB")
                continue
            try:
                Span(passage.document_path, passage.start_char, passage.end_char, passage.content).verify(text)
            except SpanMismatch as error:
                found.append(f"{item.id}: {error}")
            for place in passage.alternatives:
                there = texts.get(place.document_path, "")[place.start_char : place.end_char]
                if "".join(there.split()) != "".join(passage.content.split()):
                    found.append(f"{item.id}: the alternative in {place.document_path} at {place.start_char} differs")
    return found


def ids_stable(items: Sequence[GoldenItem], registered: Mapping[str, Registered]) -> list[str]:
    """Ids are unique, and an item that was frozen before has the id and the side of the split that it had."""
    found = [f"{id_} is given to {n} items" for id_, n in Counter(item.id for item in items).items() if n > 1]
    for item in items:
        entry = registered.get(item.provenance.candidate_id)
        if entry is not None and (entry.id, entry.split) != (item.id, item.split):
            found.append(f"{item.id} ({item.split}) was frozen before as {entry.id} ({entry.split})")
    return found


def funnel_reconciles(steps: Sequence[FunnelStep], items: Sequence[GoldenItem]) -> list[str]:
    """Every stage adds up, hands on what it kept, and the last one kept what is in the set."""
    found = faults(steps)
    if steps and steps[-1].kept != len(items):
        found.append(f"{steps[-1].stage} kept {steps[-1].kept}, but there are {len(items)} items")
    return found


def split_leak_free(items: Sequence[GoldenItem]) -> list[str]:
    """No evidence, and no question in nearly the same words, is on both sides of the split."""
    places = [
        [(p.document_path, p.start_char, p.end_char) for p in item.passages]
        + [(a.document_path, a.start_char, a.end_char) for p in item.passages for a in p.alternatives]
        for item in items
    ]
    pairs = overlapping(places)
    found = [f"{items[a].id} and {items[b].id} share evidence" for a, b in pairs if items[a].split != items[b].split]
    for pair in near_duplicates([item.question for item in items]):
        one, other = items[pair.first], items[pair.second]
        if one.split != other.split:
            found.append(f"{one.id} and {other.id} ask nearly the same")
    return found


def requested_is_delivered(
    plan: Sequence[PlanRow], candidates: Sequence[tuple[str, str, str]], missing: Sequence[MissingRow]
) -> list[str]:
    """For each document, difficulty and type: planned = candidates after the filters + reported as missing.

    ``candidates`` are (document, difficulty, type).
    """
    there = Counter(candidates)
    absent = {(row.document_path, row.difficulty, row.type): row.missing for row in missing}
    planned = {(row.document_path, row.difficulty, row.type): row.planned for row in plan}
    found = []
    for kind in sorted(planned.keys() | there.keys() | absent.keys()):
        wanted, have, short = planned.get(kind, 0), there[kind], absent.get(kind, 0)
        if wanted != have + short:
            found.append(f"{' / '.join(kind)}: {wanted} planned, but {have} delivered + {short} missing")
    return found
