"""What a decision says of each judge, and of all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ragds_pipeline.calibration.labels import Labelled, Reviewed, labels_of, labels_together
from ragds_pipeline.filters.judges import AMBIGUITY, CLASS, CLOSED_BOOK, SUPPORT
from ragds_pipeline.records import Decision, Verdict
from ragds_pipeline_tests.calibration.reviewing import candidate, decision, verdict

ALL = (AMBIGUITY, CLOSED_BOOK, SUPPORT, CLASS)


def reviewed(
    verdicts: Sequence[Verdict], decisions: Sequence[Decision], kept: Sequence[str], audited: Sequence[str] = ()
) -> Reviewed:
    return Reviewed(
        {id_: candidate(id_) for id_ in kept},
        {id_: candidate(id_) for id_ in audited},
        verdicts,
        {d.candidate_id: d for d in decisions},
    )


def said(labelled: Labelled) -> dict[str, tuple[bool, bool | None]]:
    return {row.item_id: (row.expected, row.got) for row in labelled.rows}


def expected_of(one: Decision) -> Mapping[str, bool]:
    """Return the label that a decision gives of each judge, all of which passed the item."""
    verdicts = [verdict("c", judge.name) for judge in ALL]
    found = {judge.name: said(labels_of(judge, reviewed(verdicts, [one], ["c"]))) for judge in ALL}
    return {name: rows["c"][0] for name, rows in found.items() if rows}


@pytest.mark.parametrize(
    ("one", "labels"),
    [
        (decision("c", "keep"), {"ambiguity": True, "support": True, "class": True}),
        (decision("c", "drop"), {}),
        (decision("c", "drop", "nobody asks this"), {}),
        (decision("c", "drop", "evidence: header missing"), {"support": False}),
        (decision("c", "drop", "known: common"), {"closed_book": False}),
        (decision("c", "fix", question="q2"), {"ambiguity": False}),
        (decision("c", "fix", question="q2", answer="a2"), {"ambiguity": False}),
        (decision("c", "fix", answer="a2"), {"support": False}),
        (decision("c", "fix", evidence=["the span of it", "and more"]), {"support": False}),
        (decision("c", "fix", evidence=["the span"]), {}),
        (decision("c", "fix", "typo: x", answer="a2"), {}),
        (decision("c", "fix", "difficulty: medium", answer="a2"), {"class": False}),
    ],
)
def test_what_a_decision_says_of_each_judge(one: Decision, labels: dict[str, bool]) -> None:
    assert expected_of(one) == labels


def test_an_audited_drop_labels_the_judge_that_dropped_it_and_those_before() -> None:
    verdicts = [verdict("c", "ambiguity"), verdict("c", "closed_book"), verdict("c", "support", "not_supported")]
    found = reviewed(verdicts, [decision("c", "keep")], [], ["c"])
    assert said(labels_of(SUPPORT, found)) == {"c": (True, False)}
    assert said(labels_of(AMBIGUITY, found)) == {"c": (True, True)}
    assert not labels_of(CLASS, found).rows and not labels_of(CLOSED_BOOK, found).rows
    assert said(labels_together(found)) == {"c": (True, False)}


def test_split_votes_are_no_verdict_and_are_counted() -> None:
    found = reviewed([verdict("c", "support", "split_votes")], [decision("c", "keep")], ["c"])
    labelled = labels_of(SUPPORT, found)
    assert said(labelled) == {"c": (True, None)} and labelled.split == 1 and not labelled.strata
    assert said(labels_together(found)) == {"c": (True, None)}


def test_strata_count_all_items_and_the_labels_in_them() -> None:
    verdicts = [verdict(f"k{n}") for n in range(5)] + [verdict(f"d{n}", reason="not_supported") for n in range(8)]
    decisions = [
        decision("k0", "keep"), decision("k1", "keep"), decision("k2", "drop", "answer: wrong"), decision("k3", "drop"),
        decision("d0", "keep"), decision("d1", "drop", "evidence: x"),
    ]  # fmt: skip
    found = reviewed(verdicts, decisions, [f"k{n}" for n in range(5)], [f"d{n}" for n in range(8)])
    labelled = labels_of(SUPPORT, found)
    assert [(s.passed, s.total, s.good, s.bad) for s in labelled.strata] == [(True, 5, 2, 1), (False, 8, 1, 1)]
    assert (labelled.dropped, labelled.audited, labelled.silent) == (8, 2, 1)
    together = labels_together(found)
    assert [(s.total, s.good, s.bad) for s in together.strata] == [(5, 2, 2), (8, 1, 1)]


def test_what_later_judges_drop_is_a_stratum_of_its_own() -> None:
    verdicts = [verdict("k", "ambiguity"), verdict("k", "support")]
    verdicts += [verdict("d", "ambiguity"), verdict("d", "support", "not_supported")]
    found = reviewed(verdicts, [decision("k", "keep"), decision("d", "drop", "unclear: x")], ["k"], ["d"])
    strata = labels_of(AMBIGUITY, found).strata
    assert [(s.passed, s.total, s.good, s.bad) for s in strata] == [(True, 1, 1, 0), (True, 1, 0, 1)]


def test_closed_book_drops_are_left_out_of_all_together() -> None:
    found = reviewed([verdict("c", "closed_book", CLOSED_BOOK.reason)], [decision("c", "keep")], [], ["c"])
    assert not labels_together(found).rows
