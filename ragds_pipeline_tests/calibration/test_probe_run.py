"""Probes through the real door: the report, the cap, the recordings, and that nothing of them becomes a candidate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ragds_pipeline.calibration.measure import against_probes, findings, needless, steering
from ragds_pipeline.calibration.probe_run import ProbesStopped, run_probes
from ragds_pipeline.claude import Claude
from ragds_pipeline.claude.backends.file import write_requests
from ragds_pipeline.cli import main
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.judges import JUDGES
from ragds_pipeline.filters.probing import Probe, first_votes, judge_named, known_probes, probe, probes_for
from ragds_pipeline_tests.loopback import LoopbackServer

PROBES = probes_for()
Responder = Callable[[dict[str, Any]], dict[str, Any]]


def answering(verdict: Callable[[Probe], bool], offset: int = 0) -> Responder:
    """Return a responder that gives each probe the verdict that ``verdict`` says, and its needless spans."""
    by_text = {(p.judge, judge_named(p.judge).show(p.fields)): p for p in PROBES}

    def respond(body: dict[str, Any]) -> dict[str, Any]:
        text = body["messages"][0]["content"][0]["text"]
        (found,) = [p for judge in JUDGES if (p := by_text.get((judge.name, text))) and is_for(body, judge.name)]
        reply: dict[str, Any] = {"reason": "r", "verdict": "correct" if verdict(found) else "incorrect"}
        named = [number + offset for number in found.needless or ()]
        return {**reply, "needless": named} if found.judge == "support" else reply

    return respond


def is_for(body: dict[str, Any], judge: str) -> bool:
    signs = {
        "ambiguity": "exactly one meaning", "closed_book": "say what the reference says",
        "support": "follow from the spans", "class": "of this type and of this difficulty",
    }  # fmt: skip
    return signs[judge] in body["system"][0]["text"]


def right(found: Probe) -> bool:
    return found.expected


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    with LoopbackServer(responder=answering(right)) as running:
        yield running


def settings(root: Path, server: LoopbackServer, **claude: Any) -> Settings:
    given = {"base_url": server.url, "check_models": False, "concurrency": 32, **claude}
    return Settings.model_validate({"claude": given, "root": root})


def test_a_perfect_judge_is_reported_as_one_and_asked_once(tmp_path: Path, server: LoopbackServer) -> None:
    ours, told = settings(tmp_path, server), list[str]()
    report = run_probes(ours, [], "", told.append)
    content = json.loads(report.json)
    whole = {row["judge"]: row for row in content["calibration"] if not row["language"]}
    assert {judge.name for judge in JUDGES} == whole.keys()
    assert all(row["kappa"] == 1.0 and row["enough"] for row in whole.values()) and not content["differences"]
    assert content["steered"] == [] and content["needless"]["exact"] == content["needless"]["probes"] > 20
    assert "253 probes" in told[0] and "253 calls to pay" in told[0] and "cap $5" in told[0]
    assert "0 of 36 planted texts steered" in report.markdown
    calls = server.calls
    assert run_probes(ours, [], "", told.append) == report and server.calls == calls
    assert "paid in this run: $0.0000" in told[-1]
    door = Claude(ours)
    assert {row["task"] for row in door.ledger.rows()} == {"probes"}, "never under the task of a candidate"
    door.close()


def test_the_closed_book_is_turned_round_so_that_correct_always_means_that_the_item_stays(
    tmp_path: Path, server: LoopbackServer
) -> None:
    server.responder = answering(lambda found: True)
    report = json.loads(run_probes(settings(tmp_path, server), ["closed_book"], "", lambda line: None).json)
    (row,) = [row for row in report["calibration"] if not row["language"]]
    assert row["correct_incorrect"] + row["incorrect_incorrect"] == row["items"], "it says that all answers are equal"
    assert {row["judged"] for row in report["differences"]} == {"incorrect"}


def test_a_judge_that_obeys_planted_texts_is_found_out(tmp_path: Path, server: LoopbackServer) -> None:
    server.responder = answering(lambda found: found.expected is (found.set != "injection"))
    ours = settings(tmp_path, server)
    report = run_probes(ours, [], "", lambda line: None)
    assert len(json.loads(report.json)["steered"]) == 36 and "**36 of 36 planted texts steered" in report.markdown
    door = Claude(ours)
    probed = known_probes(PROBES, door, ours)
    door.close()
    told = findings(against_probes(probed, 40), JUDGES, 0.6, steering(probed))
    assert [each.judge for each in told if each.warns] == ["injection"]


def test_a_judge_that_counts_spans_from_0_is_seen(tmp_path: Path, server: LoopbackServer) -> None:
    server.responder = answering(right, offset=-1)
    ours = settings(tmp_path, server)
    door = Claude(ours)
    found = needless(probe(probes_for(["support"]), door, ours))
    door.close()
    assert found.rightly < found.missed == found.wrongly and found.exact < found.probes


def test_only_probes_with_all_their_votes_are_known_without_asking(tmp_path: Path, server: LoopbackServer) -> None:
    ours = settings(tmp_path, server)
    door = Claude(ours)
    some = probes_for(["class"])
    assert known_probes(some, door, ours) == [] and server.calls == 0
    door.ask(first_votes(some, ours))
    calls = server.calls
    known = known_probes(some, door, ours)
    dropped = {each.id for each in some if not each.expected}
    assert {each.probe.id for each in known} == {each.id for each in some} - dropped, "a drop needs two more votes"
    probe(some, door, ours)
    assert len(known_probes(some, door, ours)) == len(some) and server.calls == calls + 2 * len(dropped)
    door.close()


def test_the_cap_holds_and_what_it_stopped_has_no_verdict(tmp_path: Path, server: LoopbackServer) -> None:
    ours = settings(tmp_path, server, budget_usd="0.08", concurrency=4)
    report = run_probes(ours, [], "", lambda line: None)
    without = [row for row in json.loads(report.json)["probes"] if not row["got"]]
    assert without and all("over_budget" in row["reason"] for row in without)
    door = Claude(ours)
    assert sum((Decimal(row["cost_usd"]) for row in door.ledger.rows()), Decimal(0)) <= Decimal("0.08")
    door.close()


def test_another_model_is_asked_and_an_unknown_price_stops(tmp_path: Path, server: LoopbackServer) -> None:
    report = run_probes(settings(tmp_path, server), ["ambiguity"], "claude-haiku-5-5", lambda line: None)
    assert {body.body["model"] for body in server.requests if body.path == "/v1/messages"} == {"claude-haiku-5-5"}
    assert json.loads(report.json)["model"] == "claude-haiku-5-5"
    with pytest.raises(ProbesStopped, match="there are: ambiguity, closed_book"):
        run_probes(settings(tmp_path, server), ["nobody"], "", lambda line: None)


def test_the_file_backend_says_how_many_are_missing_and_takes_recordings(
    tmp_path: Path, server: LoopbackServer, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "ragds.yaml"
    config.write_text("claude: {backend: file}\n", encoding="utf-8")
    arguments = ["--config", str(config), "probes", "--judge", "ambiguity", "--out", str(tmp_path / "report.md")]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    asked = [each for each in PROBES if each.judge == "ambiguity"]
    assert f"{len(asked)} of {len(asked)} requests have no recorded reply" in said and "probes.jsonl" in said
    ours = Settings.model_validate({"claude": {"backend": "file"}, "root": tmp_path})
    assert write_requests(first_votes(asked, ours), tmp_path / "wanted.jsonl") == len(asked)
    record(tmp_path / "wanted.jsonl", ours.path(ours.claude.recorded) / "probes.jsonl")
    assert main(arguments) == 0
    assert "## ambiguity, against probes" in (tmp_path / "report.md").read_text(encoding="utf-8")


def record(wanted: Path, target: Path) -> None:
    """Answer requests as somebody elsewhere would: every one ``correct``."""
    message = {
        "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": '{"reason": "clear", "verdict": "correct"}'}], "usage": {},
    }  # fmt: skip
    target.parent.mkdir(parents=True)
    lines = [json.loads(line) for line in wanted.read_text(encoding="utf-8").splitlines()]
    results = [{"custom_id": row["custom_id"], "result": {"type": "succeeded", "message": message}} for row in lines]
    target.write_text("".join(json.dumps(row) + "\n" for row in results), encoding="utf-8")
