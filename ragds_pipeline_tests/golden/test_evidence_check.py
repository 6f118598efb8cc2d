"""Evidence against other texts: what stands or moved is no fault; what is gone is named with its lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.anchors.reasons import AMBIGUOUS, COPY, MEANING, SENTENCE, STATE
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.config import FilterSettings, GoldenSettings
from ragds_pipeline.filters.code_filter import code_filter
from ragds_pipeline.golden.evidence_check import EvidenceFault, evidence_report, line_now, line_of
from ragds_pipeline.golden.items import prepare
from ragds_pipeline.golden.revalidate import section_ranges
from ragds_pipeline.records import Decision, GoldenItem, Rung, sha256_text
from ragds_pipeline_tests.documents import draft, outline

TEXT = "# Leave\n\n" + "".join(f"Team {n} gets {n + 20} days — 休暇 🏖 ‘n’.\n\n" for n in range(9))
OLD = {"rules.md": TEXT}


def item(quote: str, text: str = TEXT) -> GoldenItem:
    found = code_filter(
        [draft("How many days has the team?", "so many", quote)],
        {"rules.md": outline(text)}, lambda: [("rules.md", text)], FilterSettings(),
    )  # fmt: skip
    (candidate,) = found.candidates
    kept = Decision(candidate.id, "keep", "", "Rei", "2026-01-01T00:00:00Z", "s.csv:2", "{}", "")
    (made,) = prepare([(candidate, kept)], [], "2026-10-01", GoldenSettings()).items
    return made


ITEM = item("Team 3 gets 23 days — 休暇 🏖 ‘n’.")


def report(new: dict[str, str], old: dict[str, str] = OLD, golden: GoldenItem = ITEM) -> list[EvidenceFault]:
    return evidence_report([golden], revision("v1", old), revision("v2", new))


def revision(name: str, texts: dict[str, str]) -> Revision:
    hashes = {path: sha256_text(text) for path, text in texts.items()}
    return Revision(name, hashes, texts.__getitem__, section_ranges)


@pytest.mark.parametrize(
    "new",
    [
        TEXT,
        TEXT + "\nA new end.\n",
        "A new beginning.\n\n" + TEXT,
        TEXT.replace("Team 3 gets 23 days", "Team 3\n  gets  23 days"),
        TEXT.replace("Team 2 gets 22", "Team 2 gets 99"),
        TEXT.replace("‘n’", "'n'"),
    ],
    ids=["same", "after", "moved", "white-space", "neighbour", "quotes"],
)
def test_what_stands_or_simply_moved_is_no_fault(new: str) -> None:
    assert report({"rules.md": new}) == []


def test_a_changed_digit_breaks_the_item_and_names_both_lines() -> None:
    (fault,) = report({"rules.md": "Added.\n\n" + TEXT.replace("gets 23", "gets 24")})
    assert fault.breaks and fault.reason == MEANING
    assert (fault.old_line, fault.new_path, fault.new_line) == (9, "rules.md", 11)
    assert "(stood at rules.md:9) needs a person: a number" in fault.message and "23 -> 24" in fault.message
    assert fault.message.count("see rules.md:11") == 1 and "24" in fault.word_diff
    assert fault.message.startswith("g-0001: evidence “Team 3 gets 23") and "How many days" in fault.message


def test_a_deleted_line_points_at_where_it_stood() -> None:
    alone = TEXT.replace("Team 3 gets 23 days — 休暇 🏖 ‘n’.", "Captains keep the keys of every boat in the harbour.")
    golden = item("Captains keep the keys of every boat in the harbour.", alone)
    gone = alone.replace("Captains keep the keys of every boat in the harbour.\n\n", "")
    (fault,) = report({"rules.md": gone}, {"rules.md": alone}, golden)
    assert fault.breaks and fault.rung == Rung.LOST and fault.new_line == 9 and "Team 4" in fault.now
    assert "is in no document any more; there it says now “Team 4" in fault.message


def test_a_deleted_document_breaks_unless_it_was_renamed() -> None:
    (fault,) = report({"other.md": "Nothing of it here.\n"})
    assert fault.breaks and (fault.new_path, fault.new_line, fault.now) == ("", 0, "")
    assert report({"other.md": TEXT}) == [], "the ladder follows a document to its new name"


def test_evidence_of_a_document_that_is_confidential_now_breaks() -> None:
    (fault,) = evidence_report([ITEM], revision("v1", OLD), revision("v2", {}), {"rules.md"})
    assert fault.breaks and "is in a document that is confidential now" in fault.message


def test_the_rest_of_its_sentence_changed_is_a_doubt_and_no_break() -> None:
    golden = item("Team 3 gets 23 days")
    changed = TEXT.replace("Team 3 gets 23 days —", "Team 3 gets 23 days if the harbour master agrees —")
    (fault,) = report({"rules.md": changed}, golden=golden)
    assert fault.reason == SENTENCE and not fault.breaks and fault.new_line == 9
    assert "needs a person: the sentence or table row" in fault.message


def test_evidence_that_was_struck_out_breaks() -> None:
    (fault,) = report(
        {"rules.md": TEXT.replace("Team 3 gets 23 days — 休暇 🏖 ‘n’.", "<!-- Team 3 gets 23 days — 休暇 🏖 ‘n’. -->")}
    )
    assert fault.reason == STATE and fault.breaks and fault.new_line == 9


def test_copies_are_told_apart_by_what_stands_around_them() -> None:
    copy = "Copy.\n\nTeam 3 gets 23 days — 休暇 🏖 ‘n’.\n\nEnd.\n\n"
    assert report({"rules.md": copy + TEXT}) == []
    around = TEXT.replace("Team 2 gets", "Group 2 gets").replace("Team 4 gets", "Group 4 gets")
    for fault in report({"rules.md": copy + around}):
        assert fault.reason in (AMBIGUOUS, COPY) and not fault.breaks


def test_items_without_evidence_and_damaged_spans_are_passed_over() -> None:
    empty = replace(ITEM, passages=())
    damaged = replace(ITEM, passages=(replace(ITEM.passages[0], start_char=3),))
    nowhere = replace(ITEM, passages=(replace(ITEM.passages[0], document_path="never.md"),))
    new = revision("v2", {"rules.md": "All new.\n"})
    found = evidence_report([empty, damaged, nowhere, ITEM], revision("v1", OLD), new)
    assert [fault.item_id for fault in found] == [ITEM.id]


def test_copies_that_were_all_valid_before_are_all_valid_now() -> None:
    twice = TEXT + "Team 3 gets 23 days — 休暇 🏖 ‘n’.\n"
    golden = item("Team 3 gets 23 days — 休暇 🏖 ‘n’.", twice)
    assert golden.passages[0].alternatives
    assert (
        report(
            {"rules.md": "New.\n\n" + twice.replace("Team 2", "T2").replace("Team 4", "T4")},
            {"rules.md": twice},
            golden,
        )
        == []
    )


def test_optional_evidence_that_is_gone_breaks_nothing() -> None:
    optional = replace(ITEM, passages=(replace(ITEM.passages[0], required=False),))
    (fault,) = report({"rules.md": "All new.\n"}, golden=optional)
    assert fault.rung == Rung.LOST and not fault.breaks and "optional evidence" in fault.message


LINES = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), min_size=1, max_size=12)


@given(LINES, LINES, st.data())
def test_the_line_is_always_one_of_the_new_text_and_kept_lines_are_found(
    old: list[str], new: list[str], data: st.DataObject
) -> None:
    line = data.draw(st.integers(1, len(old)))
    now = line_now("\n".join(old), "\n".join(new), line)
    assert 1 <= now <= len(new)
    assert line_now("\n".join(old), "\n".join(old), line) == line
    ahead = line_now("\n".join(old), "\n".join([*new, "!", *old]), line)
    assert 1 <= ahead <= len(new) + 1 + len(old)


@given(st.text(alphabet="ab\n", max_size=30), st.integers(0, 30))
def test_lines_are_counted_from_one(text: str, offset: int) -> None:
    at = min(offset, len(text))
    assert line_of(text, at) == len(text[:at].split("\n"))
