"""Top-up rounds: bounded, never more than the plan, and what is missing is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline.candidates.generate import generate
from ragds_pipeline.claude import Claude
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.code_filter import code_filter
from ragds_pipeline.filters.funnel import faults, step
from ragds_pipeline.filters.top_up import ToppedUp, room_for, top_up
from ragds_pipeline.records import PlanRow
from ragds_pipeline_tests.documents import outline
from ragds_pipeline_tests.loopback import LoopbackServer

TEXT = "# Leave\n\n" + "".join(f"Rule {n} says that team {n} gets {n + 20} days of leave.\n\n" for n in range(30))
PLAN = [
    PlanRow("rules.md", "en", "easy", "single", "fact", 3),
    PlanRow("rules.md", "en", "easy", "single", "procedure", 2),
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    with LoopbackServer() as running:
        yield running


def run(root: Path, server: LoopbackServer, plan: list[PlanRow], rounds: int = 2) -> tuple[ToppedUp, int]:
    settings = Settings.model_validate(
        {"claude": {"base_url": server.url, "check_models": False}, "plan": {"top_up_rounds": rounds}, "root": root}
    )
    outlines = {"rules.md": outline(TEXT)}
    claude = Claude(settings)
    first = generate(plan, outlines, {}, claude, settings)
    kept = code_filter(first.drafts, outlines, lambda: [("rules.md", TEXT)], settings.filters, room=room_for(plan))
    drops = first.drops + kept.drops
    done = top_up(plan, kept.candidates, drops, outlines, lambda: [("rules.md", TEXT)], claude, settings)
    claude.close()
    made = len(first.drafts) + sum(len(r.drafts) for r in done.rounds)
    came_in = sum(row.drafts + row.drops for r in [first, *done.rounds] for row in r.asked)
    all_drops = drops + done.drops
    steps = [
        step("generate", came_in, made, [d for d in all_drops if d.stage == "generate"]),
        step("code", made, len(done.candidates), [d for d in all_drops if d.stage == "code"]),
    ]
    assert faults(steps) == []
    planned = sum(row.planned for row in plan)
    assert len(done.candidates) + sum(row.missing for row in done.missing) == planned
    return done, server.calls


def rows(*numbers: int, type_: str = "fact") -> list[dict[str, Any]]:
    return [
        {
            "question": f"How much leave has team {n}?",
            "answer": f"{n + 20} days",
            "type": type_,
            "evidence_ids": [n + 2],
        }
        for n in numbers
    ]


def test_what_the_first_round_leaves_open_is_asked_again(tmp_path: Path, server: LoopbackServer) -> None:
    replies = iter([
        {"questions": rows(1, 1, 2) + rows(3, type_="procedure")},
        {"questions": rows(4) + rows(5, type_="procedure")},
    ])  # fmt: skip
    server.responder = lambda body: next(replies)
    done, calls = run(tmp_path, server, PLAN)
    assert len(done.candidates) == 5 and not done.missing and calls == 2
    asked = server.requests[1].body["messages"][0]["content"][1]["text"]
    assert "1 of type fact" in asked and "1 of type procedure" in asked
    assert "- How much leave has team 2?" in asked
    assert {c.round for c in done.candidates} == {0, 1}


def test_a_document_whose_every_question_fails_ends_after_the_rounds(tmp_path: Path, server: LoopbackServer) -> None:
    server.responder = lambda body: {
        "questions": [{"question": "q", "answer": "a", "type": "fact", "evidence_ids": [999]}] * 5
    }
    done, calls = run(tmp_path, server, PLAN)
    assert calls == 3 and not done.candidates
    assert sum(row.missing for row in done.missing) == 5
    assert {row.type: row.reasons for row in done.missing} == {
        "fact": "sentence_unknown ×15",
        "procedure": "nothing of this type came back",
    }


def test_a_model_that_answers_too_much_never_overfills_the_plan(tmp_path: Path, server: LoopbackServer) -> None:
    server.responder = lambda body: {"questions": rows(*range(20))}
    done, _ = run(tmp_path, server, PLAN)
    assert sum(c.type == "fact" for c in done.candidates) == 3
    assert sum(row.missing for row in done.missing) == 2


def test_without_rounds_nothing_is_asked_again(tmp_path: Path, server: LoopbackServer) -> None:
    server.responder = lambda body: {"questions": []}
    done, calls = run(tmp_path, server, PLAN, rounds=0)
    assert calls == 1 and sum(row.missing for row in done.missing) == 5


def test_what_cannot_be_generated_yet_is_reported_missing(tmp_path: Path, server: LoopbackServer) -> None:
    server.responder = lambda body: {"questions": rows(1, 2, 3)}
    plan = [PLAN[0], PlanRow("rules.md", "en", "medium", "multi", "fact", 4)]
    done, calls = run(tmp_path, server, plan)
    assert calls == 1
    (row,) = done.missing
    assert (row.difficulty, row.missing) == ("medium", 4) and "no_generator" in row.reasons
