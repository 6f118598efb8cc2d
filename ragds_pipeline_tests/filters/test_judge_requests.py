"""How judges are asked: effort and thinking, shared rubrics from the cache, many of them by batch, checked models."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline.claude import Claude
from ragds_pipeline.config import ConfigError, Settings
from ragds_pipeline.filters.assets import verdict_facts
from ragds_pipeline.filters.claude_filter import judge_all
from ragds_pipeline.filters.closed_book import answer_request
from ragds_pipeline.filters.in_parts import Tally
from ragds_pipeline.filters.judges import AMBIGUITY, CLOSED_BOOK, JUDGES, cached_rubric, judge_request
from ragds_pipeline.records import Verdict
from ragds_pipeline_tests.filters.test_judges import candidates, passing
from ragds_pipeline_tests.loopback import LoopbackServer

FIELDS = {
    "question": "q", "answer": "a", "reference": "r", "spans": ["s"], "type": "fact", "difficulty": "easy",
    "hops": "single",
}  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    with LoopbackServer(responder=passing) as running:
        yield running


def settings(root: Path, url: str | None, judges: dict[str, Any] | None = None, **claude: Any) -> Settings:
    enabled = [judge.name for judge in JUDGES]
    given = {"base_url": url, "check_models": False, "batch_poll_s": 0.01, "batch_poll_max_s": 0.05, **claude}
    return Settings.model_validate(
        {"claude": given, "filters": {"judges": {"enabled": enabled, **(judges or {})}}, "root": root}
    )


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
def test_effort_and_thinking_of_the_judge_are_sent_and_nothing_of_them_by_default(judge: Any) -> None:
    plain = judge_request(judge, FIELDS, "x", Settings()).params
    assert set(plain["output_config"]) == {"format"} and "thinking" not in plain
    models = {"judge": {"model": "claude-sonnet-5-5", "effort": "low", "thinking": "disabled"}}
    ours = Settings.model_validate({"claude": {"models": models}})
    sent = judge_request(judge, FIELDS, "x", ours).params
    assert sent["output_config"]["effort"] == "low" and sent["thinking"] == {"type": "disabled"}
    assert {**sent["output_config"], "effort": None}.keys() == {"format", "effort"}
    prompted = Settings.model_validate({"claude": {"models": models, "structured_outputs": False}})
    assert judge_request(judge, FIELDS, "x", prompted).params["output_config"] == {"effort": "low"}


def test_another_model_answers_the_closed_book_with_its_own_effort() -> None:
    models = {"judge": {"model": "claude-sonnet-5-5", "effort": "low"}}
    ours = Settings.model_validate({"claude": {"models": models}})
    own, other = (
        answer_request("q", "x", model, ours, 0).params for model in ("claude-sonnet-5-5", "claude-haiku-5-5")
    )
    assert own["output_config"]["effort"] == "low" and "effort" not in other["output_config"]


def test_rubrics_are_read_from_the_cache_by_all_but_the_first(tmp_path: Path, server: LoopbackServer) -> None:
    ours = settings(tmp_path, server.url)
    claude = Claude(ours)
    judge_all(candidates(8), claude, ours)
    rows = {task: [r for r in claude.ledger.rows() if r["task"] == task] for task in tasks(claude)}
    claude.close()
    for judge in (AMBIGUITY, *JUDGES[2:]):
        read = [row["cache_read_input_tokens"] for row in rows[judge.task]]
        written = [row["cache_creation_input_tokens"] for row in rows[judge.task]]
        assert sorted(map(bool, read)) == [False] + [True] * 7 and sum(map(bool, written)) == 1, judge.name
        assert max(read) == max(written) >= 512
    assert not any(row["cache_read_input_tokens"] for row in rows["answer_closed_book"]), "too short to be cached"


def tasks(claude: Claude) -> list[str]:
    return sorted({row["task"] for row in claude.ledger.rows()})


def test_what_cannot_be_cached_is_said() -> None:
    assert cached_rubric(AMBIGUITY, Settings()).startswith("yes")
    old = Settings.model_validate({"claude": {"models": {"judge": "claude-haiku-4-5"}}})
    assert "caches nothing shorter than 4096" in cached_rubric(CLOSED_BOOK, old)
    assert "claude.caching is off" in cached_rubric(AMBIGUITY, Settings.model_validate({"claude": {"caching": False}}))


def test_more_requests_than_batch_above_go_as_a_batch_with_the_same_keys(
    tmp_path: Path, server: LoopbackServer
) -> None:
    def run(root: Path, above: int) -> tuple[set[str], set[str], list[str], Decimal]:
        ours, said = settings(root, server.url, {"batch_above": above}), list[str]()
        claude = Claude(ours, say=said.append)
        judge_all(candidates(6), claude, ours)
        rows = list(claude.ledger.rows())
        cost = sum((Decimal(row["cost_usd"]) for row in rows), Decimal(0))
        claude.close()
        return {row["key"] for row in rows}, {row["backend"] for row in rows}, said, cost

    direct, batched, at_limit = (run(tmp_path / name, above) for name, above in (("a", 0), ("b", 5), ("c", 6)))
    assert direct[0] == batched[0] == at_limit[0] and (direct[1], batched[1], at_limit[1]) == (
        {"api"},
        {"batch"},
        {"api"},
    )
    assert any("6 requests go as a batch" in line for line in batched[2]) and not any("batch" in s for s in direct[2])
    assert batched[3] < direct[3]


def test_what_was_answered_before_is_not_counted_for_the_batch(tmp_path: Path, server: LoopbackServer) -> None:
    for count, backend in ((4, {"api"}), (6, {"api"}), (12, {"api", "batch"})):
        ours = settings(tmp_path, server.url, {"batch_above": 5})
        claude = Claude(ours)
        judge_all(candidates(count), claude, ours)
        assert {row["backend"] for row in claude.ledger.rows()} == backend, count
        claude.close()


def test_another_server_gets_batches_only_where_the_project_says_so(tmp_path: Path, server: LoopbackServer) -> None:
    from ragds_pipeline.filters.judging import batch_above

    assert batch_above(settings(tmp_path, server.url)) is None and batch_above(settings(tmp_path, None)) == 200
    assert batch_above(settings(tmp_path, server.url, {"batch_above": 200})) == 200
    assert batch_above(settings(tmp_path, None, {"batch_above": 0})) is None


def test_an_estimate_knows_of_the_batch(tmp_path: Path, server: LoopbackServer) -> None:
    claude = Claude(settings(tmp_path, server.url))
    asked = [judge_request(AMBIGUITY, {**FIELDS, "question": str(n)}, str(n), Settings()) for n in range(6)]
    direct, batched = claude.estimate(asked), claude.estimate(asked, batch_above=5)
    claude.close()
    assert "discount of batches" in batched.basis and batched.cost_usd < direct.cost_usd


def test_models_of_the_closed_book_are_checked_and_priced_at_the_start(tmp_path: Path, server: LoopbackServer) -> None:
    unknown = settings(tmp_path, server.url, {"closed_book_models": ["claude-nobody"]})
    with pytest.raises(ConfigError, match="price of claude-nobody"):
        Claude(unknown)
    prices = {"claude-nobody": {"input": 1, "output": 1}}
    ours = settings(tmp_path, server.url, {"closed_book_models": ["claude-nobody"]}, prices=prices, check_models=True)
    claude = Claude(ours)
    with pytest.raises(ConfigError, match="claude-nobody is not a model of this server"):
        judge_all(candidates(1), claude, ours)
    claude.close()
    assert server.calls == 0
    off = settings(tmp_path, server.url, {"closed_book_models": ["claude-nobody"], "enabled": ["support"]})
    Claude(off).close()


def test_the_flip_rate_is_that_of_the_items_voted_on() -> None:
    found = candidates(3)
    votes = [("correct",), ("incorrect",) * 3, ("incorrect", "correct", "correct")]
    verdicts = [Verdict(c.id, "support", True, "ok", "r", votes=v) for c, v in zip(found, votes, strict=True)]
    tally, one = Tally(), Tally()
    tally.add(found, verdicts)
    facts = verdict_facts(tally)
    assert facts["flip rate"] == "50% of the items voted on" and facts["voted on"] == 2
    one.add(found, verdicts[:1])
    assert verdict_facts(one)["flip rate"] == "nothing was voted on"
