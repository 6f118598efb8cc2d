"""Which questions without an answer a revision lets be, which it has asked again, and what that comes to in words."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.filters.no_answer_filter import draft_of, drop_of
from ragds_pipeline.filters.retrieval import PassageText
from ragds_pipeline.golden.changelog import faults
from ragds_pipeline.golden.no_answer_changelog import asked_again_drops, frozen_first, no_answer_changelog
from ragds_pipeline.golden.no_answer_report import no_answer_section
from ragds_pipeline.golden.no_answer_revalidate import (
    HeldQuestion,
    KbNow,
    PassageNow,
    RevalidatedQuestions,
    held_questions,
    settle_questions,
)
from ragds_pipeline.golden.registry import Registered
from ragds_pipeline.records import DocumentChange, Drop, GoldenItem, Provenance, canonical_json
from ragds_pipeline.records_no_answer import (
    KbAnswer,
    NearPassage,
    NoAnswerCandidate,
    no_answer_id,
    no_answer_root,
    planned_for,
)
from ragds_pipeline.review.standing import standing
from ragds_pipeline.storage.schemas import as_json
from ragds_pipeline_tests.golden.test_no_answer import REFUSAL, candidate

PARKING = "Who signs for parking cards?"
LOCKERS = "How many lockers has Cork?"
RULES = [("rules.md", f"Rule {n} about leave and pay.") for n in range(30)]


def kb(
    texts: Sequence[tuple[str, str]],
    fresh: Collection[int] = (),
    status: dict[str, str] | None = None,
    secret: Collection[str] = (),
    secret_before: Collection[str] = (),
) -> KbNow:
    """Return a KB with a passage for each of ``texts``; those at ``fresh`` are new or changed."""
    passages = [PassageText(f"p#{n}", path, text) for n, (path, text) in enumerate(texts)]
    by_path: dict[str, list[int]] = {path: [] for path, _ in texts}
    for n in fresh:
        by_path[texts[n][0]].append(n)
    said = {path: "changed" if starts else "unchanged" for path, starts in by_path.items()} | (status or {})
    changes = [
        DocumentChange(path, word, "", tuple(by_path.get(path, ())), 100 * len(by_path.get(path, ())), "v1")
        for path, word in said.items()
    ]

    def shown(paths: Collection[str] | None) -> Iterator[PassageText]:
        return (p for p in passages if paths is None or p.document_path in paths)

    places = [PassageNow(p.id, p.document_path, n) for n, p in enumerate(passages)]
    return KbNow(changes, frozenset(secret), frozenset(secret_before), lambda: places, shown)


def frozen(of: NoAnswerCandidate, id_: str = "n-0001", **fields: Any) -> GoldenItem:
    provenance = Provenance(of.id, ("m",), ("p",), ("whole_kb:ok (4 of 4)",), "keep by Rei, s.csv:2", "v1")
    return GoldenItem(
        id_, of.question, of.answer, "no_answer", "", "", "en", "tuning", "v1", (), "", "", provenance=provenance
    )


def held(*candidates: NoAnswerCandidate) -> list[HeldQuestion]:
    return [HeldQuestion(f"n-{n:04d}", c, frozen(c, f"n-{n:04d}")) for n, c in enumerate(candidates, 1)]


def settle(items: Sequence[HeldQuestion], now: KbNow, dropped: Collection[str] = ()) -> RevalidatedQuestions:
    done = settle_questions(items, now, dropped, "v2", "v1/snapshot-0001")
    assert len(items) == len(done.carried) + len(done.to_ask) == len(done.items)
    return done


def test_only_what_new_text_comes_near_is_asked_again() -> None:
    parking, lockers = candidate(PARKING), candidate(LOCKERS)
    texts = [*RULES, ("desk.md", "Parking cards are signed for by the desk.")]
    done = settle(held(parking, lockers), kb(texts, fresh=[30]))
    assert [d.question for d in done.to_ask] == [PARKING] and done.to_ask[0].refusal == REFUSAL
    assert done.to_ask[0].root_id == parking.root_id and done.to_ask[0].document_path == "a.md"
    assert [(c.id, c.source_version) for c in done.carried] == [(lockers.id, "v2")]
    assert [(i.id, i.outcome) for i in done.items] == [("n-0001", "asked_again"), ("n-0002", "carried")]
    assert "desk.md" in done.items[0].why
    assert standing(done.items).keys() == {parking.id, lockers.id}, "both decisions go on applying"


def test_an_unchanged_kb_is_not_even_read() -> None:
    def never(*_: object) -> Any:
        raise AssertionError("read")

    plain = candidate(PARKING, nearest=())
    now = replace(kb(RULES), passages=never)
    assert [c.id for c in settle(held(plain), now).carried] == [plain.id]
    assert settle([], replace(now, places=never)).items == []


def test_the_passages_shown_are_those_of_now_and_none_of_a_confidential_document() -> None:
    near = (
        NearPassage("rules.md", "rules.md#9", RULES[3][1], 2.0),
        NearPassage("gone.md", "gone.md#0", "It went.", 1.5),
        NearPassage("secret.md", "secret.md#0", "Nobody may see this.", 1.0),
    )
    texts = [*RULES, ("secret.md", "Nobody may see this.")]
    now = kb(texts, status={"gone.md": "removed"}, secret=["secret.md"])
    (carried,) = settle(held(candidate(LOCKERS, nearest=near)), now).carried
    assert [(p.document_path, p.chunk_id) for p in carried.nearest] == [("rules.md", "p#3")]
    assert carried.chunk_id == "p#3"


def answer(path: str) -> KbAnswer:
    return KbAnswer("d", path, 0, 9, 1, 0, "partly", "r", "a", (), "m", "p", "0", False, "k")


def test_what_people_were_told_to_look_at_must_be_as_it_was() -> None:
    partly = candidate(LOCKERS, partly=(answer("half.md"),))
    near_secret = candidate(PARKING, confidential=("secret.md",))
    texts = [*RULES, ("half.md", "Nothing alike."), ("secret.md", "Nor here.")]
    same = kb(texts, secret=["secret.md"], secret_before=["secret.md"])
    assert not settle(held(partly, near_secret), same).to_ask
    changed = kb(texts, fresh=[30], secret=["secret.md"], secret_before=["secret.md"])
    assert [d.question for d in settle(held(partly, near_secret), changed).to_ask] == [LOCKERS]
    secret_changed = kb(texts, fresh=[31], secret=["secret.md"], secret_before=["secret.md"])
    (again,) = settle(held(partly, near_secret), secret_changed).to_ask
    assert (again.decided_id, again.decided_on) == (near_secret.id, ()), "nobody has looked at it as it is now"
    assert settle(held(partly), changed).to_ask[0].decided_on == ("half.md: a",), "the same sentence is the same"
    open_now = kb(texts, secret_before=["secret.md"])
    assert [d.question for d in settle(held(partly, near_secret), open_now).to_ask] == [PARKING]
    gone = kb(RULES, status={"half.md": "removed"})
    assert LOCKERS in [d.question for d in settle(held(partly), gone).to_ask]


def test_what_was_confidential_counts_as_new_wherever_it_stands_now() -> None:
    text = "Parking cards are signed for by the desk."
    texts = [*RULES, ("desk.md", text)]
    assert not settle(held(candidate(PARKING)), kb(texts)).to_ask
    assert settle(held(candidate(PARKING)), kb(texts, secret_before=["desk.md"])).to_ask
    moved = kb(texts, status={"desk.md": "changed", "secret.md": "removed"}, secret_before=["secret.md"])
    assert settle(held(candidate(PARKING)), moved).to_ask


def test_a_document_that_is_confidential_now_is_left_to_the_code_filter() -> None:
    done = settle(held(candidate(LOCKERS)), kb(RULES, secret=["a.md"]))
    assert done.to_ask and "a.md is confidential now" in done.items[0].why


def test_what_a_reviewer_dropped_since_is_not_asked_and_goes_at_freezing() -> None:
    texts = [*RULES, ("desk.md", "Parking cards are signed for by the desk.")]
    parking = candidate(PARKING)
    done = settle(held(parking), kb(texts, fresh=[30]), dropped=[parking.id])
    assert [c.id for c in done.carried] == [parking.id] and "dropped" in done.items[0].why


def registered(item: GoldenItem, root: str) -> Registered:
    return Registered(item.id, item.provenance.candidate_id, "tuning", "v1", root)


def test_what_is_held_frozen_open_changed_and_unknown() -> None:
    kept, waiting, gone = candidate(PARKING), candidate(LOCKERS), candidate("Who waters the plants?")
    other = "Ask the desk."
    with_own = replace(kept, id=no_answer_id("a.md", PARKING, other), answer=other)
    changed = candidate("Who signs for two cards?", parent_id=waiting.id, root_id=waiting.root_id, origin="corrected")
    unknown = draft_of(replace(candidate("Is there a bell?"), answer=""))
    item = frozen(with_own)
    found = held_questions(
        [item], [kept, waiting, gone, changed], [unknown], [gone.id], [registered(item, kept.root_id)], []
    )
    assert [(h.id, h.candidate.id, h.unknown is not None) for h in found] == [
        ("n-0001", with_own.id, False), (waiting.id, waiting.id, False), (found[2].id, found[2].id, True),
    ]  # fmt: skip
    assert found[0].candidate.answer == other and found[0].candidate.nearest == kept.nearest
    done = settle(found, kb(RULES))
    assert [d.question for d in done.to_ask] == ["Is there a bell?"]
    assert [i.member for i in done.items] == ["no_answer", "no_answer_open", "no_answer_open"]


def test_a_frozen_correction_stands_in_place_of_its_original() -> None:
    original = candidate(PARKING)
    changed = candidate("Who signs for two cards?", parent_id=original.id, root_id=original.root_id, origin="corrected")
    item = frozen(changed)
    (found,) = held_questions([item], [original, changed], [], [], [registered(item, original.root_id)], [])
    assert found.candidate == changed and planned_for(changed)


@given(st.sampled_from(["a.md", "b/ü.md", "日本.md"]), st.text(min_size=1, max_size=20), st.booleans())
def test_without_the_tables_of_then_the_document_is_told_by_the_ids(path: str, question: str, corrected: bool) -> None:
    id_ = no_answer_id(path, question, REFUSAL)
    root = no_answer_root(path, "another question, as first written" if corrected else question)
    item = frozen(candidate(question, id=id_))
    entry = registered(item, root)
    (found,) = held_questions([item], [], [], [], [entry], ["a.md", "b/ü.md", "c.md", "日本.md"])
    assert (found.candidate.document_path, found.candidate.id, found.candidate.root_id) == (path, id_, root)
    (lost,) = held_questions([item], [], [], [], [entry], ["c.md"])
    assert lost.candidate.document_path == "" and lost.candidate.id == id_


def asked_and_gone(of: NoAnswerCandidate) -> Drop:
    draft = draft_of(of)
    made = drop_of(draft, "answered_in_kb", "desk.md[0:9] 'x': y", "whole_kb", "c-other")
    return replace(made, payload=canonical_json({"draft": as_json(draft), "found": []}))


def test_the_changelog_tells_of_every_item_once_and_adds_up() -> None:
    one, two, three, four = (candidate(f"Who signs form {n}?") for n in ("red", "blue", "green", "black"))
    texts = [*RULES, ("desk.md", "Who signs form red, form blue and form green is told here.")]
    done = settle(held(one, two, three), kb(texts, fresh=[30]))
    assert len(done.to_ask) == 3
    in_part = replace(two, id="c-part", partly=(answer("desk.md"),))
    undecided = Drop("review", "undecided", "no decision yet", "a.md", "c-part", two.question, "no_answer", "en", 0, "")
    new_like_one = drop_of(replace(draft_of(one), id="d-new"), "duplicate_question", "like d-old")
    drops = asked_again_drops([asked_and_gone(one), new_like_one], {d.id for d in done.to_ask})
    assert [d.reason for d in drops] == ["answered_in_kb"]
    now = [frozen(three, "n-0003"), frozen(four, "n-0004")]
    rows = no_answer_changelog(done.items, now, [*drops, undecided], [three, in_part, four])
    assert [(r.id, r.change) for r in rows] == [
        ("n-0001", "dropped"), ("n-0002", "waiting"), ("n-0003", "rechecked"), ("n-0004", "added"),
    ]  # fmt: skip
    assert rows[0].why.startswith("answered_in_kb: desk.md") and rows[3].document_path == "a.md"
    assert not faults(rows, 3, 2) and faults(rows, 2, 2)
    section = no_answer_section(done.items, [three, in_part, four], drops, 1)
    assert "answered_in_kb: desk.md" in section and "to people" in section and "it stays" in section
    assert no_answer_section([], [], [], 0) == ""


def test_of_two_alike_the_frozen_one_comes_first() -> None:
    old, new = candidate(PARKING), candidate(LOCKERS)
    items = settle(held(old), kb(RULES)).items
    assert [c.id for c in frozen_first([new, old], items)] == [old.id, new.id]


def test_the_provenance_of_a_frozen_item_goes_with_it() -> None:
    (row,) = settle(held(candidate(PARKING)), kb(RULES)).items
    assert json.loads(row.provenance)["decision"] == "keep by Rei, s.csv:2" and row.baseline == "v1/snapshot-0001"
