"""The plan of the no_answer set in a later revision: what came over counts, only what is missing is asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.candidates.no_answer import plan_no_answer, steps
from ragds_pipeline.candidates.no_answer_plan import open_plan, plan_no_answer_revision, questions_there
from ragds_pipeline.candidates.plan import AskableDocument
from ragds_pipeline.config import PlanSettings, Settings
from ragds_pipeline.kb.changes import first_revision
from ragds_pipeline.records import DocumentChange
from ragds_pipeline.records_no_answer import NoAnswerDraft
from ragds_pipeline_tests.documents import outline
from ragds_pipeline_tests.no_answer import no_answer_draft

DOCUMENTS = [AskableDocument(f"{lang}/{n}.md", lang, 3000) for lang in ("en", "ja") for n in range(3)]


def there(path: str, count: int, language: str = "", **fields: str) -> list[NoAnswerDraft]:
    return [no_answer_draft(f"Who signs form {n}?", path, language or path[:2], **fields) for n in range(count)]


def changes(**fresh: int) -> list[DocumentChange]:
    """Return the changes; ``en_0=900`` stands for 900 new characters in ``en/0.md``."""
    new = {name.replace("_", "/") + ".md": size for name, size in fresh.items()}
    paths = sorted({d.path for d in DOCUMENTS} | new.keys())
    return [
        DocumentChange(p, "changed" if new.get(p) else "unchanged", "", (0,) if new.get(p) else (), new.get(p, 0), "v1")
        for p in paths
    ]


@given(st.integers(0, 30))
def test_a_first_revision_has_the_plan_as_it_is(count: int) -> None:
    settings = PlanSettings(no_answer=count)
    first = first_revision(d.path for d in DOCUMENTS)
    assert plan_no_answer_revision(settings, DOCUMENTS, [], first) == plan_no_answer(settings, DOCUMENTS)


def test_nothing_is_asked_where_nothing_is_missing_or_nothing_is_new() -> None:
    came_over = there("en/0.md", 2) + there("ja/1.md", 2)
    for wanted, changed in ((4, changes(en_0=3000)), (9, changes())):
        plan = plan_no_answer_revision(PlanSettings(no_answer=wanted), DOCUMENTS, came_over, changed)
        assert {row.document_path: row.planned for row in plan} == {"en/0.md": 2, "ja/1.md": 2}
        assert open_plan(plan, came_over) == []


def test_what_is_missing_comes_from_new_text_of_a_language_that_is_short() -> None:
    came_over = there("en/0.md", 4) + there("ja/1.md", 1)
    plan = plan_no_answer_revision(PlanSettings(no_answer=8), DOCUMENTS, came_over, changes(en_1=3000, ja_0=3000))
    asked = {row.document_path: row.planned for row in open_plan(plan, came_over)}
    assert asked == {"ja/0.md": 3}, "four of eight are in English already"


def test_no_more_is_asked_than_the_new_text_carries() -> None:
    plan = plan_no_answer_revision(PlanSettings(no_answer=20), DOCUMENTS, [], changes(en_1=900, ja_2=50))
    assert {row.document_path: row.planned for row in plan} == {"en/1.md": 2, "ja/2.md": 1}


def test_proposals_come_on_top_and_corrections_count_as_what_they_correct() -> None:
    proposed = there("en/0.md", 1, origin="unsupported", source_id="c-1")
    own = there("en/1.md", 1, origin="corrected")
    of_proposal = there("en/2.md", 1, origin="corrected", source_id="c-1")
    plan = plan_no_answer_revision(PlanSettings(no_answer=1), DOCUMENTS, proposed + own + of_proposal, changes())
    assert [(row.document_path, row.planned) for row in plan] == [("en/1.md", 1)]


def test_a_set_that_is_no_longer_wanted_is_kept_and_not_added_to() -> None:
    came_over = there("en/0.md", 2) + there("gone.md", 1, language="en")
    plan = plan_no_answer_revision(PlanSettings(no_answer=0), DOCUMENTS, came_over, changes(en_0=3000))
    assert {row.document_path: row.planned for row in plan} == {"en/0.md": 2, "gone.md": 1}


@given(
    st.integers(0, 12),
    st.lists(st.sampled_from([d.path for d in DOCUMENTS]), max_size=15),
    st.dictionaries(st.sampled_from(["en_0", "en_1", "ja_0", "ja_2"]), st.integers(1, 4000)),
)
def test_never_more_than_wanted_and_never_fewer_than_came_over(
    wanted: int, paths: list[str], fresh: dict[str, int]
) -> None:
    came_over = [no_answer_draft(f"q{n}?", path, path[:2]) for n, path in enumerate(paths)]
    changed = changes(**fresh)
    plan = plan_no_answer_revision(PlanSettings(no_answer=wanted), DOCUMENTS, came_over, changed)
    asked = open_plan(plan, came_over)
    assert sum(row.planned for row in plan) == len(came_over) + sum(row.planned for row in asked)
    assert sum(row.planned for row in asked) <= max(0, wanted - len(came_over))
    assert {row.document_path for row in asked} <= {change.document_path for change in changed if change.fresh}


def test_only_new_passages_are_shown() -> None:
    whole = outline("# Leave\n\n" + "".join(f"Rule {n} is about leave of kind {n}.\n\n" for n in range(200)))
    assert len(whole.passages) > 2
    last = whole.passages[-1]
    new = type(whole)(whole.document, whole.passages, frozenset({last.start_char}))
    assert [window.start_char for window, _ in steps(new, 2, Settings())] == [last.start_char]
    assert steps(whole, 2, Settings())[0][0].start_char == 0


def test_a_request_is_told_of_what_there_is() -> None:
    questions = [question.question for question in there("en/0.md", 2)]
    assert questions_there(there("en/0.md", 2)) == {"en/0.md": questions}
