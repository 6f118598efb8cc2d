"""Which judge a note names: only in so many words."""

from __future__ import annotations

import pytest

from ragds_pipeline.calibration.notes import is_wording, named_in


@pytest.mark.parametrize(
    ("note", "judges"),
    [
        ("ambiguous", {"ambiguity"}),
        ("Unclear: which site?", {"ambiguity"}),
        ("evidence: the header row is missing", {"support"}),
        ("answer, difficulty: both", {"support", "class"}),
        ("曖昧：どの事業所か", {"ambiguity"}),
        ("回答・難易度: 誤り", {"support", "class"}),
        ("ambigua e risposta: x", {"ambiguity", "support"}),
        ("known: everybody knows", {"closed_book"}),
        ("ＥＶＩＤＥＮＣＥ： x", {"support"}),
    ],
)
def test_what_names_a_judge(note: str, judges: set[str]) -> None:
    assert named_in(note) == judges


@pytest.mark.parametrize(
    "note",
    [
        "", "bad", "not ambiguous: but nobody asks this", "the evidence is fine", "evidence, I think, is fine",
        "Exam question, not one from the job: someone planning a meal", "answer is right: boring", "wording",
    ],
)  # fmt: skip
def test_what_names_none(note: str) -> None:
    assert not named_in(note)


def test_wording_alone_is_no_fault() -> None:
    assert is_wording("typo: in the answer") and is_wording("表現") and not is_wording("") and not is_wording("answer")
