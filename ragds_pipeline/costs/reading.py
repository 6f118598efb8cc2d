"""What the tables of a revision say of its questions, read where they lie: which there are depends on how far it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragds_pipeline.costs.items import Questions
from ragds_pipeline.storage.tables import TableFile


def questions_of(tables: Path, partition: str) -> Questions:
    """Read what the stages so far say of their questions; a table that is not there yet has no rows."""

    def rows(asset: str, *columns: str) -> list[dict[str, Any]]:
        path = tables / asset / f"{partition}.parquet"
        return TableFile(path).read(columns).to_pylist() if path.exists() else []

    told = ("document_path", "question", "round")
    drafts = [row for asset in ("drafts", "top_up_drafts") for row in rows(asset, "id", "request_key", *told)]
    stages = ("draft_drops", "code_drops", "judge_drops", "top_up_drops", "golden_drops")
    return Questions(
        drafts=drafts,
        candidates=rows("candidates", "id", "draft_id", *told),
        drops=[row for asset in stages for row in rows(asset, "stage", "reason", "item_id", *told)],
        golden=_golden(rows("golden_items", "id", "question", "provenance"), rows("review_decisions", *_DECIDED)),
    )


_DECIDED = ("candidate_id", "corrected")


def _golden(items: Sequence[Mapping[str, Any]], decisions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return golden ids by candidate; a corrected item is found under the candidate that was corrected."""
    found = {item["provenance"]["candidate_id"]: item["id"] for item in items}
    by_question = {item["question"]: item["id"] for item in items}
    for decision in decisions:
        corrected = json.loads(decision["corrected"]) if decision["corrected"] else {}
        if (golden := by_question.get(corrected.get("question", ""))) is not None:
            found = {candidate: id_ for candidate, id_ in found.items() if id_ != golden}
            found[decision["candidate_id"]] = golden
    return found
