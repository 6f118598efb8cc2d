"""Why is a question in the set, or not? Everything the tables say about one id, in the order in which it happened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from ragds_pipeline.config import Settings
from ragds_pipeline.filters.audit import auditable, drawn, dropped_candidates
from ragds_pipeline.filters.funnel_report import MEANINGS
from ragds_pipeline.filters.judges import JUDGES
from ragds_pipeline.golden.accept import REASONS as REVIEW
from ragds_pipeline.golden.items import REASONS as FREEZE
from ragds_pipeline.golden.items import STAGE as FREEZE_STAGE
from ragds_pipeline.records import Candidate, Decision, Draft, Drop, GoldenItem, RevalidatedItem, Verdict
from ragds_pipeline.resources import TABLES
from ragds_pipeline.storage.tables import TableFile
from ragds_pipeline.why_no_answer import no_answer_story

R = TypeVar("R")

DRAFTS = ("drafts", "top_up_drafts")
CANDIDATES = ("first_candidates", "candidates")
DROPS = ("draft_drops", "code_drops", "judge_drops", "top_up_drops", "golden_drops")


_JUDGES = {judge.name for judge in JUDGES}


class UnknownId(LookupError):
    """No table knows the id."""


def why(settings: Settings, source_version: str, id_: str) -> str:
    """Return the story of a draft (``d-``), candidate (``c-``) or golden item (``g-``, ``n-``), for a terminal.

    Raises UnknownId where no table of the revision knows it.
    """
    known = _Known(settings.data_dir / TABLES, source_version)
    ids = known.related(id_)
    lines = [_draft(known.drafts[each]) for each in sorted(ids) if each in known.drafts]
    lines += [_revalidated(item) for item in known.came_over if item.candidate_id in ids]
    lines += [_candidate(known.candidates[each]) for each in sorted(ids) if each in known.candidates]
    for verdict in known.verdicts:
        if verdict.candidate_id in ids:
            votes = f", votes {' '.join(verdict.votes)}" if len(verdict.votes) > 1 else ""
            by = f"{verdict.model}, {verdict.prompt_version}{votes}"
            lines.append(f"{verdict.stage}: {verdict.reason}. {verdict.detail} ({by})")
    for drop in known.drops:
        if drop.item_id in ids:
            meaning = known.meanings.get(drop.reason, "")
            told = f"{drop.reason} ({meaning})" if meaning else drop.reason
            lines.append(f"dropped by {drop.stage}: {told}. {drop.detail}")
    lines += _audit(known, ids, settings)
    for decision in known.decisions:
        if decision.candidate_id in ids:
            lines.append(f"review: {decision.keep} by {decision.reviewer}, {decision.source}. {decision.note}".rstrip())
            if decision.corrected:
                corrected = json.loads(decision.corrected)
                lines.append(f"  corrected to: {corrected['question']}\n  answer: {corrected['answer']}")
    lines += [
        f"golden set: {item.id}, {item.split}, first frozen in {item.provenance.first_frozen_in}"
        for item in known.golden.values()
        if item.provenance.candidate_id in ids
    ]
    root = settings.data_dir / TABLES
    without = no_answer_story(lambda names, record: _rows(root, source_version, names, record), id_)
    # The decisions on both sets are in one table, which both stories tell of.
    lines += [line for line in without if line not in lines]
    if not lines:
        raise UnknownId(f"{id_} is in no table of revision {source_version}; ids begin with d-, c-, g- or n-")
    return "\n".join(lines)


class _Known:
    """All that the tables of one revision say."""

    meanings: Mapping[str, str] = {**MEANINGS, **REVIEW, **FREEZE}

    def __init__(self, root: Path, version: str) -> None:
        self.golden = {item.id: item for item in _rows(root, version, ("golden_items",), GoldenItem)}
        self.drafts = {d.id: d for d in _rows(root, version, DRAFTS, Draft)}
        self.drops = list(_rows(root, version, DROPS, Drop))
        self.verdicts = list(_rows(root, version, ("verdicts",), Verdict))
        self.came_over = list(_rows(root, version, ("revalidated_items",), RevalidatedItem))
        self.decisions = list(_rows(root, version, ("review_decisions",), Decision))
        # What a judge dropped in a top-up round is in no table of candidates, but whole in its drop.
        by_judges = [drop for drop in self.drops if drop.stage in _JUDGES]
        self.auditable = {candidate.id for candidate in auditable(by_judges)}
        self.candidates = {
            **dropped_candidates(by_judges),
            **{c.id: c for c in _rows(root, version, CANDIDATES, Candidate)},
        }

    def related(self, id_: str) -> set[str]:
        """Return the ids of the same question in all its forms: draft, candidate, corrected candidate."""
        item = self.golden.get(id_)
        ids = {item.provenance.candidate_id if item else id_}
        links = [(c.id, c.draft_id) for c in self.candidates.values() if c.draft_id] + list(self._corrections())
        for each in self.came_over:
            links += [(each.id, each.candidate_id), (each.candidate_id, each.now_candidate_id or each.candidate_id)]
        while more := {b for pair in links for a, b in (pair, pair[::-1]) if a in ids} - ids:
            ids |= more
        return ids

    def _corrections(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of a candidate and its corrected form, told by document and question."""
        forms = {(i.passages[0].document_path, i.question): i.provenance.candidate_id for i in self.golden.values()}
        forms |= {
            (drop.document_path, drop.question): drop.item_id for drop in self.drops if drop.stage == FREEZE_STAGE
        }
        for decision in self.decisions:
            if decision.corrected and (parent := self.candidates.get(decision.candidate_id)):
                form = forms.get((parent.document_path, json.loads(decision.corrected)["question"]))
                if form:
                    yield parent.id, form


def _audit(known: _Known, ids: set[str], settings: Settings) -> list[str]:
    review = settings.review
    return [
        f"on the review sheet, unmarked, to audit the judge (review.audit_share); it does not enter the set: {each}"
        for each in sorted(ids & known.auditable)
        if drawn(each, review.audit_share, review.audit_seed)
    ]


def _rows(root: Path, version: str, assets: tuple[str, ...], record: type[R]) -> Iterator[R]:
    for asset in assets:
        table = TableFile(root / asset / f"{version}.parquet")
        if table.path.exists():
            yield from table.records(record)


def _revalidated(item: RevalidatedItem) -> str:
    rung = f" ({item.rung})" if item.rung else ""
    told = f"{item.id}, held against {item.baseline}: {item.outcome}{rung}. {item.why}"
    return f"{told}\n  {item.diff}" if item.diff else told


def _draft(draft: Draft) -> str:
    return f"{draft.id}, round {draft.round}, {draft.document_path}: {draft.question} ({draft.model})"


def _candidate(candidate: Candidate) -> str:
    spans = "; ".join(f"{e.document_path}[{e.start_char}:{e.end_char}]" for e in candidate.evidence)
    return f"{candidate.id}: {candidate.question}\n  answer: {candidate.answer}\n  evidence: {spans}"
