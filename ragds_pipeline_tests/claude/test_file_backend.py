"""Requests out and results in: what is written can be read by a batch, what comes back is told apart."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import anthropic
import pytest

from ragds_pipeline.claude.backends.file import BadRecording, ResultsTally, read_results, write_requests
from ragds_pipeline_tests.claude.batch_driver import request, requests_of
from ragds_pipeline_tests.loopback import BatchPlan, Fault, LoopbackServer


def result(key: str, text: str = "yes", kind: str = "succeeded") -> str:
    body: dict[str, Any] = {"type": kind}
    if kind == "succeeded":
        body["message"] = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    if kind == "errored":
        body["error"] = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    return json.dumps({"custom_id": key, "result": body}) + "\n"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_what_is_written_is_a_batch_and_its_results_answer_it(tmp_path: Path) -> None:
    requests = requests_of("q\u2028", 6)
    hurt = {requests[0].key: "expired", requests[1].key: Fault("overloaded")}
    assert write_requests([*requests, requests[2]], tmp_path / "out" / "test.jsonl") == 6
    with LoopbackServer(batches=BatchPlan(polls=0, items=hurt)) as server:  # type: ignore[arg-type]
        client = anthropic.Anthropic(base_url=server.url, api_key="key")
        entries: Any = lines(tmp_path / "out" / "test.jsonl")
        batch = client.messages.batches.create(requests=entries)
        found = [line.model_dump_json() for line in client.messages.batches.results(batch.id)]
    (tmp_path / "results.jsonl").write_text("\n".join(found), encoding="utf-8")
    tally = ResultsTally()
    replies = dict(read_results(tmp_path, {r.key for r in requests}, tally))
    assert replies.keys() == {r.key for r in requests[2:]}
    assert str(tally) == "4 replies found, 1 errored (overloaded_error), 1 expired"


def test_the_manifest_says_what_each_request_is_for(tmp_path: Path) -> None:
    requests = requests_of("q", 3)
    write_requests(requests, tmp_path / "test.jsonl")
    manifest = lines(tmp_path / "test.manifest.jsonl")
    assert [row["custom_id"] for row in manifest] == [row["custom_id"] for row in lines(tmp_path / "test.jsonl")]
    assert {row["custom_id"]: row["item"] for row in manifest} == {r.key: r.item for r in requests}


def test_repeated_unknown_and_late_results_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        result("k1", "first") + result("k2", kind="errored") + result("elsewhere"), encoding="utf-8"
    )
    (tmp_path / "b.jsonl").write_text(
        "\ufeff" + result("k1", "second") + "\r\n" + result("k2", "late") + result("k3", kind="canceled"),
        encoding="utf-8",
    )
    tally = ResultsTally()
    replies = {key: message["content"][0]["text"] for key, message in read_results(tmp_path, {"k1", "k2", "k3"}, tally)}
    assert replies == {"k1": "first", "k2": "late"}
    assert (tally.replies, tally.unknown, tally.repeated) == (2, 1, 1)
    assert tally.unanswered == {"errored (overloaded_error)": 1, "canceled": 1}


@pytest.mark.parametrize(
    "line",
    [
        b"not json", b"[]", b'{"custom_id": "k"}', b'{"custom_id": 3, "result": {"type": "expired"}}', b"\xff\xfe",
        b'{"custom_id": "k", "result": {"type": "succeeded", "message": {}}}',
        b'{"custom_id": "k", "result": {"type": "succeeded", "message": 3}}',
        b'{"custom_id": "k", "result": {"type": "lost"}}', b'{"custom_id": "k", "params": {}}',
        b'{"custom_id": "k", "re',
    ],
)  # fmt: skip
def test_a_line_that_is_no_result_is_named(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "r.jsonl").write_bytes(result("k0").encode() + b"\n" + line + b"\n")
    with pytest.raises(BadRecording, match=r"r\.jsonl:3"):
        dict(read_results(tmp_path))


def test_a_folder_that_is_not_there_has_no_results(tmp_path: Path) -> None:
    assert list(read_results(tmp_path / "none")) == []


def test_a_large_file_is_read_a_line_at_a_time(tmp_path: Path) -> None:
    with (tmp_path / "r.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(result(f"k{n}", "x" * 10_000) for n in range(2_000))
    tracemalloc.start()
    count = sum(1 for _ in read_results(tmp_path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 2_000 and most < 5_000_000, "20 MB of results"


def test_the_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    write_requests(requests_of("q", 2), path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_requests([request("q", metadata={1, 2})], path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["test.jsonl", "test.manifest.jsonl"]
