"""Why is a question in the set, or not? Everything the tables say about one id, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from ragds_pipeline.config import Settings
from ragds_pipeline.records import Candidate, Decision, Draft, Drop, GoldenItem, Verdict
from ragds_pipeline.resources import TABLES
from ragds_pipeline.storage.tables import TableFile
from ragds_pipeline.why_no_answer import no_answer_story

R = TypeVar("R")

DRAFTS = ("drafts", "top_up_drafts")
CANDIDATES = ("first_candidates", "candidates")
DROPS = ("draft_drops", "code_drops", "judge_drops", "top_up_drops", "golden_drops")


class UnknownId(LookupError):
    """No table knows the id."""


def why(settings: Settings, source_version: str, id_: str) -> str:
    """Return the story of a draft (``d-``), candidate (``c-``) or golden item (``g-``, ``n-``), for a terminal.

    Raises UnknownId where no table of the revision knows it.
    """
    root = settings.data_dir / TABLES
    golden = {item.id: item for item in _rows(root, source_version, ("golden_items",), GoldenItem)}
    wanted = golden[id_].provenance.candidate_id if id_ in golden else id_
    candidates = {c.id: c for c in _rows(root, source_version, CANDIDATES, Candidate)}
    drafts = {d.id: d for d in _rows(root, source_version, DRAFTS, Draft)}
    ids = {wanted}
    if wanted in candidates:
        ids.add(candidates[wanted].draft_id)
    ids |= {c.id for c in candidates.values() if c.draft_id == wanted}
    lines = [_draft(drafts[each]) for each in sorted(ids) if each in drafts]
    lines += [_candidate(candidates[each]) for each in sorted(ids) if each in candidates]
    verdicts = [v for v in _rows(root, source_version, ("verdicts",), Verdict) if v.candidate_id in ids]
    lines += [f"{v.stage}: {v.reason}. {v.detail} ({v.model}, {v.prompt_version})" for v in verdicts]
    drops = [d for d in _rows(root, source_version, DROPS, Drop) if d.item_id in ids]
    lines += [f"dropped by {d.stage}: {d.reason}. {d.detail}" for d in drops]
    decisions = [d for d in _rows(root, source_version, ("review_decisions",), Decision) if d.candidate_id in ids]
    lines += [f"review: {d.keep} by {d.reviewer}, {d.source}. {d.note}".rstrip() for d in decisions]
    lines += [
        f"golden set: {item.id}, {item.split}, first frozen in {item.provenance.first_frozen_in}"
        for item in golden.values()
        if item.provenance.candidate_id in ids
    ]
    lines += no_answer_story(lambda names, record: _rows(root, source_version, names, record), id_)
    if not lines:
        raise UnknownId(f"{id_} is in no table of revision {source_version}; ids begin with d-, c-, g- or n-")
    return "\n".join(lines)


def _rows(root: Path, version: str, assets: tuple[str, ...], record: type[R]) -> Iterator[R]:
    for asset in assets:
        table = TableFile(root / asset / f"{version}.parquet")
        if table.path.exists():
            yield from table.records(record)


def _draft(draft: Draft) -> str:
    return f"{draft.id}, round {draft.round}, {draft.document_path}: {draft.question} ({draft.model})"


def _candidate(candidate: Candidate) -> str:
    spans = "; ".join(f"{e.document_path}[{e.start_char}:{e.end_char}]" for e in candidate.evidence)
    return f"{candidate.id}: {candidate.question}\n  answer: {candidate.answer}\n  evidence: {spans}"
