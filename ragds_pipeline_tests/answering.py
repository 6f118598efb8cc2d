"""A responder for the loopback server that writes questions about whatever document it is shown.

It stands for a model in tests of the pipeline's machinery: it names real sentences as evidence and mixes in the
mistakes that models make, by a hash of the prompt, so that a run can be repeated. It says nothing about quality.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_LINE = re.compile(r"^\[(\d+)\] (#* ?)(.+)$", re.MULTILINE)
_ASK = re.compile(r"^- (\d+) of type (\S+)", re.MULTILINE)
_BODY = re.compile(r"<(document-[0-9a-f]{10}) title=.*? language=\"(\w+)\">\n(.*)\n</\1>", re.DOTALL)


def answer_questions(body: dict[str, Any]) -> str:
    """Return questions about the document in the request, in the form that was asked for."""
    document, asked = (block["text"] for block in body["messages"][0]["content"])
    found = _BODY.match(document)
    assert found is not None, "the document block is not as expected"
    seed = int.from_bytes(hashlib.sha256((document + asked).encode()).digest()[:8], "big")
    text = found[3]
    sentences = "evidence_ids" in json.dumps(body)
    if sentences:
        usable = [(int(m[1]), m[3]) for m in _LINE.finditer(text) if not m[2] and len(m[3]) > 30]
        usable = usable or [(int(m[1]), m[3]) for m in _LINE.finditer(text)]
    else:
        usable = [(0, line.strip()) for line in text.split("\n") if len(line.strip()) > 30]
    questions = []
    at = seed
    for count, type_ in _ASK.findall(asked):
        for _ in range(int(count)):
            if not usable:
                break
            number, content = usable[at % len(usable)]
            at = at * 6364136223846793005 + 1442695040888963407 & (2**64 - 1)
            questions.append(_question(number, content, type_, sentences, at))
    reply = json.dumps({"questions": questions}, ensure_ascii=False)
    wrappings = [reply, reply, reply, f"Here they are:\n```json\n{reply}\n```\nDone.", reply[: len(reply) * 2 // 3]]
    return wrappings[seed % len(wrappings)] if "output_config" not in body else reply


def _question(number: int, content: str, type_: str, sentences: bool, at: int) -> dict[str, Any]:
    words = re.findall(r"\w+", content)
    topic = " ".join(words[at % max(1, len(words) - 4) :][:4])[:16] or content[:10]
    question = f"What holds for {topic} ({at % 9973})?"
    answer = f"It is said that {content[:80]}"
    if sentences:
        evidence: dict[str, Any] = {"evidence_ids": [number] if at % 17 else [number, 10**6]}
    else:
        evidence = {"evidence": [content if at % 7 else content[3:] + " really"]}
    return {"question": question if at % 23 else {"text": question}, "answer": answer, "type": type_, **evidence}
