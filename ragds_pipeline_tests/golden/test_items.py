"""Ids and sides over several freezings: corrections back and forth, items that are gone, questions that are alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ragds_pipeline.config import GoldenSettings
from ragds_pipeline.golden import verify
from ragds_pipeline.golden.items import Prepared, prepare
from ragds_pipeline.golden.registry import Registry
from ragds_pipeline.golden.snapshot import register
from ragds_pipeline.records import Candidate, Place
from ragds_pipeline_tests.golden.test_snapshot import candidates, decision

SETTINGS = GoldenSettings(held_out_share=0.5)


def release(registry: Registry, *accepted: Candidate, score: float = 80.0) -> Prepared:
    """Prepare ``accepted``, check what is checked before freezing, and register the ids."""
    ready = prepare([(c, decision(c)) for c in accepted], registry.entries(), "v", SETTINGS, (), score)
    assert verify.split_leak_free(ready.items, score) == []
    assert verify.ids_stable(ready.items, ready.given, registry.known()) == []
    register(registry, ready.given)
    return ready


def sides(ready: Prepared) -> dict[str, str]:
    return {item.provenance.candidate_id: item.split for item in ready.items}


def corrected(candidate: Candidate, answer: str) -> Candidate:
    return replace(candidate, id=f"c-{answer}", answer=answer, parent_id=candidate.id, origin="corrected")


def test_an_item_has_one_id_however_often_its_correction_changes(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r.jsonl")
    original, *others = candidates(1, 2, 3)
    forms = [corrected(original, "one"), corrected(original, "two"), original, corrected(original, "one"), original]
    ids = set()
    for form in forms:
        ready = release(registry, form, *others)
        ids |= {(item.id, item.split) for item in ready.items if item.provenance.candidate_id == form.id}
        assert len({item.id for item in ready.items}) == 3
    assert len(ids) == 1 and len(registry.entries()) == 5, "three forms of one item, and two more items"


def test_one_id_is_never_given_to_two_items(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r.jsonl")
    (original,) = candidates(1)
    other = corrected(original, "one")
    release(registry, other)
    ready = release(registry, original, replace(other, parent_id="", evidence=candidates(2)[0].evidence))
    assert sorted(item.id for item in ready.items) == ["g-0001", "g-0002"]
    assert {i.provenance.candidate_id: i.id for i in ready.items}[other.id] == "g-0001"


def test_a_register_of_an_earlier_version_is_read_and_completed(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r.jsonl")
    (original,) = candidates(1)
    old = {"id": "g-0007", "candidate_id": original.id, "split": "held_out", "first_frozen_in": "v0"}
    registry.path.write_text(json.dumps(old) + "\n", encoding="utf-8")
    ready = release(registry, original)
    assert [(i.id, i.split, i.provenance.first_frozen_in) for i in ready.items] == [("g-0007", "held_out", "v0")]
    assert registry.entries()[-1].evidence_keys and not release(registry, original).given


def test_the_check_finds_a_new_id_for_what_was_frozen_before(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r.jsonl")
    (original,) = candidates(1)
    release(registry, original)
    ready = prepare([(corrected(original, "one"), decision(original))], [], "v", SETTINGS)
    other = [replace(given, id="g-0002") for given in ready.given]
    items = [replace(item, id="g-0002") for item in ready.items]
    assert verify.ids_stable(items, other, registry.known())
    assert verify.ids_stable([replace(ready.items[0], split="x")], [], registry.known())


def test_questions_alike_by_the_filters_own_measure_stand_on_one_side(tmp_path: Path) -> None:
    first, *rest = candidates(*range(1, 9))
    found = []
    for at, candidate in enumerate([first, *rest]):
        words = "does it take until a claim is paid out"
        found.append(replace(candidate, question=f"How long {words}{' really' if at % 2 else ''} {'ABCD'[at // 2]}?"))
    for name, score in (("low", 70.0), ("high", 97.0)):
        registry = Registry(tmp_path / name)
        ready = release(registry, *found, score=score)
        assert len(ready.items) == 8 and not ready.drops


def test_a_correction_that_takes_in_evidence_of_the_other_side_is_dropped_with_a_reason(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r.jsonl")
    found = candidates(1, 2, 3, 4)
    side = sides(release(registry, *found))
    one = next(c for c in found if side[c.id] == "tuning")
    other = next(c for c in found if side[c.id] == "held_out")
    wider = replace(corrected(one, "both"), evidence=(*one.evidence, *other.evidence))
    for order in ([wider, *found], [*found, wider]):
        ready = release(registry, *(c for c in order if c.id != one.id))
        assert [(drop.reason, drop.item_id) for drop in ready.drops] == [("split_conflict", wider.id)]
        assert other.id in ready.drops[0].detail and len(ready.items) == 3


def test_frozen_items_that_a_revision_brings_together_do_not_block_for_ever(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r.jsonl")
    found = candidates(1, 2, 3, 4)
    side = sides(release(registry, *found))
    one = next(c for c in found if side[c.id] == "tuning")
    other = next(c for c in found if side[c.id] == "held_out").evidence[0]
    also = Place(other.document_path, other.start_char, other.end_char)
    moved = replace(one, evidence=(replace(one.evidence[0], alternatives=(also,)),))
    ready = release(registry, *(moved if c.id == one.id else c for c in found))
    assert len(ready.items) == 3 and [drop.reason for drop in ready.drops] == ["split_conflict"]


def test_a_new_question_on_the_sentence_of_a_removed_item_takes_its_side(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r.jsonl")
    side = sides(release(registry, *candidates(*range(1, 9))))
    for old in candidates(*range(1, 9)):
        shifted = tuple(replace(e, start_char=e.start_char + 1000, end_char=e.end_char + 1000) for e in old.evidence)
        new = replace(old, id=f"c-new-{old.id}", question=f"Something else on {old.question}", evidence=shifted)
        assert sides(release(registry, new)) == {new.id: side[old.id]}


def test_a_new_question_on_one_sentence_of_a_longer_span_takes_its_side(tmp_path: Path) -> None:
    (old,) = candidates(1)
    long = "The notice period is three months for all staff. It begins on the first day of the month."
    short = "It begins on the first  day of the month."
    span = old.evidence[0]
    whole = replace(old, evidence=(replace(span, content=long, end_char=span.start_char + len(long)),))
    part = replace(old, id="c-part", evidence=(replace(span, content=short, end_char=span.start_char + len(short)),))
    for share, side in ((0.0, "tuning"), (0.99, "held_out")):
        registry = Registry(tmp_path / side)
        first = prepare([(whole, decision(old))], [], "v", GoldenSettings(held_out_share=share))
        register(registry, first.given)
        other = GoldenSettings(held_out_share=0.99 - share)
        again = prepare([(part, decision(old))], registry.entries(), "v", other)
        assert first.items[0].split == side and sides(again) == {"c-part": side}
