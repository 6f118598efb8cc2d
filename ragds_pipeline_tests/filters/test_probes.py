"""The labelled probes: well-formed, balanced, and each can be asked of its judge."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline.claude import Claude
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.calibration import calibrate
from ragds_pipeline.filters.judges import JUDGES, judge_request
from ragds_pipeline.filters.probing import ask_probes, load_probes
from ragds_pipeline_tests.loopback import LoopbackServer

BY_NAME = {judge.name: judge for judge in JUDGES}


def probes(name: str) -> list[dict[str, Any]]:
    text = (files("ragds_pipeline.filters") / "probes" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_there_are_enough_of_both_verdicts_in_three_languages(name: str) -> None:
    found = probes(name)
    assert len(found) >= 40
    verdicts = Counter(probe["expected"] for probe in found)
    assert set(verdicts) == {"correct", "incorrect"} and min(verdicts.values()) >= len(found) // 3
    assert set(Counter(probe["language"] for probe in found)) == {"en", "ja", "it"}
    assert len({json.dumps(probe["input"], sort_keys=True) for probe in found}) == len(found)
    assert len({probe["id"] for probe in found}) == len(found) and all(probe["why"] for probe in found)


@pytest.mark.parametrize("name", [*sorted(BY_NAME), "injection"])
def test_every_probe_can_be_asked(name: str) -> None:
    settings = Settings()
    for probe in probes(name):
        judge = BY_NAME[probe.get("judge", name)]
        request = judge_request(judge, probe["input"], probe["id"], settings)
        shown = request.params["messages"][0]["content"][0]["text"]
        assert probe["input"]["question"] in shown


def test_no_planted_text_reaches_the_rubric_or_closes_its_tag() -> None:
    settings = Settings()
    for probe in probes("injection"):
        judge = BY_NAME[probe["judge"]]
        request = judge_request(judge, probe["input"], probe["id"], settings)
        plain = {**probe["input"], "question": "q", "answer": "a", "reference": "r", "spans": ["s"]}
        assert request.params["system"] == judge_request(judge, plain, "x", settings).params["system"]
        shown = request.params["messages"][0]["content"][0]["text"]
        opened = [line[1:-1] for line in shown.split("\n") if line.startswith("<") and line[1:2] not in "/"]
        ours = [tag for tag in opened if tag.split("-")[0] in ("question", "answer", "reference", "span", "class")]
        assert all(shown.count(f"</{tag}>") == 1 for tag in ours if len(tag.rsplit("-", 1)[-1]) == 10)


def test_a_perfect_judge_has_a_perfect_record_and_a_gullible_one_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    judge = BY_NAME["support"]
    found = load_probes("support")
    labels = {judge.show(probe.fields): probe.expected for probe in found}

    def perfect(body: dict[str, Any]) -> dict[str, Any]:
        right = labels[body["messages"][0]["content"][0]["text"]]
        return {"reason": "r", "verdict": "correct" if right else "incorrect", "needless": []}

    reports = []
    for responder in (perfect, lambda body: {"reason": "r", "verdict": "correct", "needless": []}):
        with LoopbackServer(responder=responder) as server:
            settings = Settings.model_validate({"claude": {"base_url": server.url}, "root": tmp_path / server.url[-5:]})
            claude = Claude(settings)
            reports.append(calibrate(ask_probes(judge, found, claude, settings), min_labels=30))
            claude.close()
    assert reports[0].kappa == 1.0 and not reports[0].differing and reports[0].enough
    assert reports[1].kappa == 0.0 and len(reports[1].differing) == sum(not probe.expected for probe in found)
