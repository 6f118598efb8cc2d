"""Near misses: the plan, the request, and replies of every kind; the sums hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.candidates.no_answer import build, plan_no_answer, steps
from ragds_pipeline.candidates.no_answer_reading import REASONS, AskedNearMisses, read_near_misses
from ragds_pipeline.candidates.plan import AskableDocument, plan_questions
from ragds_pipeline.candidates.windows import Window
from ragds_pipeline.claude import Failure, FailureReason
from ragds_pipeline.config import PlanSettings, Settings
from ragds_pipeline_tests.candidates.test_reading import reply
from ragds_pipeline_tests.documents import outline
from ragds_pipeline_tests.loopback import MALFORMED_SHAPES, malform

TEXT = "# Leave\n\nStaff get 27 days a year. Ask by form L-2.\n\nOn Fridays the desk is shut.\n"
DOCUMENTS = [AskableDocument(f"{lang}/{n}.md", lang, 3000) for lang in ("en", "ja", "it") for n in range(2)]


def asked(total: int = 2) -> AskedNearMisses:
    return build(outline(TEXT), Window("rules.md", 0, len(TEXT)), total, (), Settings())


def good(**changes: Any) -> dict[str, Any]:
    row = {"question": "Who signs form L-2 in Cork?", "missing": "who signs", "nearest_ids": [3]}
    return {**row, **changes}


@given(st.integers(0, 40))
def test_exactly_as_many_are_planned_as_asked_for(count: int) -> None:
    rows = plan_no_answer(PlanSettings(no_answer=count), DOCUMENTS)
    assert sum(row.planned for row in rows) == count
    assert {(row.type, row.difficulty, row.hops) for row in rows} <= {("no_answer", "", "")}


def test_the_main_plan_is_the_same_with_and_without() -> None:
    assert plan_questions(PlanSettings(no_answer=9), DOCUMENTS) == plan_questions(PlanSettings(), DOCUMENTS)
    languages = {row.language for row in plan_no_answer(PlanSettings(no_answer=6, languages={"ja": 1}), DOCUMENTS)}
    assert languages == {"ja"}


def test_the_request_shows_the_document_first_and_says_what_there_is() -> None:
    one = build(outline(TEXT), Window("rules.md", 0, len(TEXT)), 1, ["Is the desk open at night?"], Settings())
    system, (document, ask) = one.request.params["system"][0]["text"], one.request.params["messages"][0]["content"]
    assert "English" in system and "$" not in system
    assert document["text"].startswith("<document-") and "[3] Ask by form L-2." in document["text"]
    assert ask["text"].startswith("Write 1 near miss of") and "- Is the desk open at night?" in ask["text"]
    again = build(outline(TEXT), Window("rules.md", 0, len(TEXT)), 1, ["Is the desk open at night?"], Settings(), 1)
    assert again.request.key != one.request.key and again.request.params == one.request.params


def test_without_structured_outputs_json_is_asked_for() -> None:
    settings = Settings.model_validate({"claude": {"structured_outputs": False}})
    request = build(outline(TEXT), Window("rules.md", 0, len(TEXT)), 1, (), settings).request
    assert "output_config" not in request.params and "JSON object" in request.params["system"][0]["text"]


def test_many_questions_are_spread_over_requests() -> None:
    settings = Settings.model_validate({"candidates": {"questions_per_request": 2}})
    assert [count for _, count in steps(outline(TEXT), 5, settings)] == [2, 2, 1]


def test_what_can_be_read_becomes_a_draft_with_its_nearest_sentences() -> None:
    (draft,), drops = read_near_misses(asked(1), reply(json.dumps({"questions": [good()]})), 0)
    assert not drops and [q.text for q in draft.nearest] == ["Ask by form L-2."]
    assert TEXT[draft.nearest[0].start_char : draft.nearest[0].end_char] == draft.nearest[0].text
    assert (draft.origin, draft.language, draft.missing) == ("near_miss", "en", "who signs")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (good(question=""), "question_missing"), (good(question=None), "question_missing"),
        (good(missing=" "), "missing_missing"), (good(nearest_ids=[]), "nearest_missing"),
        (good(nearest_ids=[99]), "sentence_unknown"), (good(nearest_ids=["x"]), "sentence_unknown"),
        (good(question="half \ud83d"), "text_broken"), ("Who signs?", "row_not_an_object"), (None, "row_not_an_object"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_a_drop_with_a_reason(row: Any, reason: str) -> None:
    drafts, drops = read_near_misses(asked(1), reply(json.dumps({"questions": [row]})), 0)
    assert not drafts and [d.reason for d in drops] == [reason] and reason in REASONS


def test_too_many_too_few_cut_and_failed() -> None:
    whole = json.dumps({"questions": [good(question=f"Who signs form L-{n}?") for n in range(4)]})
    drafts, drops = read_near_misses(asked(2), reply(whole), 0)
    assert len(drafts) == 2 and [d.reason for d in drops] == ["beyond_request"] * 2
    drafts, drops = read_near_misses(asked(6), reply(whole), 0)
    assert len(drafts) == 4 and [d.reason for d in drops] == ["not_returned"] * 2
    drafts, drops = read_near_misses(asked(4), reply(whole[: len(whole) - 40]), 0)
    assert len(drafts) == 3 and [d.reason for d in drops] == ["row_truncated"]
    failure = Failure("k", FailureReason.OVER_BUDGET, "no money")
    assert [d.reason for d in read_near_misses(asked(2), failure, 0)[1]] == ["reply_over_budget"] * 2


@pytest.mark.parametrize("shape", MALFORMED_SHAPES)
def test_no_malformed_reply_makes_it_fall_over(shape: Any) -> None:
    text = malform(json.dumps({"questions": [good(), good(question="Who signs form L-9?")]}), shape)
    drafts, drops = read_near_misses(asked(2), reply(text if isinstance(text, str) else str(text)), 0)
    assert len(drafts) + len(drops) >= 2


@given(st.text())
def test_no_text_makes_it_fall_over(text: str) -> None:
    drafts, drops = read_near_misses(asked(2), reply(text), 0)
    assert len(drafts) + len(drops) >= 2
