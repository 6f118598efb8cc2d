"""Tests of ``review.importing``: sheets against the candidates, the log, and one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ragds_pipeline.config import FilterSettings
from ragds_pipeline.filters.code_filter import code_filter
from ragds_pipeline.records import Candidate, Decision
from ragds_pipeline.review.corrections import corrected_draft
from ragds_pipeline.review.decision_log import DamagedLog, DecisionLog
from ragds_pipeline.review.importing import ReviewState, SheetImport, import_sheets
from ragds_pipeline.review.queue import review_rows, still_open, with_failure
from ragds_pipeline.review.rows import ReviewRow
from ragds_pipeline.review.sheet import Severity
from ragds_pipeline.review.sheet_out import write_csv
from ragds_pipeline_tests.documents import draft, outline
from ragds_pipeline_tests.review.sheets import filled, read_cells, save_csv

LINES = [f"Team {name} rests {n + 20} days." for n, name in enumerate(("amber", "birch", "cedar", "delta"))]
TEXT = (
    "# Leave\n\n" + "\n\n".join([*LINES, "Ask the office first.", "Then wait a day.", "Ask the office first."]) + "\n"
)
DOCUMENTS = {"rules.md": outline(TEXT)}


def found(settings: FilterSettings | None = None) -> list[Candidate]:
    drafts = [draft(f"How much rest has {line.split()[1]}?", line.split()[3], line) for line in LINES]
    result = code_filter(drafts, DOCUMENTS, lambda: [("rules.md", TEXT)], settings or FilterSettings())
    assert not result.drops
    return result.candidates


def state(log: DecisionLog, candidates: list[Candidate]) -> ReviewState:
    rows = review_rows(candidates, DOCUMENTS, 30)
    by_id = {c.id: c for c in candidates}
    return ReviewState(by_id, rows, DOCUMENTS, lambda: [("rules.md", TEXT)], FilterSettings(), log.latest())


def sheet(path: Path, rows: Mapping[str, ReviewRow], changes: Mapping[int, Mapping[str, str]]) -> Path:
    """Write a sheet on which rows (1 is the first) are filled as said."""
    write_csv(list(rows.values()), path)
    return save_csv(path, filled(read_cells(path), changes), "utf-8-sig")


class Review:
    """A log, and sheets that are imported into it one after another."""

    def __init__(self, root: Path, candidates: list[Candidate] | None = None) -> None:
        self.root, self.log = root, DecisionLog(root / "decisions")
        self.candidates = candidates or found()

    def sheet(self, name: str, changes: Mapping[int, Mapping[str, str]]) -> Path:
        return sheet(self.root / name, review_rows(self.candidates, DOCUMENTS, 30), changes)

    def bring(self, *paths: Path, reviewer: str = "Rei") -> list[SheetImport]:
        sheets = import_sheets(paths, state(self.log, self.candidates), self.log.imported(), reviewer, "now")
        for each in sheets:
            if not each.errors and not each.before:
                self.log.append(each.decisions, each.sha256)
        return sheets

    def fixed(self, name: str, row: int, question: str) -> SheetImport:
        (result,) = self.bring(self.sheet(name, {row: {"keep": "y", "question": question}}))
        return result


@pytest.fixture
def review(tmp_path: Path) -> Review:
    return Review(tmp_path)


def codes(result: SheetImport) -> list[str]:
    return [problem.code for problem in result.problems]


def test_sheets_that_contradict_one_another_are_both_refused(review: Review) -> None:
    anna = review.sheet("anna.csv", {1: {"keep": "y"}, 2: {"keep": "y"}})
    bert = review.sheet("bert.csv", {1: {"keep": "n"}, 3: {"keep": "y"}})
    cora = review.sheet("cora.csv", {2: {"keep": "y"}, 4: {"keep": "n"}})
    one, other, third = review.bring(anna, bert, cora)
    assert codes(one) == codes(other) == ["contradiction_across_sheets"] and not one.decisions and not other.decisions
    assert "bert.csv:2" in one.problems[0].message and one.problems[0].message.startswith("anna.csv, line 2")
    assert len(third.decisions) == 2, "it agrees with all"


@pytest.mark.parametrize("answers", [("31", "32"), ("31", None)])
def test_corrections_that_differ_contradict_one_another(review: Review, answers: tuple[str, str | None]) -> None:
    cells = [{"keep": "y"} if answer is None else {"keep": "y", "answer": answer} for answer in answers]
    results = review.bring(*(review.sheet(f"{at}.csv", {1: each}) for at, each in enumerate(cells)))
    assert [codes(result) for result in results] == [["contradiction_across_sheets"]] * 2


def test_a_decision_that_replaces_an_earlier_one_is_told(review: Review) -> None:
    review.bring(review.sheet("anna.csv", {1: {"keep": "y"}, 2: {"keep": "y"}}), reviewer="Anna")
    (result,) = review.bring(review.sheet("bert.csv", {1: {"keep": "n"}, 2: {"keep": "y"}}), reviewer="Bert")
    (problem,) = result.problems
    assert problem.severity is Severity.WARNING and "drop by Bert replaces keep by Anna (anna.csv:2)" in problem.message
    assert len(result.decisions) == 2


def test_a_sheet_imported_before_is_not_read_again(review: Review) -> None:
    path = review.sheet("anna.csv", {1: {"keep": "y"}})
    review.bring(path)
    review.candidates = review.candidates[2:]  # another plan: the ids on the sheet are unknown now
    (again,) = review.bring(path)
    assert again.before and not again.problems and not again.decisions
    (fresh,) = review.bring(save_csv(review.root / "copy.csv", read_cells(path), "utf-16"))
    assert "unknown_id" in codes(fresh)


@pytest.mark.parametrize("reviewer", ["", " "])
def test_an_import_without_a_reviewer_is_an_error_that_says_how_to_name_one(review: Review, reviewer: str) -> None:
    (result,) = review.bring(review.sheet("anna.csv", {1: {"keep": "y"}}), reviewer=reviewer)
    assert codes(result) == ["no_reviewer"] and result.errors and not result.decisions
    for way in ("review.reviewer", "--reviewer", "run config `reviewer`"):
        assert way in result.problems[0].message


def test_what_cannot_be_read_is_a_problem(review: Review) -> None:
    (review.root / "old.csv").mkdir()
    results = review.bring(
        review.root / "old.csv", review.root / "absent.csv", review.sheet("a.csv", {1: {"keep": "y"}})
    )
    assert [codes(result) for result in results] == [["unreadable"], ["unreadable"], []]


def test_a_correction_may_be_like_what_was_dropped_in_an_earlier_sheet(review: Review) -> None:
    review.bring(review.sheet("a.csv", {1: {"keep": "n"}}))
    result = review.fixed("b.csv", 2, "How much rest has amber?")
    assert not result.problems and len(result.decisions) == 1


def test_a_correction_like_an_earlier_one_is_refused_with_its_line(review: Review) -> None:
    assert not review.fixed("a.csv", 3, "How long may a team rest in the summer?").problems
    result = review.fixed("b.csv", 1, "How long may a team rest in summer?")
    assert codes(result) == ["correction_near_duplicate_question"] and result.problems[0].line == 2
    assert [d.candidate_id for d in review.log.latest().values()] == [review.candidates[2].id]


def test_two_corrections_alike_in_sheets_imported_together_are_judged_like_two_imports(review: Review) -> None:
    one = review.sheet("a.csv", {3: {"keep": "y", "question": "How long may a team rest in the summer?"}})
    other = review.sheet("b.csv", {1: {"keep": "y", "question": "How long may a team rest in summer?"}})
    first, second = review.bring(one, other)
    assert not first.problems and codes(second) == ["correction_near_duplicate_question"]


def test_an_earlier_correction_that_fails_because_of_a_sheet_is_told_and_open_again(review: Review) -> None:
    first, second, *_ = review.candidates
    review.fixed("a.csv", 1, "How much rest has birch, please?")
    (result,) = review.bring(review.sheet("b.csv", {2: {"keep": "y"}}))
    assert codes(result) == ["earlier_correction_fails"] and result.decisions
    now = state(review.log, review.candidates)
    resolved = now.resolved(now.decisions)
    assert resolved.failed.keys() == {first.id} and second.id in resolved.kept
    assert first in still_open(review.candidates, resolved.closed)
    row = with_failure(now.rows[first.id], now.decisions[first.id], resolved.failed[first.id])
    assert "near_duplicate_question" in row.context and "How much rest has birch, please?" in row.context
    assert row.context.endswith(now.rows[first.id].context) and replace(row, context="") == replace(
        now.rows[first.id], context=""
    )
    (later,) = review.bring(review.sheet("c.csv", {3: {"keep": "y"}}))
    assert not later.problems, "it is told once"


def test_spans_of_equal_words_keep_their_own_places() -> None:
    (base, *_) = found()
    quote = "Ask the office first."
    places = [TEXT.index(quote), TEXT.rindex(quote)]
    evidence = tuple(replace(base.evidence[0], content=quote, start_char=at, end_char=at + len(quote)) for at in places)
    candidate = replace(base, evidence=evidence)
    made = corrected_draft(candidate, {"question": "What first?", "answer": "ask", "evidence": [quote, quote]})
    assert [q.start_char for q in made.quotes] == places
    result = code_filter([made], DOCUMENTS, lambda: [("rules.md", TEXT)], FilterSettings())
    assert not result.drops and [e.start_char for e in result.candidates[0].evidence] == places


def entry(number: int) -> Decision:
    return Decision("c-1", "keep", str(number), "Rei", "now", f"s.csv:{number}", "{}", "")


def test_the_log_is_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    log.append([entry(1)], "a" * 64)
    (first,) = tmp_path.glob("*.jsonl")
    first.rename(tmp_path / f"9999-{'a' * 12}.jsonl")
    log.append([entry(2)], "b" * 64)
    assert (tmp_path / f"10000-{'b' * 12}.jsonl").exists()
    assert log.latest()["c-1"].note == "2" and [d.note for d in log.all()] == ["1", "2"]
    assert log.imported() == {"a" * 12, "b" * 12}


def test_the_log_holds_decisions_in_the_order_in_which_they_were_last_made(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    log.append([entry(1), replace(entry(2), candidate_id="c-2")], "a" * 64)
    log.append([entry(3)], "b" * 64)
    assert list(log.latest()) == ["c-2", "c-1"]


def test_a_stray_file_in_the_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "0001-abc (copy).jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DamagedLog, match="copy"):
        DecisionLog(tmp_path).latest()
