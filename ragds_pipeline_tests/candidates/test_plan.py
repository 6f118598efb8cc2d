"""The question plan: exact, by language, document and type."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.candidates.plan import AskableDocument, plan_questions
from ragds_pipeline.config import ConfigError, PlanSettings

DOCUMENTS = st.lists(
    st.tuples(st.sampled_from(["en", "ja", "it"]), st.integers(200, 50_000)), min_size=1, max_size=30
).map(lambda pairs: [AskableDocument(f"d{at:02d}.md", lang, size) for at, (lang, size) in enumerate(pairs)])


@given(DOCUMENTS, st.integers(1, 300))
def test_planned_is_asked_for(documents: list[AskableDocument], questions: int) -> None:
    settings = PlanSettings(questions=questions, difficulty={"easy": 0.5, "medium": 0.5})
    rows = plan_questions(settings, documents)
    assert sum(row.planned for row in rows) == questions
    by_type = Counter[str]()
    by_difficulty = Counter[str]()
    for row in rows:
        by_type[row.type] += row.planned
        by_difficulty[row.difficulty] += row.planned
        assert row.planned > 0
    assert abs(by_difficulty["easy"] - by_difficulty["medium"]) <= 1
    for type_, share in settings.types.items():
        assert abs(by_type[type_] - questions * share / sum(settings.types.values())) < 1 + 1e-9


def test_few_questions_reach_all_large_documents_alike() -> None:
    documents = [AskableDocument(f"{n}.md", "en", 10_000) for n in range(10)]
    rows = plan_questions(PlanSettings(questions=10), documents)
    assert Counter(row.document_path for row in rows) == Counter({doc.path: 1 for doc in documents})


def test_language_shares_and_document_weights() -> None:
    documents = [
        AskableDocument("hr/a.md", "en", 8_000),
        AskableDocument("it/b.md", "it", 8_000),
        AskableDocument("ja/c.md", "ja", 8_000),
        AskableDocument("old/d.md", "en", 8_000),
    ]
    settings = PlanSettings(questions=20, languages={"en": 2, "ja": 2, "it": 1}, documents={"old/**": 0})
    rows = plan_questions(settings, documents)
    counts = Counter[str]()
    for row in rows:
        counts[row.document_path] += row.planned
    assert counts == {"hr/a.md": 8, "ja/c.md": 8, "it/b.md": 4}


def test_a_language_nobody_writes_is_an_error_at_once() -> None:
    with pytest.raises(ConfigError, match="fr"):
        plan_questions(PlanSettings(languages={"fr": 1}), [AskableDocument("a.md", "en", 5_000)])


def test_no_document_to_ask_says_why() -> None:
    with pytest.raises(ConfigError, match="200 characters"):
        plan_questions(PlanSettings(), [AskableDocument("a.md", "en", 10)])
