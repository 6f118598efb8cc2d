"""What is let into the set: by the same judgement as at import, and nothing of a document that is confidential now."""

from __future__ import annotations

from dataclasses import replace

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.golden import verify
from ragds_pipeline.golden.accept import Accepted, accept
from ragds_pipeline.records import Candidate, Decision, Place, canonical_json
from ragds_pipeline_tests.documents import outline
from ragds_pipeline_tests.golden.test_snapshot import TEXT, candidates, decision, items


def accepted(found: list[Candidate], *decisions: Decision, confidential: tuple[str, ...] = ()) -> Accepted:
    by_id = {each.candidate_id: each for each in decisions}
    outlines = {"rules.md": outline(TEXT)}
    return accept(found, by_id, outlines, lambda: [("rules.md", TEXT)], FilterSettings(), confidential)


def fix(candidate: Candidate, question: str) -> Decision:
    content = {"question": question, "answer": "x", "evidence": [e.content for e in candidate.evidence]}
    return replace(decision(candidate), keep="fix", corrected=canonical_json(content))


def test_what_rests_on_a_document_that_is_confidential_now_is_dropped_with_a_reason() -> None:
    kept, fixed = candidates(1, 2)
    decisions = decision(kept), fix(fixed, "How long may team two rest?")
    assert len(accepted([kept, fixed], *decisions).items) == 2
    result = accepted([kept, fixed], *decisions, confidential=("rules.md",))
    assert not result.items and [drop.reason for drop in result.drops] == ["document_confidential"] * 2
    assert not result.step.faults()


def test_no_item_names_a_place_in_a_document_that_is_confidential_now() -> None:
    (found,) = candidates(1)
    places = (Place("secret.md", 0, 9), Place("open.md", 0, 9))
    found = replace(found, evidence=(replace(found.evidence[0], alternatives=places),))
    ((item, _),) = accepted([found], decision(found), confidential=("secret.md",)).items
    assert item.evidence[0].alternatives == places[1:]


def test_the_check_finds_confidential_documents() -> None:
    (item,) = items(1)
    assert verify.nothing_confidential([item], ["other.md"]) == []
    assert verify.nothing_confidential([item], ["rules.md"]) == ["g-0001: rules.md is confidential"]
    elsewhere = replace(item, passages=(replace(item.passages[0], alternatives=(Place("s.md", 0, 9),)),))
    assert verify.nothing_confidential([elsewhere], ["s.md"])


def test_of_two_corrections_that_are_alike_the_one_decided_first_stands() -> None:
    one, other, third = candidates(1, 2, 3)
    alike = "How long may a team rest in the summer?", "How long may a team rest in summer?"
    for first, second in ((one, other), (other, one)):
        result = accepted([one, other, third], fix(first, alike[0]), fix(second, alike[1]))
        assert [item.parent_id for item, _ in result.items] == [first.id]
        assert {drop.reason for drop in result.drops} == {"correction_fails", "undecided"}
        assert "on the review sheet again" in next(d.detail for d in result.drops if d.reason == "correction_fails")
