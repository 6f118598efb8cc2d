"""What code drops of questions without an answer, which drops of the main set are proposed, and refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragds_pipeline.config import NoAnswerSettings, PlanSettings
from ragds_pipeline.filters.no_answer_filter import REASONS, filter_drafts, proposals
from ragds_pipeline.filters.refusals import REFUSALS, has_refusal, refusal
from ragds_pipeline.records import Drop
from ragds_pipeline_tests.no_answer import no_answer_draft

GOOD = "Who signs for a parking card in Bruges?"


@pytest.mark.parametrize(
    "question",
    [
        GOOD, "静岡事業所の駐車場は何台ですか。", "静岡の駐車場は何台？", "Chi firma? Mi serve saperlo.",
        "停车场有几个车位吗",
        "주차장은 몇 대입니까.", "Πόσες θέσεις έχει;", "كم عدد المواقف؟", "その場合の上限はいくらなの",
    ],
)  # fmt: skip
def test_questions_of_many_scripts_pass(question: str) -> None:
    assert filter_drafts([no_answer_draft(question)], [], [], 80).drafts


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Parking cards in Bruges.", "not_a_question"), ("駐車場の台数について。", "not_a_question"),
        ("Who?", "question_too_short"), ("何 台 で す か。", "question_too_short"),
        ("How much has team 3?", "duplicate_question"), ("How much leave has the team 4?", "near_duplicate_question"),
    ],
)  # fmt: skip
def test_the_rest_is_dropped_with_a_reason(question: str, reason: str) -> None:
    main = ["How much has team 3?", "How much leave has team 4?"]
    found = filter_drafts([no_answer_draft(question)], main, [], 80)
    assert not found.drafts and [d.reason for d in found.drops] == [reason] and reason in REASONS
    assert found.drops[0].payload and found.drops[0].detail


def test_a_document_that_became_confidential_takes_its_questions_along() -> None:
    found = filter_drafts([no_answer_draft(GOOD)], [], ["en/leave.md"], 80)
    assert [d.reason for d in found.drops] == ["document_confidential"]


def test_of_two_alike_the_earlier_stays_and_the_sums_hold() -> None:
    drafts = [no_answer_draft(GOOD), no_answer_draft(GOOD, "en/pay.md"), no_answer_draft("How many lockers has Cork?")]
    found = filter_drafts([*drafts, drafts[0]], [], [], 80)
    assert found.drafts == [drafts[0], drafts[2]] and len(found.drops) == 2
    again = filter_drafts([drafts[1]], [], [], 80, known=[drafts[0]])
    assert not again.drafts and drafts[0].id in again.drops[0].detail


def test_an_edit_is_not_compared_with_the_question_that_it_edits() -> None:
    edit = no_answer_draft(GOOD.replace("card", "pass"), origin="corrected", parent_id="c-1")
    both = filter_drafts([no_answer_draft(GOOD), edit], ["How many lockers has Cork?"], [], 80)
    assert len(both.drafts) == 2
    assert not filter_drafts([edit], [edit.question], [], 80).drafts


def drop(reason: str, question: str = GOOD) -> Drop:
    return Drop("support", reason, "the span does not say", "a.md", f"c-{reason}", question, "fact", "en", 0, "")


def test_only_what_its_evidence_did_not_answer_is_proposed() -> None:
    drops = [drop("not_supported"), drop("ambiguous"), drop("evidence_not_found"), drop("not_supported", "")]
    one = proposals(drops, NoAnswerSettings(), PlanSettings(no_answer=1), "v1")
    assert [d.source_id for d in one] == ["c-not_supported"] and one[0].origin == "unsupported"
    rules = NoAnswerSettings(proposals=["not_supported", "evidence_not_found"])
    assert len(proposals(drops, rules, PlanSettings(no_answer=1), "v1")) == 2
    assert not proposals(drops, NoAnswerSettings(proposals=[]), PlanSettings(no_answer=1), "v1")
    assert not proposals(drops, rules, PlanSettings(), "v1"), "no set is planned, so nothing of it may cost"


def test_the_same_question_has_the_same_root_whatever_made_it() -> None:
    (made,) = proposals([drop("not_supported")], NoAnswerSettings(), PlanSettings(no_answer=1), "v1")
    assert made.root_id == no_answer_draft(GOOD, "a.md").root_id
    assert replace(made, missing="other").root_id == made.root_id


def test_refusals_are_told_apart_and_fall_back_to_english() -> None:
    assert len(set(REFUSALS.values())) == len(REFUSALS) >= 30
    assert refusal("xx", {}) == REFUSALS["en"] and not has_refusal("xx", {})
    assert refusal("xx", {"en": "No."}) == "No." and refusal("it", {"it": "No."}) == "No."
    assert has_refusal("eo", {"eo": "Ne."}) and {"en", "ja", "it", "de", "fr", "es", "pt", "nl", "zh", "ko"} <= set(
        REFUSALS
    )
