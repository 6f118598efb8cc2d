"""A responder that generates and judges, for whole runs whose every call is paid."""

from __future__ import annotations

import json
from typing import Any

from ragds_pipeline_tests.answering import answer_questions


def answer_and_judge(body: dict[str, Any]) -> str:
    """Return questions where a document is shown, else a verdict or an answer from memory, by a hash of the prompt."""
    schema = body.get("output_config", {}).get("format", {}).get("schema", {}).get("properties", {})
    if "verdict" in schema:
        text = "".join(block["text"] for block in body["messages"][0]["content"])
        falls = sum(map(ord, text)) % 5 == 0  # the same at every vote, so that it is dropped
        needless: dict[str, list[int]] = {"needless": []} if "needless" in schema else {}
        return json.dumps({"reason": "as the rubric says", "verdict": "incorrect" if falls else "correct", **needless})
    if "known" in schema:
        return json.dumps({"known": False, "answer": ""})
    return answer_questions(body)
