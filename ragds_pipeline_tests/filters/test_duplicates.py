"""Near-duplicate questions: what is one, what only looks like one, and which of a group stays."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from ragds_pipeline.filters.duplicates import THRESHOLD, DuplicatePair, first_occurrences, near_duplicates
from ragds_pipeline.filters.question_form import QuestionForm, says_something_else

SAME = [
    ("How many days of leave do employees get?", "how many days of leave do employees get"),
    ("How many days of leave do employees get?", "How many days of leave do employees get each year?"),
    ("How many days of leave do employees get?", "How many days leave of do employees get?"),
    ("How many days of leave do employees get?", "How many days of leave does an employee get?"),
    ("Within ３０ days of what event?", "Within 30 days of what event"),
    ("What is the travel policy for contractors?", "Which is the travel policy for contractors?"),
    ("When don't I need an approval?", "When don’t I need an approval"),
    ("Entro quanti giorni si chiede il rimborso?", "Entro quanti giorni si chiede un rimborso?"),
    ("東京の人口は何人ですか？", "東京の人口は、何人ですか"),
    ("東京の人口は何人ですか？", "東京の人口が何人ですか"),
    ("ﾃﾚﾜｰｸの申請はどこで行いますか", "テレワークの申請はどこで行いますか？"),
    ("梅雨がみられるのはどの期間？", "梅雨がみられるのは、どの期間ですか？"),
]

DIFFERENT = [
    ("Must I apply within 30 days?", "Must I apply within 90 days?"),
    ("Who approves expenses above EUR 43?", "Who approves expenses above EUR 61?"),
    ("Who approves expenses above EUR 43?", "Who approves expenses above USD 43?"),
    ("Who approves expenses above $43?", "Who approves expenses above €43?"),
    ("What are the hours of the Milan office?", "What are the hours of the Turin office?"),
    ("Quali sono gli orari della sede di Milano?", "Quali sono gli orari della sede di Torino?"),
    ("How long is the notice of two weeks counted?", "How long is the notice of three weeks counted?"),
    ("Is the temperature limit 5 °C?", "Is the temperature limit -5 °C?"),
    ("Which version is 3.5 compatible with?", "Which version is 5.3 compatible with?"),
    ("Does the rule apply to contractors?", "Does the rule not apply to contractors?"),
    ("Is the leave paid for contractors?", "Is the leave unpaid for contractors?"),
    ("What must be filed before the trip?", "What must be filed after the trip?"),
    ("What is the fare from Milan to Turin?", "What is the fare from Turin to Milan?"),
    ("What does Schedule A of the form list?", "What does Schedule B of the form list?"),
    ("What is the syntax for C comments?", "What is the syntax for C++ comments?"),
    ("When does the warranty start for customers?", "Where does the warranty start for customers?"),
    ("What does the employee sign?", "What does the employer sign?"),
    ("申請は三年以内に行いますか", "申請は五年以内に行いますか"),
    ("申請は30日以内に行いますか", "申請は９０日以内に行いますか"),
    ("東京の事務所は何時に開きますか", "大阪の事務所は何時に開きますか"),
    ("ミラノの事務所は何時に開きますか", "トリノの事務所は何時に開きますか"),
    ("この規定は契約社員に適用されますか", "この規定は契約社員に適用されませんか"),
    ("支払いは月曜日から始まりますか", "支払いは月曜日まで始まりますか"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_question_in_nearly_the_same_words(one: str, other: str) -> None:
    assert [(pair.first, pair.second) for pair in near_duplicates([one, other])] == [(0, 1)]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_alike_questions_that_ask_for_something_else(one: str, other: str) -> None:
    assert near_duplicates([one, other]) == []


def test_case_width_punctuation_and_blanks_alone_make_an_exact_duplicate() -> None:
    questions = ["Within 30 days?", "within  ３０ days!", "Within 30 working days?"]
    assert near_duplicates(questions, threshold=70)[0] == DuplicatePair(0, 1, 100.0, True)
    assert not any(pair.exact for pair in near_duplicates(questions, threshold=70)[1:])


VOCABULARY = "leave travel policy office approve Milan employees not 30 90 何人 東京 の は days submit form manager"
WORDS = VOCABULARY.split()
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)


@given(st.lists(sentences, max_size=12))
def test_pairs_found_are_pairs_of_a_full_comparison(questions: list[str]) -> None:
    forms = [QuestionForm(question) for question in questions]
    full = {
        (first, second)
        for (first, one), (second, other) in combinations(enumerate(forms), 2)
        if fuzz.ratio(one.bag, other.bag) >= THRESHOLD and not says_something_else(one, other)
    }
    assert {(pair.first, pair.second) for pair in near_duplicates(questions)} <= full


@given(st.lists(sentences, max_size=12), st.sets(st.integers(0, 11)))
def test_what_stays_holds_no_pair_and_what_goes_has_a_reason(questions: list[str], protected: set[int]) -> None:
    dropped = first_occurrences(questions, protected)
    kept = [at for at in range(len(questions)) if at not in dropped]
    assert protected.isdisjoint(dropped)
    assert set(dropped.values()) <= set(kept)
    for gone, reason in dropped.items():
        assert reason in protected or reason < gone
        assert near_duplicates([questions[reason], questions[gone]])
    unprotected = [questions[at] for at in kept if at not in protected]
    assert len({QuestionForm(question).words for question in unprotected}) == len(unprotected)


def test_a_chain_loses_its_middle_only() -> None:
    chain = [
        "Which form do employees submit for travel leave",
        "Which form do employees submit for travel leave abroad today",
        "Which form do employees submit for travel leave abroad today if managers agree",
    ]
    assert [(pair.first, pair.second) for pair in near_duplicates(chain)] == [(0, 1), (1, 2)]
    assert first_occurrences(chain) == {1: 0}


def test_protected_questions_stay_and_displace_earlier_ones() -> None:
    questions = ["Who signs the form?", "who signs the form", "Who signs THE form?", "Who pays the bill?"]
    assert first_occurrences(questions) == {1: 0, 2: 0}
    assert first_occurrences(questions, {2}) == {0: 2, 1: 2}
    assert first_occurrences(questions, {0, 1, 2}) == {}


def test_a_hundred_copies_leave_one_whatever_the_limit_on_neighbours() -> None:
    questions = [f"Who signs the travel form{'?' * at}" for at in range(100)]
    assert first_occurrences(questions) == dict.fromkeys(range(1, 100), 0)


def test_planted_edits_among_many_questions_are_found() -> None:
    rng = random.Random(7)
    stems = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(4, 9))) for _ in range(3_000)]
    questions = [" ".join(rng.choices(stems, k=10)) for _ in range(2_000)]
    copies = [question.replace(" ", " really ", 1) for question in questions[:500]]
    assert first_occurrences(questions + copies) == {2_000 + at: at for at in range(500)}


@pytest.mark.parametrize("threshold", [0, -1, 100.5])
def test_a_threshold_out_of_range_is_an_error(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        near_duplicates(["a"], threshold=threshold)


@pytest.mark.parametrize("questions", [[], [""], ["?"], ["\ud800"]])
def test_degenerate_questions_are_no_error(questions: list[str]) -> None:
    assert near_duplicates(questions) == []
