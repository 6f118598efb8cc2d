"""A small KB in three languages with a confidential document, and a responder that stands for the model over it.

A question is answered by a document that holds its code word (``ZETA-1``) with "is", in part by one that holds it with
"perhaps"; the reply about a code word that begins with ``MUTE`` cannot be read. So a test says in its texts what is
found where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragds_pipeline.filters.no_answer_check import WholeKb
from ragds_pipeline.filters.retrieval import PassageIndex, PassageText
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import draft_id
from ragds_pipeline.records_no_answer import NEAR_MISS, NoAnswerDraft, no_answer_root
from ragds_pipeline_tests.answering import answer_questions

SECRET = "The OMEGA-1 band is 71234 crowns"

TEXTS = {
    "en/leave.md": "# Leave\n\n" + "".join(f"Staff of team {n} get {n + 20} days of leave.\n\n" for n in range(14)),
    "en/pay.md": "# Pay\n\nThe voucher ZETA-1 is worth 12 crowns.\n\nKAPPA-1 perhaps covers winter tyres.\n\n"
    + "".join(f"Pay slip {n} is sent on day {n + 1} of the month.\n\n" for n in range(14)),
    "ja/kyuka.md": "# 休暇規程\n\n"
    + "".join(f"勤続{n}年の社員には{n + 10}日の休暇を与えます。\n\n" for n in range(20)),
    "it/ferie.md": "# Ferie\n\n" + "".join(f"Il reparto {n} ha {n + 15} giorni di ferie.\n\n" for n in range(14)),
    "secret/bands.md": f"# Bands\n\n{SECRET}.\n\nThe OMEGA-1 band is paid in winter.\n",
}

KB_YAML = 'source_version: "2026-10-01"\nlanguages: [en, ja, it]\nconfidential: ["secret/**"]\n'

_DOCUMENT = re.compile(r"<(document-[0-9a-f]{10}) title=\"(.*?)\" language=\"(\w+)\">\n(.*)\n</\1>", re.DOTALL)
_PIECE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_CODE = re.compile(r"\b(?:[A-Z]{4,6}-\d+)")
_ASKED = re.compile(r"Write (\d+) near miss")


def write_kb(folder: Path, texts: Mapping[str, str] = TEXTS) -> Path:
    """Write the KB into ``folder``."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "kb.yaml").write_text(KB_YAML, encoding="utf-8")
    return folder


def kb_of(outlines: Sequence[Outline]) -> WholeKb:
    """Return a KB of ``outlines`` as questions are asked of it."""
    by_path = {outline.path: outline for outline in outlines}
    passages = {passage.id: passage for outline in outlines for passage in outline.passages}
    return WholeKb(
        index=PassageIndex(PassageText(p.id, p.document_path, p.content) for p in passages.values()),
        askable=tuple(sorted(path for path, each in by_path.items() if not each.document.confidential)),
        confidential=frozenset(path for path, each in by_path.items() if each.document.confidential),
        load=lambda paths: {path: by_path[path] for path in sorted(paths) if path in by_path},
        contents=lambda ids: {id_: passages[id_].content for id_ in ids},
    )


def no_answer_draft(question: str, path: str = "en/leave.md", language: str = "en", **fields: Any) -> NoAnswerDraft:
    """Return a near miss of the document at ``path``."""
    draft = NoAnswerDraft(
        id=draft_id(path, question),
        document_path=path,
        question=question,
        missing="the document is silent",
        language=language,
        source_version="v1",
        nearest=(),
        origin=NEAR_MISS,
        parent_id="",
        root_id=no_answer_root(path, question),
        source_id="",
        round=0,
        request_key="k",
        model="m",
        prompt_version="p",
    )
    return replace(draft, **fields)


class Model:
    """Answers every kind of request of a run.

    ``misses`` are the near misses to give, by title or language of the document; each is given once. ``unsupported`` is
    a part of a question of the main set that the support judge finds unproven.
    """

    def __init__(self, misses: Mapping[str, list[str]], unsupported: str = "never") -> None:
        self.misses = {language: list(questions) for language, questions in misses.items()}
        self.unsupported = unsupported
        self.asked: list[tuple[str, str]] = []
        """Document title and question of every request to the KB, in the order of arrival."""

    def __call__(self, body: dict[str, Any]) -> Any:
        system = body["system"][0]["text"]
        text = "\n".join(block["text"] for block in body["messages"][0]["content"])
        if "near misses" in system:
            return self._near_misses(text)
        if "does this document answer the question" in system:
            return self._kb(text)
        if "have exactly one meaning, and" in system:
            return {"reason": "clear", "verdict": "incorrect" if "VAGUE" in text else "correct"}
        if "follow from the spans" in system:
            bad = self.unsupported in text
            return {"reason": "judged", "verdict": "incorrect" if bad else "correct", "needless": []}
        return answer_questions(body)

    def _near_misses(self, text: str) -> Any:
        document, asked = _DOCUMENT.search(text), _ASKED.search(text)
        assert document is not None and asked is not None
        left = self.misses.get(document[2], self.misses.get(document[3], []))
        given = [left.pop(0) for _ in range(min(int(asked[1]), len(left)))]
        return {"questions": [{"question": q, "missing": "the document is silent", "nearest_ids": [2]} for q in given]}

    def _kb(self, text: str) -> Any:
        document = _DOCUMENT.search(text)
        question = re.search(r"<(question-[0-9a-f]{10})>\n(.*)\n</\1>", text, re.DOTALL)
        assert document is not None and question is not None
        self.asked.append((document[2], question[2]))
        said: dict[str, Any] = {"reason": "nothing on it", "answered": "no", "piece_ids": [], "answer": ""}
        for code in _CODE.findall(question[2]):
            if code.startswith("MUTE"):
                return "I would rather not say."
            for number, piece in _PIECE.findall(document[4]):
                if code in piece:
                    word = "partly" if "perhaps" in piece else "yes"
                    said = {"reason": "here", "answered": word, "piece_ids": [int(number)], "answer": piece}
        return json.dumps(said, ensure_ascii=False)
