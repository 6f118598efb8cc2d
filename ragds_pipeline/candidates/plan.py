"""The question plan: how many questions of which kind from which document, decided before anything is asked.

The total planned is the total asked for. What the documents are too small to carry is not planned away silently:
it is an error if nothing can be asked at all, else it goes to the other documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pathspec

from ragds_pipeline.candidates.apportion import largest_remainder, two_way, with_capacity
from ragds_pipeline.config import ConfigError, PlanSettings
from ragds_pipeline.records import Difficulty, Hops, PlanRow

HOPS = {Difficulty.EASY: Hops.SINGLE, Difficulty.MEDIUM: Hops.MULTI, Difficulty.HARD: Hops.WIDE}
"""The kind of question that each difficulty asks for."""


@dataclass(frozen=True, slots=True)
class AskableDocument:
    """What the plan needs to know of a document."""

    path: str
    language: str
    characters: int


def plan_questions(settings: PlanSettings, documents: Sequence[AskableDocument]) -> list[PlanRow]:
    """Return exact counts per document, difficulty and type, which add up to ``settings.questions``.

    ``documents`` are those that may be sent to a model. A document is asked for at most one question per
    ``chars_per_question`` characters; only if that leaves too little room in the whole KB is the limit lifted.
    Raises ConfigError where no document can be asked, or a share names a language that no document has.
    """
    weights = weights_of(settings, documents)
    usable = [doc for doc in documents if weights[doc.path] > 0]
    if not usable:
        raise ConfigError(
            f"no document can be asked: {len(documents)} may be sent to a model, and none of them has "
            f"{settings.min_document_chars} characters and a weight above 0 (plan in ragds.yaml)"
        )
    by_language: dict[str, list[AskableDocument]] = {}
    for doc in usable:
        by_language.setdefault(doc.language, []).append(doc)
    languages = _language_counts(settings, by_language, weights)
    difficulties = largest_remainder(settings.questions, settings.difficulty)
    types = largest_remainder(settings.questions, settings.types)
    rows: list[PlanRow] = []
    documents_counts = [
        (doc, count)
        for language, total in languages.items()
        for doc, count in _document_counts(total, by_language[language], weights, settings.chars_per_question)
    ]
    by_difficulty = two_way(documents_counts, {str(k): v for k, v in difficulties.items()})
    cells = [((doc, level), n) for doc, levels in by_difficulty for level, n in levels.items()]
    for (doc, level), counts in two_way(cells, types):
        for type_, planned in counts.items():
            if planned:
                hops = HOPS[Difficulty(level)]
                rows.append(PlanRow(doc.path, doc.language, level, str(hops), type_, planned))
    return sorted(rows, key=lambda row: (row.document_path, row.difficulty, row.type))


def weights_of(settings: PlanSettings, documents: Sequence[AskableDocument]) -> dict[str, float]:
    """Return the weight of each document, by path: its size times what ``plan.documents`` says; 0 for none at all."""
    specs = [(pathspec.GitIgnoreSpec.from_lines([p]), share) for p, share in settings.documents.items()]
    weights = {}
    for doc in documents:
        factor = next((share for spec, share in specs if spec.match_file(doc.path)), 1.0)
        weights[doc.path] = factor * doc.characters if doc.characters >= settings.min_document_chars else 0.0
    return weights


def _language_counts(
    settings: PlanSettings, by_language: dict[str, list[AskableDocument]], weights: dict[str, float]
) -> dict[str, int]:
    if not settings.languages:
        sizes = {lang: sum(weights[doc.path] for doc in docs) for lang, docs in sorted(by_language.items())}
        return largest_remainder(settings.questions, sizes)
    unknown = [lang for lang, share in settings.languages.items() if share > 0 and lang not in by_language]
    if unknown:
        raise ConfigError(
            f"plan.languages asks for {', '.join(unknown)}, but the documents that can be asked are in "
            f"{', '.join(sorted(by_language))}"
        )
    return largest_remainder(settings.questions, {k: v for k, v in settings.languages.items() if v > 0})


def _document_counts(
    total: int, documents: list[AskableDocument], weights: dict[str, float], chars_per_question: int
) -> list[tuple[AskableDocument, int]]:
    by_path = {doc.path: doc for doc in documents}
    own = {path: weights[path] for path in by_path}
    capacity = {doc.path: max(1, doc.characters // chars_per_question) for doc in documents}
    counts = with_capacity(total, own, capacity)
    if (left := total - sum(counts.values())) > 0:
        for path, count in largest_remainder(left, own).items():
            counts[path] += count
    return [(by_path[path], count) for path, count in counts.items() if count]
