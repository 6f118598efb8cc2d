"""Whether the configured models exist and can do what is configured, told before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ragds_pipeline.claude import capabilities
from ragds_pipeline.claude.capabilities import check_models, model_warnings, stop_on_problems
from ragds_pipeline.config import ClaudeSettings, ConfigError, ModelSettings
from ragds_pipeline_tests.loopback import Fault, FaultPlan, LoopbackServer
from ragds_pipeline_tests.loopback.models import MODELS


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setattr(capabilities, "_known", {})
    with LoopbackServer() as running:
        yield running


def settings(server: LoopbackServer, models: dict[str, Any] | None = None, **claude: Any) -> ClaudeSettings:
    return ClaudeSettings.model_validate({"base_url": server.url, "models": models or {}, **claude})


def stops(server: LoopbackServer, models: dict[str, Any] | None = None, **claude: Any) -> list[str]:
    return [p.text for p in check_models(settings(server, models, **claude), "key") if p.stops]


def test_the_defaults_have_no_problems_and_are_asked_once(server: LoopbackServer) -> None:
    assert check_models(settings(server), "key") == []
    asked = len(server.requests)
    assert asked == len(ModelSettings().ids)
    check_models(settings(server), "key")
    assert len(server.requests) == asked


@pytest.mark.parametrize(
    ("models", "claude", "said"),
    [
        ({"judge": "claude-sonet-5-5"}, {}, "perhaps claude-sonnet-5-5 is meant"),
        ({"judge": {"model": "claude-opus-5-5", "thinking": "disabled"}}, {}, "judge: .* thinking disabled"),
        ({"judge": {"effort": "max", "thinking": "between_tools"}}, {}, "judge: .* max only while it thinks"),
    ],
)
def test_what_cannot_work_stops_with_what_to_change(
    server: LoopbackServer, models: dict[str, Any], claude: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        stop_on_problems(check_models(settings(server, models, **claude), "key"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"structured_outputs": False}, "set claude.structured_outputs: false"),
        ({"lifecycle": "retired"}, "is retired"),
    ],
)
def test_a_model_that_changed_stops_the_run(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str
) -> None:
    monkeypatch.setitem(MODELS, "claude-haiku-5-5", replace(MODELS["claude-haiku-5-5"], **change))
    (text,) = stops(server)
    assert text.startswith("retriever: claude-haiku-5-5") and said in text


def test_what_is_not_asked_for_need_not_be_there(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "claude-haiku-5-5", replace(MODELS["claude-haiku-5-5"], structured_outputs=False))
    assert stops(server, structured_outputs=False) == []


def test_too_long_a_reply_stops(server: LoopbackServer) -> None:
    problems = check_models(settings(server, {"judge": "claude-haiku-4-5"}), "key", max_tokens=100_000)
    assert [p.text for p in problems if p.stops] == [
        "judge: claude-haiku-4-5 replies with at most 64000 tokens; 100000 are asked for"
    ]


def test_a_deprecated_model_is_a_warning_with_its_end(server: LoopbackServer) -> None:
    (problem,) = check_models(settings(server, {"judge": "claude-sonnet-4-5"}), "key")
    assert not problem.stops and "ends on 2026-11-30" in problem.text


@pytest.mark.parametrize("kind", ["not_found", "server_error", "drop", "html_502"])
def test_a_server_without_the_endpoint_is_a_warning(server: LoopbackServer, kind: Any) -> None:
    server.faults = FaultPlan(shares=[(Fault(kind, retry_after_ms=1), 1.0)], endpoints=["models"])
    problems = check_models(settings(server, {"judge": "my-own-model"}), "key")
    assert problems and not any(p.stops for p in problems)
    if kind == "not_found":
        assert [p.text for p in problems] == ["the server does not describe its models, so they are not checked"]


def test_a_judge_of_its_own_text_is_a_warning_unless_wanted() -> None:
    same = {"judge": "claude-opus-5-5"}
    (text,) = model_warnings(ClaudeSettings.model_validate({"models": same}))
    assert "same_judge: true" in text
    assert model_warnings(ClaudeSettings.model_validate({"models": {**same, "same_judge": True}})) == []


def test_a_task_takes_a_model_or_a_mapping() -> None:
    given = {"judge": {"model": "claude-haiku-5-5", "effort": "low"}, "agent": {"thinking": "adaptive"}}
    settings = ClaudeSettings.model_validate({"models": given, "effort": "high"})
    assert settings.models.judge == "claude-haiku-5-5"
    assert (settings.task("judge").effort, settings.task("judge").thinking) == ("low", None)
    assert (settings.task("agent").model, settings.task("agent").thinking) == ("claude-opus-5-5", "adaptive")
    assert settings.task("generator").effort == "high"
    assert ClaudeSettings.model_validate(settings.model_dump()) == settings


@pytest.mark.parametrize("wrong", [{"judge": {"modell": "x"}}, {"judge": {"effort": "much"}}, {"effort": "low"}])
def test_a_mapping_with_anything_else_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"judge|effort"):
        ClaudeSettings.model_validate({"models": wrong})
