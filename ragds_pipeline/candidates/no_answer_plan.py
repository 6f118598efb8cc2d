"""The plan of the no_answer set in a later revision: what came over counts, and only new text is asked about.

Unlike the main set, which grows with the KB, this one has a number of its own (``plan.no_answer``). What is missing of
it is asked for from the documents with new or changed passages, in the languages that are short, and no more than so
much text carries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ragds_pipeline.candidates.apportion import largest_remainder, with_capacity
from ragds_pipeline.candidates.no_answer import plan_no_answer
from ragds_pipeline.candidates.plan import AskableDocument, weights_of
from ragds_pipeline.candidates.revision_plan import is_first, room
from ragds_pipeline.config import PlanSettings
from ragds_pipeline.records import DocumentChange, PlanRow
from ragds_pipeline.records_no_answer import NO_ANSWER, NoAnswerCandidate, NoAnswerDraft, planned_for

Question = NoAnswerCandidate | NoAnswerDraft


def open_plan(plan: Sequence[PlanRow], there: Collection[Question]) -> list[PlanRow]:
    """Return the plan less the near misses that are there; questions that the main set proposed come on top of it."""
    counts = Counter(question.document_path for question in there if planned_for(question))
    rows = [replace(row, planned=row.planned - counts[row.document_path]) for row in plan]
    return [row for row in rows if row.planned > 0]


def questions_there(there: Collection[Question]) -> dict[str, list[str]]:
    """Return the questions by document: a request is told of them, so that none is asked for again."""
    found: dict[str, list[str]] = {}
    for question in there:
        found.setdefault(question.document_path, []).append(question.question)
    return found


def plan_no_answer_revision(
    settings: PlanSettings,
    documents: Sequence[AskableDocument],
    came_over: Sequence[Question],
    changes: Sequence[DocumentChange],
) -> list[PlanRow]:
    """Return how many near misses are wanted of each document: those that came over, and those asked for now.

    ``came_over`` are the questions of the last frozen set, those that are asked again included. In a first revision it
    is the plan as :func:`plan_no_answer` gives it. Raises ConfigError as that does.
    """
    target = plan_no_answer(settings, documents)
    if is_first(changes):
        return target
    counted = [question for question in came_over if planned_for(question)]
    there = Counter(question.document_path for question in counted)
    languages = {question.document_path: question.language for question in counted}
    languages |= {document.path: document.language for document in documents}
    asked = _asked(settings, documents, target, counted, changes)
    return [
        PlanRow(path, languages[path], "", "", NO_ANSWER, there[path] + asked.get(path, 0))
        for path in sorted(there.keys() | asked.keys())
    ]


def _asked(
    settings: PlanSettings,
    documents: Sequence[AskableDocument],
    target: Sequence[PlanRow],
    there: Sequence[Question],
    changes: Sequence[DocumentChange],
) -> dict[str, int]:
    """Return how many are asked for from which document."""
    weights = weights_of(settings, documents)
    fresh = {change.document_path: change for change in changes if change.fresh}
    asked: dict[str, int] = {}
    for language, missing in _missing(settings.no_answer, target, there).items():
        usable = [d for d in documents if d.language == language and d.path in fresh and weights[d.path] > 0]
        shares = {d.path: weights[d.path] * fresh[d.path].fresh_characters / d.characters for d in usable}
        most = {d.path: room(fresh[d.path], settings.chars_per_question) for d in usable}
        asked |= {path: count for path, count in with_capacity(missing, shares, most).items() if count}
    return asked


def _missing(wanted: int, target: Sequence[PlanRow], there: Sequence[Question]) -> Mapping[str, int]:
    """Return how many are missing, by language; more of one language than planned take nothing from the others' share
    but what the whole set has too many."""
    have = Counter(question.language for question in there)
    planned: Counter[str] = Counter()
    for row in target:
        planned[row.language] += row.planned
    short = {language: max(0, count - have[language]) for language, count in sorted(planned.items())}
    most = max(0, wanted - len(there))
    if sum(short.values()) <= most:
        return short
    return largest_remainder(most, {language: float(count) for language, count in short.items()})
