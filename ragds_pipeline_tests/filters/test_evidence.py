"""The first gate: exact places, and a reason for everything that does not hold."""

from __future__ import annotations

import pytest

from ragds_pipeline.config import EvidenceSettings, FilterSettings
from ragds_pipeline.filters.code_filter import REASONS, Filtered, code_filter
from ragds_pipeline.filters.giveaway import gives_itself_away
from ragds_pipeline.records import Candidate, Draft, Quote
from ragds_pipeline_tests.documents import draft, outline

TEXT = """# Rules

Hotels are paid up to EUR 118 a night. Ask the desk before booking.

## Meals

Guests are entertained for at most EUR 43 a head.

| Plan | Price |
|---|---|
| Pro | $20 |
| Basic | $5 |

## Code

```sh
ferry --mirror  # copies everything
```

Launch the text 🚀 rocket on Mondays only. The café closes at 17:30.

持股比
例は１０％までとする。

Hotels are paid up to EUR 118 a night. That also goes for Trieste.
"""


def run(*drafts: Draft, text: str = TEXT, settings: FilterSettings | None = None, **options: object) -> Filtered:
    outlines = {"rules.md": outline(text)}
    return code_filter(drafts, outlines, lambda: [("rules.md", text)], settings or FilterSettings(), **options)  # type: ignore[arg-type]


def reason(*quotes: str | Quote, settings: FilterSettings | None = None, text: str = TEXT) -> str:
    found = run(draft("What is paid for a hotel?", "EUR 118", *quotes), settings=settings, text=text)
    assert len(found.candidates) + len(found.drops) == 1
    return found.drops[0].reason if found.drops else "ok"


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("Ask the desk before booking.", "ok"),
        ("Ask  the\ndesk before booking.", "ok"),
        ("ask the desk “before” booking", "evidence_not_found"),
        ("ASK THE DESK BEFORE BOOKING", "ok"),
        ("| Pro | $20 |\n| Basic | $5 |", "ok"),
        ("ferry --mirror  # copies everything", "ok"),
        ("text 🚀 rocket", "ok"),
        ("The cafe\u0301 closes at 17:30.", "ok"),
        ("持股比例は10%まで", "ok"),
        ("持股比例は１０％までとする。", "ok"),
        ("Guests are entertained for at most EUR 34 a head.", "evidence_not_found"),
        ("EUR 118", "evidence_too_short"),
        ("   \n ", "evidence_too_short"),
        ("|---|---|", "evidence_no_words"),
        ("sk the desk before booking.", "evidence_cuts_word"),
        ("Ask the desk before book", "evidence_cuts_word"),
        ("Guests are entertained for at most EUR 43 a head.\n\n| Plan | Price |", "ok"),
        ("| Basic | $5 |\n\n## Code\n\n```sh\nferry --mirror", "evidence_crosses_sections"),
    ],
)
def test_one_quote(quote: str, expected: str) -> None:
    assert reason(quote) == expected
    assert expected == "ok" or expected in REASONS


def test_quotes_may_reach_into_a_subsection_but_not_into_a_sibling() -> None:
    assert reason("Ask the desk before booking.\n\n## Meals\n\nGuests are entertained") == "ok"


def test_limits_are_settings() -> None:
    settings = FilterSettings(evidence=EvidenceSettings(max_chars=60))
    assert (
        reason("Hotels are paid up to EUR 118 a night. Ask the desk before booking.", settings=settings)
        == "evidence_too_long"
    )
    three = ("Ask the desk before booking.", "text 🚀 rocket", "Guests are entertained")
    assert reason(*three, settings=FilterSettings(evidence=EvidenceSettings(max_spans=2))) == "too_many_spans"
    assert reason(*three) == "ok"


def test_a_span_inside_another_is_dropped() -> None:
    assert reason("Ask the desk before booking.", "desk before booking.") == "evidence_contained"
    assert reason("Ask the desk before", "before booking.") == "evidence_contained"


def test_a_place_that_does_not_hold_its_text_is_not_believed() -> None:
    assert reason(Quote("Ask the desk before booking.", 0, 28)) == "evidence_not_found"


def candidate(found: Filtered) -> Candidate:
    assert not found.drops, found.drops
    return found.candidates[0]


def test_every_occurrence_is_an_alternative() -> None:
    quote = "Hotels are paid up to EUR 118 a night."
    evidence = candidate(run(draft("What is paid?", "EUR 118", quote))).evidence[0]
    places = [(evidence.start_char, evidence.end_char)]
    places += [(a.start_char, a.end_char) for a in evidence.alternatives]
    assert [TEXT[start:end] for start, end in places] == [quote, quote]
    assert evidence.match == "exact" and evidence.suffix.startswith(" Ask the desk")
    assert TEXT[evidence.start_char - len(evidence.prefix) : evidence.start_char] == evidence.prefix


def test_a_quote_is_looked_for_where_the_model_looked() -> None:
    quote = "Hotels are paid up to EUR 118 a night."
    second = TEXT.rindex(quote)
    shown = draft("What is paid?", "EUR 118", quote)
    from dataclasses import replace

    evidence = candidate(run(replace(shown, window_start=second - 5, window_end=len(TEXT)))).evidence[0]
    assert evidence.start_char == second and len(evidence.alternatives) == 1


def test_the_same_text_in_another_document_is_an_alternative_but_not_inside_a_word() -> None:
    sentence = "Every claim names a captain."
    texts = {"rules.md": f"# A\n\n{sentence}\n", "b.md": f"x {sentence} y\n\nNot{sentence}ish\n"}
    found = code_filter(
        [draft("Who is named in every claim?", "a captain", sentence)],
        {"rules.md": outline(texts["rules.md"])},
        lambda: texts.items(),
        FilterSettings(),
    )
    assert [(a.document_path, a.start_char) for a in candidate(found).evidence[0].alternatives] == [("b.md", 2)]


def test_what_stands_everywhere_proves_nothing() -> None:
    text = "# A\n\n" + "See the desk about this.\n\n" * 30
    assert reason("See the desk about this.", text=text) == "evidence_everywhere"


def test_duplicates_are_dropped_across_the_kb_and_against_what_was_kept() -> None:
    drafts = [
        draft("How much is paid for a hotel?", "EUR 118", "Ask the desk before booking."),
        draft("how much is paid for a hotel", "EUR 118", "Guests are entertained"),
        draft("How much is paid for a hotel, please?", "EUR 118", "text 🚀 rocket"),
        draft("経費の上限はいくらですか。", "118", "text 🚀 rocket"),
        draft("経費の上限は、いくらですか？", "118", "text 🚀 rocket"),
    ]
    found = run(*drafts)
    assert [c.question for c in found.candidates] == [drafts[0].question, drafts[3].question]
    assert {d.reason for d in found.drops} <= {"duplicate_question", "near_duplicate_question"}
    again = run(drafts[1], known=found.candidates)
    assert not again.candidates and found.candidates[0].id in again.drops[0].detail


def test_no_more_than_the_plan_wants() -> None:
    drafts = [draft(f"Who knows about topic {n}{n}?", "EUR 118", "Ask the desk before booking.") for n in range(4)]
    found = run(*drafts, room={("rules.md", "easy", "fact"): 2})
    assert len(found.candidates) == 2 and [d.reason for d in found.drops] == ["beyond_plan"] * 2


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("How many days is 23 days?", "23 days", True),
        ("Within how many days is a claim filed?", "Within 23 calendar days", False),
        ("Who files the claim in Pontoon with the desk?", "The claim in Pontoon with the desk files.", True),
        ("Is the claim filed in days or weeks?", "in weeks", False),
        ("申請は何日以内ですか。", "３０日以内", False),
        ("領収書の日付から３０日以内に申請しますか。", "30日以内", True),
        ("Is it paid?", "Yes", False),
    ],
)
def test_an_answer_that_can_be_read_off_the_question(question: str, answer: str, expected: bool) -> None:
    assert gives_itself_away(question, answer, 0.8) is expected


def test_confidential_documents_are_no_evidence() -> None:
    found = code_filter(
        [draft("What is paid for a hotel?", "EUR 118", "Ask the desk before booking.")],
        {"rules.md": outline(TEXT, confidential=True)},
        list,
        FilterSettings(),
    )
    assert [d.reason for d in found.drops] == ["evidence_confidential"]


def test_the_id_is_of_what_a_reviewer_sees_and_not_of_the_place() -> None:
    one = candidate(run(draft("What is paid?", "EUR 118", "Ask the desk before booking.")))
    moved = "Preface.\n\n" + TEXT
    other = candidate(run(draft("What is paid?", "EUR 118", "Ask the desk before booking."), text=moved))
    assert one.id == other.id and one.evidence[0].start_char != other.evidence[0].start_char
    changed = candidate(run(draft("What is paid?", "EUR 119", "Ask the desk before booking.")))
    assert changed.id != one.id


def test_places_that_overlap_are_one_place() -> None:
    text = "# A\n\nhey hey hey hey hey hey hey\n"
    found = code_filter(
        [draft("Who calls?", "nobody", Quote("hey hey hey", 5, 16))],
        {"rules.md": outline(text)},
        lambda: [("rules.md", text)],
        FilterSettings(),
    )
    places = [(a.start_char, a.end_char) for a in candidate(found).evidence[0].alternatives]
    assert places == [(17, 28)]


def test_each_difficulty_has_its_own_room() -> None:
    from dataclasses import replace

    drafts = [draft(f"Who knows about topic {n}{n}?", "EUR 118", "Ask the desk before booking.") for n in range(4)]
    drafts[1] = replace(drafts[1], difficulty="medium")
    found = run(*drafts, room={("rules.md", "easy", "fact"): 2, ("rules.md", "medium", "fact"): 2})
    assert [c.difficulty for c in found.candidates] == ["easy", "medium", "easy"]
