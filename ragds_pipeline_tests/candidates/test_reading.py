"""Replies of every kind: what can be read becomes a draft, all else a dropped row with a reason; the sums hold."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.candidates.reading import REASONS, read_reply
from ragds_pipeline.candidates.single_hop import Shown, build
from ragds_pipeline.candidates.windows import Window
from ragds_pipeline.claude import Failure, FailureReason, Reply, Usage
from ragds_pipeline.config import Settings
from ragds_pipeline_tests.documents import outline
from ragds_pipeline_tests.loopback import MALFORMED_SHAPES, malform

TEXT = "# Leave\n\nStaff get 27 days a year. Ask by form L-2.\n\nOn Fridays the desk is shut.\n"


def shown(asked: dict[str, int] | None = None) -> Shown:
    found = outline(TEXT)
    return build(found, Window("rules.md", 0, len(TEXT)), asked or {"fact": 2}, (), Settings())


def reply(text: str) -> Reply:
    return Reply("k", text, "m", Usage(), Decimal(0), False)


def good(**changes: Any) -> dict[str, Any]:
    row = {"question": "How many days of leave do staff get?", "answer": "27", "type": "fact", "evidence_ids": [2]}
    return {**row, **changes}


def read(text: str, asked: dict[str, int] | None = None) -> tuple[int, list[str]]:
    drafts, drops = read_reply(shown(asked), reply(text), 0, "sentences")
    return len(drafts), sorted(drop.reason for drop in drops)


def test_a_plain_reply() -> None:
    drafts, drops = read_reply(
        shown(), reply(json.dumps({"questions": [good(), good(answer="27 days")]})), 0, "sentences"
    )
    assert [d.answer for d in drafts] == ["27", "27 days"] and not drops
    assert drafts[0].quotes[0].text == "Staff get 27 days a year."
    assert TEXT[drafts[0].quotes[0].start_char : drafts[0].quotes[0].end_char] == drafts[0].quotes[0].text


@pytest.mark.parametrize(
    ("text", "drafts", "reasons"),
    [
        ("3", 0, ["reply_unreadable", "reply_unreadable"]),
        ("null", 0, ["reply_unreadable", "reply_unreadable"]),
        ("[]", 0, ["not_returned", "not_returned"]),
        ("Sorry, I cannot.", 0, ["reply_unreadable", "reply_unreadable"]),
        ('{"questions": []}', 0, ["not_returned", "not_returned"]),
        ('{"questions": [3, null]}', 0, ["row_not_an_object", "row_not_an_object"]),
        ("Here:\n```json\n" + json.dumps({"questions": [good()]}) + "\n```\nBye", 1, ["not_returned"]),
        ("Sure [1], see {x}: " + json.dumps([good(), good(answer="b")]) + " done", 2, []),
        (json.dumps(good()), 1, ["not_returned"]),
        (json.dumps({"questions": good()}), 1, ["not_returned"]),
        (json.dumps({"questions": [good(question={"text": "How many days?"}), good(question={"a": 1, "b": 2})]}), 1,
         ["question_missing"]),
        (json.dumps({"questions": [good(answer=27), good(answer="  ")]}), 0, ["answer_missing", "answer_missing"]),
        (json.dumps({"questions": [good(type="FACT"), good(type="riddle")]}), 1, ["type_unknown"]),
        (json.dumps({"questions": [good(evidence_ids=["2", "[3]"]), good(evidence_ids="2-3")]}), 2, []),
        (json.dumps({"questions": [good(evidence_ids=[]), good(evidence_ids=None)]}), 0,
         ["evidence_missing", "evidence_missing"]),
        ('{"questions": [{"question": "\\ud83d?", "answer": "a", "type": "fact", "evidence_ids": [2]}]}', 0,
         ["not_returned", "text_broken"]),
        ('{"questions": [{"question": "q", "answer": "a", "type": "fact", "evidence_ids": [1e999]}, '
         '{"question": "q", "answer": "a", "type": "fact", "evidence_ids": [NaN]}]}', 0,
         ["sentence_unknown", "sentence_unknown"]),
        (json.dumps({"questions": [good(evidence_ids=[9]), good(evidence_ids=[True])]}), 0,
         ["sentence_unknown", "sentence_unknown"]),
        (json.dumps({"questions": [good(), good(), good()]}), 2, ["beyond_request"]),
    ],
)  # fmt: skip
def test_kinds_of_replies(text: str, drafts: int, reasons: list[str]) -> None:
    assert read(text) == (drafts, reasons)


def test_a_reply_that_ends_in_the_middle_gives_what_was_complete() -> None:
    whole = json.dumps({"questions": [good(), good(answer="x" * 50)]})
    assert read(whole[:-40]) == (1, ["row_truncated"])
    cut = Failure("k", FailureReason.TRUNCATED, "max_tokens", text=whole[:-40])
    drafts, drops = read_reply(shown(), cut, 0, "sentences")
    assert len(drafts) == 1 and [d.reason for d in drops] == ["row_truncated"]


@pytest.mark.parametrize("reason", [r for r in FailureReason if r is not FailureReason.TRUNCATED])
def test_a_failed_call_drops_every_question_it_asked_for(reason: FailureReason) -> None:
    drafts, drops = read_reply(shown({"fact": 3}), Failure("k", reason, "why"), 1, "sentences")
    assert not drafts and [d.reason for d in drops] == [f"reply_{reason}"] * 3
    assert {d.round for d in drops} == {1}


@pytest.mark.parametrize("shape", MALFORMED_SHAPES)
def test_no_malformed_reply_raises_and_the_sums_hold(shape: Any) -> None:
    text = malform(json.dumps({"questions": [good(), good(answer="b")]}), shape)
    drafts, reasons = read(text)
    assert drafts + len(reasons) >= 2


NAMES = st.sampled_from(["questions", "question", "answer", "type", "evidence_ids", "x"])
REPLIES = st.text() | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
).map(json.dumps)


@given(REPLIES)
def test_any_reply_reconciles(text: str) -> None:
    drafts, drops = read_reply(shown(), reply(text), 0, "sentences")
    returned_too_many = sum(d.reason == "beyond_request" for d in drops)
    assert len(drafts) <= 2
    assert len(drafts) + len(drops) >= 2 + max(0, returned_too_many - 2)
    known = {name for name in REASONS if "<" not in name}
    assert all(d.reason in known or d.reason.startswith("reply_") for d in drops)


def test_quotes_form_keeps_the_words_and_no_place() -> None:
    found = outline(TEXT)
    settings = Settings.model_validate({"candidates": {"evidence_form": "quotes"}})
    request = build(found, Window("rules.md", 0, len(TEXT)), {"fact": 1}, (), settings)
    row = {"question": "How many days?", "answer": "27", "type": "fact", "evidence": ["Staff get 27 days"]}
    (draft,), drops = read_reply(request, reply(json.dumps({"questions": [row]})), 0, "quotes")
    assert not drops and (draft.quotes[0].text, draft.quotes[0].start_char) == ("Staff get 27 days", -1)
