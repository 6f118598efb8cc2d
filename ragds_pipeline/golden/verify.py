"""What must hold before anything is frozen. Each check returns what is wrong, in words; an empty list is a pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ragds_pipeline.filters.funnel import faults
from ragds_pipeline.golden.registry import MAIN_PREFIX, NO_ANSWER_PREFIX, Known
from ragds_pipeline.golden.split import leaks, near_pairs
from ragds_pipeline.records import FunnelStep, GivenId, GoldenItem, MissingRow, PlanRow, Span, SpanMismatch
from ragds_pipeline.records_no_answer import NO_ANSWER


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


def ids_stable(items: Sequence[GoldenItem], given: Sequence[GivenId], known: Known) -> list[str]:
    """Ids are unique, and an item that was frozen before, corrected or not, has the id and the side that it had."""
    found = [f"{id_} is given to {n} items" for id_, n in Counter(item.id for item in items).items() if n > 1]
    very, roots, used = known.by_candidate(), known.by_root(), {item.id for item in items}
    sides = {entry.id: entry.split for entry in known.entries}
    for item in items:
        entry = very.get(item.provenance.candidate_id)
        if entry is not None and (entry.id, entry.split) != (item.id, item.split):
            found.append(f"{item.id} ({item.split}) was frozen before as {entry.id} ({entry.split})")
        elif sides.get(item.id, item.split) != item.split:
            found.append(f"{item.id} ({item.split}) was frozen before as {sides[item.id]}")
    for new in given:
        entry = roots.get(new.root_id)
        if entry is not None and entry.id != new.id and entry.id not in used:
            found.append(f"{new.id} is given to a correction of what was frozen before as {entry.id}")
    return found


def nothing_confidential(items: Sequence[GoldenItem], confidential: Collection[str]) -> list[str]:
    """No evidence, and no other place of it, is in a document that must not be handed on."""
    return [
        f"{item.id}: {path} is confidential"
        for item in items
        for path in sorted(documents_of(item) & set(confidential))
    ]


def documents_of(item: GoldenItem) -> set[str]:
    """Return the paths of all documents whose text a snapshot with ``item`` holds."""
    return {p.document_path for p in item.passages} | {
        place.document_path for passage in item.passages for place in passage.alternatives
    }


def funnel_reconciles(steps: Sequence[FunnelStep], items: Sequence[GoldenItem]) -> list[str]:
    """Every stage adds up, hands on what it kept, and the last one kept what is in the set."""
    found = faults(steps)
    if steps and steps[-1].kept != len(items):
        found.append(f"{steps[-1].stage} kept {steps[-1].kept}, but there are {len(items)} items")
    return found


def split_leak_free(items: Sequence[GoldenItem], duplicate_score: float) -> list[str]:
    """No evidence, and no question at least as alike as ``duplicate_score``, is on both sides of the split."""
    places = [
        [(p.document_path, p.start_char, p.end_char) for p in item.passages]
        + [(a.document_path, a.start_char, a.end_char) for p in item.passages for a in p.alternatives]
        for item in items
    ]
    found = leaks([item.split for item in items], places, [item.question for item in items], duplicate_score)
    return [
        *(f"{items[one].id} and {items[other].id} share evidence" for one, other in found.by_evidence),
        *(f"{items[one].id} and {items[other].id} ask nearly the same" for one, other in found.by_question),
    ]


def sets_apart(items: Sequence[GoldenItem], no_answer: Sequence[GoldenItem], duplicate_score: float) -> list[str]:
    """No question stands in both sets; those with an answer have evidence, those without have a refusal and none."""
    found = [f"{item.id}: not an id of the main set" for item in items if not item.id.startswith(MAIN_PREFIX)]
    found += [f"{item.id}: no evidence, or of type {item.type}" for item in items if _without_answer(item)]
    for item in no_answer:
        if not item.id.startswith(NO_ANSWER_PREFIX):
            found.append(f"{item.id}: not an id of the no_answer set")
        if item.passages or item.evidence or item.chunk_id or item.type != NO_ANSWER:
            found.append(f"{item.id}: has evidence, or is of type {item.type}")
        if not item.answer.strip():
            found.append(f"{item.id}: no refusal")
    mine = {item.provenance.candidate_id: item.id for item in items}
    found += [
        f"{item.id} is {mine[item.provenance.candidate_id]} of the main set"
        for item in no_answer
        if item.provenance.candidate_id in mine
    ]
    both, size = [*items, *no_answer], len(items)
    for one, other in near_pairs([item.question for item in both], duplicate_score):
        if one < size <= other:
            found.append(f"{both[one].id} and {both[other].id} ask nearly the same")
    return found


def _without_answer(item: GoldenItem) -> bool:
    return not item.passages or item.type == NO_ANSWER


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
