"""What decisions let into the no_answer set, its ids and split, and that the two sets stay apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragds_pipeline.config import GoldenSettings
from ragds_pipeline.filters.funnel import faults as faults_between
from ragds_pipeline.golden.items import prepare
from ragds_pipeline.golden.no_answer import AcceptedNoAnswer, accept_no_answer, no_answer_steps, prepare_no_answer
from ragds_pipeline.golden.registry import Registered, Registry, golden_id, next_number
from ragds_pipeline.golden.snapshot import RegistryMoved, register
from ragds_pipeline.golden.verify import sets_apart, split_leak_free
from ragds_pipeline.records import AskedRow, Decision, Drop, GivenId, GoldenItem, Verdict
from ragds_pipeline.records_no_answer import KbAnswer, NearPassage, NoAnswerCandidate, no_answer_id, no_answer_root
from ragds_pipeline.review.no_answer import no_answer_row, resolve_no_answer
from ragds_pipeline_tests.golden.test_snapshot import candidates as main_candidates
from ragds_pipeline_tests.golden.test_snapshot import decision as main_decision

REFUSAL = "The documents do not say."


def candidate(question: str, **fields: object) -> NoAnswerCandidate:
    found = NoAnswerCandidate(
        id=no_answer_id("a.md", question, REFUSAL), draft_id=f"d-{question}", document_path="a.md", chunk_id="a#1",
        question=question, answer=REFUSAL, language="en", source_version="v1",
        nearest=(NearPassage("a.md", "a#1", "Something near.", 1.5),), missing="who", partly=(), confidential=(),
        documents_asked=3, documents_askable=4, documents_confidential=1, origin="near_miss", parent_id="",
        root_id=no_answer_root("a.md", question), source_id="", round=0, request_key="k", model="m", prompt_version="p",
    )  # fmt: skip
    return replace(found, **fields)  # type: ignore[arg-type]


def decide(of: NoAnswerCandidate, keep: str = "keep", note: str = "", **fix: str) -> Decision:
    evidence = list(no_answer_row(of).evidence)
    corrected = json.dumps({"question": of.question, "answer": of.answer, "evidence": evidence, **fix})
    seen = json.dumps({"evidence": evidence})
    return Decision(of.id, keep, note, "Rei", "2026-01-01", "s.csv:2", seen, corrected if keep == "fix" else "")


ONE, TWO, THREE = (candidate(f"Who signs form {name} in Cork?") for name in ("red", "blue", "green"))


def accept(
    found: Sequence[NoAnswerCandidate],
    decisions: Sequence[Decision],
    corrected: Sequence[NoAnswerCandidate] = (),
    drops: Sequence[Drop] = (),
    main: Sequence[str] = (),
    secret: Sequence[str] = (),
) -> AcceptedNoAnswer:
    said = {each.candidate_id: each for each in decisions}
    done = accept_no_answer(found, resolve_no_answer(found, said, corrected, drops), said, main, 80, secret)
    assert not done.step.faults() and len(found) == len(done.items) + len(done.drops)
    return done


def reasons(done: AcceptedNoAnswer) -> list[str]:
    return [drop.reason for drop in done.drops]


def test_kept_dropped_and_undecided() -> None:
    done = accept([ONE, TWO, THREE], [decide(ONE), decide(TWO, "drop", "answered in pay.md")])
    assert [c.id for c, _ in done.items] == [ONE.id] and reasons(done) == ["dropped_by_reviewer", "undecided"]
    assert "answered in pay.md" in done.drops[0].detail


def test_another_refusal_is_taken_as_edited_and_keeps_the_root() -> None:
    ((found, _),) = accept([ONE], [decide(ONE, "fix", answer="Ask HR.")]).items
    assert found.answer == "Ask HR." and found.id != ONE.id and found.root_id == ONE.root_id


def test_another_question_counts_only_when_the_kb_was_asked() -> None:
    fix = decide(ONE, "fix", question="Who signs form black in Cork?")
    assert reasons(accept([ONE], [fix])) == ["correction_unchecked"]
    checked = candidate("Who signs form black in Cork?", parent_id=ONE.id, root_id=ONE.root_id, origin="corrected")
    ((found, decision),) = accept([ONE], [fix], [checked]).items
    assert found == checked and decision == fix
    drop = Drop("whole_kb", "answered_in_kb", "pay.md", "a.md", "c-x", checked.question, "no_answer", "en", 0, "")
    done = accept([ONE], [fix], [], [drop])
    assert reasons(done) == ["correction_fails"] and "pay.md" in done.drops[0].detail
    other = decide(ONE, "fix", question="Who signs form white in Cork?")
    assert reasons(accept([ONE], [other], [checked], [drop])) == ["correction_unchecked"]


def test_edited_evidence_is_refused_also_when_other_passages_are_near_by_now() -> None:
    fix = decide(ONE, "fix", answer="Ask HR.")
    moved = replace(ONE, nearest=(NearPassage("b.md", "b#1", "Something nearer.", 2.0),))
    assert accept([moved], [fix]).items, "what was seen counts"
    edited = decide(ONE, "fix")
    content = {**json.loads(edited.corrected), "evidence": ["Form red is signed by the desk."]}
    done = accept([ONE], [replace(edited, corrected=json.dumps(content))])
    assert reasons(done) == ["correction_fails"] and "evidence_edited" in done.drops[0].detail


def test_what_the_main_set_asks_and_what_is_kept_twice_is_left_out() -> None:
    twin = candidate(ONE.question.replace("Cork?", "Cork ?"), document_path="b.md")
    done = accept([ONE, TWO, twin], [decide(ONE), decide(TWO), decide(twin)], main=["Who signs the form blue in Cork?"])
    assert [c.id for c, _ in done.items] == [ONE.id]
    assert sorted(reasons(done)) == ["asked_in_main_set", "near_duplicate_question"]


def test_what_has_become_confidential_is_left_out() -> None:
    assert reasons(accept([ONE], [decide(ONE)], secret=["a.md"])) == ["document_confidential"]
    part = KbAnswer("d", "b.md", 0, 9, 1, 0, "partly", "r", "x", (), "m", "p", "0", False, "k")
    flagged = replace(TWO, partly=(part,))
    assert reasons(accept([flagged], [decide(flagged)], secret=["b.md"])) == ["document_confidential"]


def items(
    found: Sequence[NoAnswerCandidate], register: Sequence[Registered] = ()
) -> tuple[list[GoldenItem], list[GivenId]]:
    ready = prepare_no_answer([(c, decide(c)) for c in found], register, "v1", GoldenSettings(), [], 80)
    assert not ready.step.faults()
    return ready.items, ready.given


def registered(given: Sequence[GivenId]) -> list[Registered]:
    return [Registered(g.id, g.candidate_id, g.split, g.first_frozen_in, g.root_id, g.evidence_keys) for g in given]


def test_an_item_is_a_refusal_without_passages_and_says_how_much_was_asked() -> None:
    verdicts = [Verdict(ONE.id, "ambiguity", True, "ok", "clear"), Verdict(ONE.id, "whole_kb", True, "ok", "x")]
    (item,) = prepare_no_answer([(ONE, decide(ONE))], [], "v1", GoldenSettings(), verdicts, 80).items
    assert (item.id, item.answer, item.passages, item.evidence, item.chunk_id) == ("n-0001", REFUSAL, (), "", "")
    assert item.provenance.verdicts == (
        "code:ok",
        "ambiguity:ok",
        "whole_kb:ok (3 of 4 documents asked, 1 confidential not)",
    )


def test_both_sets_count_on_their_own_in_one_register() -> None:
    first, given = items([ONE, TWO])
    main = prepare([(c, main_decision(c)) for c in main_candidates(1, 2)], registered(given), "v1", GoldenSettings())
    assert [i.id for i in first] == ["n-0001", "n-0002"] and [i.id for i in main.items] == ["g-0001", "g-0002"]
    register = [*registered(given), *registered(main.given)]
    more, _ = items([ONE, TWO, THREE], register)
    assert sorted(i.id for i in more) == ["n-0001", "n-0002", "n-0003"]
    assert next_number(register) == 3 and golden_id(12345, "n-") == "n-12345"
    assert sets_apart(main.items, more, 80) == []


def test_one_set_may_be_prepared_anew_without_the_other(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry.jsonl")
    main = prepare([(c, main_decision(c)) for c in main_candidates(1)], [], "v1", GoldenSettings()).given
    register(registry, [*main, *items([ONE])[1]])
    later = items([ONE, TWO], registry.entries())[1]
    register(registry, [*main, *later])
    register(registry, [*main, *later])
    assert [entry.id for entry in registry.entries()] == ["g-0001", "n-0001", "n-0002"]
    with pytest.raises(RegistryMoved):
        register(registry, [*main, *items([THREE])[1]])


def test_neither_a_finding_nor_a_correction_gives_another_id_or_side() -> None:
    (item,), given = items([ONE])
    flagged = replace(ONE, id="c-flagged", confidential=("s.md",))
    corrected = candidate("Who signs form black?", parent_id=ONE.id, root_id=ONE.root_id)
    for other in (flagged, corrected):
        (again,), _ = items([other], registered(given))
        assert (again.id, again.split) == (item.id, item.split)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=20, unique=True), st.integers(0, 3))
def test_like_questions_are_on_one_side_and_shares_hold(numbers: list[int], seed: int) -> None:
    found = [candidate(f"Who signs form {n} in Cork{' today' if n % 2 else ''}?") for n in numbers]
    ready = prepare_no_answer(
        [(c, decide(c)) for c in found], [], "v1", GoldenSettings(split_seed=seed, held_out_share=0.3), [], 80
    )
    assert not split_leak_free(ready.items, 80) and len(ready.items) == len(found)
    assert sum(i.split == "held_out" for i in ready.items) <= round(0.3 * len(found))


def test_the_check_finds_what_is_in_both_sets() -> None:
    main = prepare([(c, main_decision(c)) for c in main_candidates(1, 2)], [], "v1", GoldenSettings()).items
    own, _ = items([ONE, TWO])
    assert sets_apart(main, own, 80) == []
    faults = [
        sets_apart([*main, own[0]], own, 80),
        sets_apart(main, [*own, main[0]], 80),
        sets_apart(main, [replace(own[0], question=main[0].question)], 80),
        sets_apart(main, [replace(own[0], answer=" ")], 80),
        sets_apart(main, [replace(own[0], evidence="x")], 80),
        sets_apart([replace(main[0], type="no_answer")], own, 80),
        sets_apart(main, [replace(own[0], provenance=main[0].provenance)], 80),
    ]
    assert all(faults)


def test_the_funnel_adds_up_and_notices_what_is_lost() -> None:
    asked = [AskedRow(0, "a.md", 0, 9, 3, 2, 1, "ok", "m", "0", False, "k")]
    drops = [
        Drop(stage, "r", "d", "a.md", "", "", "no_answer", "en", 0, "") for stage in ("generate", "code", "whole_kb")
    ]
    verdicts = [Verdict("c-1", "whole_kb", True, "ok", "x"), Verdict("c-2", "whole_kb", False, "answered_in_kb", "x")]
    steps = no_answer_steps(asked, 2, 1, verdicts, drops, judged=False)
    assert [(s.stage, s.came_in, s.kept, s.dropped) for s in steps] == [
        ("generate", 4, 3, 1), ("code", 3, 2, 1), ("whole_kb", 2, 1, 1),
    ]  # fmt: skip
    assert not [fault for each in steps for fault in each.faults()]
    again = [*verdicts, Verdict("c-3", "whole_kb", True, "ok", "x")]
    steps = no_answer_steps(asked, 2, 1, again, drops, judged=False, asked_again=1)
    assert (steps[1].came_in, steps[1].joined) == (4, 1) and not faults_between(steps)
    lost = no_answer_steps(asked, 2, 1, verdicts[:1], drops, judged=False)
    assert [fault for each in lost for fault in each.faults()]
