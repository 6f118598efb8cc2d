"""The questions without an answer of the last frozen set, held against the documents of a new revision.

They have no evidence that could move. What a revision can do to them is answer them, and only text that is new or
changed can: where none of it comes near, a question is carried as it is, under its id, and the KB is not asked. The
others are asked again (``filters.no_answer_check``), where documents that did not change give their replies from the
ledger. In = carried + asked again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ragds_pipeline.filters.no_answer_filter import draft_of
from ragds_pipeline.filters.retrieval import PassageText, questions_for_recheck
from ragds_pipeline.golden.registry import Registered
from ragds_pipeline.records import DocumentChange, GoldenItem, Outcome, RevalidatedItem
from ragds_pipeline.records_no_answer import (
    NEAR_MISS,
    NO_ANSWER,
    NearPassage,
    NoAnswerCandidate,
    NoAnswerDraft,
    look_at,
    no_answer_id,
    no_answer_root,
)
from ragds_pipeline.storage.schemas import as_json

OPEN_NO_ANSWER = "no_answer_open"

NOTHING_NEAR = "nothing that is new or changed comes near it"
DROPPED = "a reviewer dropped it since"


@dataclass(frozen=True, slots=True)
class PassageNow:
    """Where a passage of the new revision stands."""

    id: str
    document_path: str
    start_char: int


@dataclass(frozen=True)
class KbNow:
    """What is new in the KB, as far as it can matter to a question without an answer."""

    changes: Sequence[DocumentChange]
    confidential: frozenset[str]
    confidential_before: frozenset[str]
    places: Callable[[], Iterable[PassageNow]]
    """Returns where all passages stand."""
    passages: Callable[[Collection[str] | None], Iterable[PassageText]]
    """Returns the passages of some documents with their texts, or all of them."""

    @cached_property
    def _unchanged(self) -> frozenset[str]:
        return frozenset(change.document_path for change in self.changes if change.status == "unchanged")

    def same(self, path: str) -> bool:
        """Return whether a document says what it said, and may be shown as it might."""
        return path in self._unchanged and (path in self.confidential) == (path in self.confidential_before)

    def changed(self) -> set[str]:
        """Return the ids of the passages that a question may be answered by now, and was not asked of before.

        Besides new and changed text that is what was confidential. Where a confidential document changed or went, its
        text may stand in any other that changed.
        """
        fresh = {change.document_path: frozenset(change.fresh) for change in self.changes}
        was_secret = {c.document_path for c in self.changes} & self.confidential_before - self.confidential
        if not all(self.same(path) or path in self.confidential for path in self.confidential_before):
            moved = {c.document_path for c in self.changes if c.status in ("added", "changed", "renamed")}
            was_secret |= moved - self.confidential
        return {
            passage.id
            for passage in self.places()
            if passage.document_path in was_secret or passage.start_char in fresh.get(passage.document_path, ())
        }


@dataclass(frozen=True, slots=True)
class HeldQuestion:
    """One question to be held against the new documents."""

    id: str
    """Golden id, or the candidate's id."""
    candidate: NoAnswerCandidate
    item: GoldenItem | None
    """The frozen item; None for one that is still open."""
    unknown: NoAnswerDraft | None = None
    """The draft as it was held, where not every document could be asked before."""


@dataclass
class RevalidatedQuestions:
    """What came over, what is asked again, and a row for every question."""

    carried: list[NoAnswerCandidate] = field(default_factory=list)
    to_ask: list[NoAnswerDraft] = field(default_factory=list)
    items: list[RevalidatedItem] = field(default_factory=list)


def held_questions(
    frozen: Sequence[GoldenItem],
    candidates: Sequence[NoAnswerCandidate],
    held: Sequence[NoAnswerDraft],
    dropped: Collection[str],
    register: Sequence[Registered],
    paths: Collection[str],
) -> list[HeldQuestion]:
    """Return what has to be held against the new documents: all frozen items, then what is still open.

    Args:
        frozen: The no_answer items of the frozen set.
        candidates: All questions of its revision, as asked for and as reviewers changed them.
        held: Questions that could not be asked of every document then.
        dropped: Ids of the candidates that a reviewer dropped.
        register: All golden ids.
        paths: Documents of then and now: where the tables of then are gone, an item's document is found among them.
    """
    found = [HeldQuestion(item.id, _candidate_of(item, candidates, register, paths), item) for item in frozen]
    there = {each.candidate.root_id for each in found}
    for candidate in candidates:
        # A changed question follows from the original and the decision on it, as before.
        if candidate.root_id not in there and not candidate.parent_id and candidate.id not in dropped:
            found.append(HeldQuestion(candidate.id, candidate, None))
            there.add(candidate.root_id)
    for draft in held:
        if draft.root_id not in there:
            candidate = _minimal(draft)
            found.append(HeldQuestion(candidate.id, candidate, None, draft))
            there.add(draft.root_id)
    return found


def settle_questions(
    held: Sequence[HeldQuestion], kb: KbNow, dropped: Collection[str], source_version: str, baseline: str
) -> RevalidatedQuestions:
    """Return what comes over into ``source_version`` as it is, and what the KB is asked again."""
    result = RevalidatedQuestions()
    reasons = {each.id: _must_ask(each, kb) for each in held}
    left = {each.id: each.candidate.question for each in held if not reasons[each.id]}
    changed = kb.changed() if left else set()
    near = questions_for_recheck(left, changed, kb.passages(None) if changed else ())
    texts = _standing_texts(held, kb)
    for each in held:
        why = reasons[each.id]
        if not why and each.id in near:
            why = f"text that is new or changed comes near it: {', '.join(near[each.id])}"
        now = replace(each.candidate, source_version=source_version)
        if each.candidate.id in dropped:
            why = ""
        if why:
            result.to_ask.append(_to_ask(each.unknown or draft_of(now), kb, source_version))
        else:
            result.carried.append(_shown_as_now(now, texts))
        told = why or (DROPPED if each.candidate.id in dropped else NOTHING_NEAR)
        result.items.append(_row(each, Outcome.ASKED_AGAIN if why else Outcome.CARRIED, told, baseline))
    return result


def _to_ask(draft: NoAnswerDraft, kb: KbNow, source_version: str) -> NoAnswerDraft:
    """Return the draft; a confidential document that is not what it was, nobody has looked at."""
    stale = set(look_at((), [path for path in kb.confidential | kb.confidential_before if not kb.same(path)]))
    still = tuple(line for line in draft.decided_on if line not in stale)
    return replace(draft, source_version=source_version, decided_on=still)


def _must_ask(held: HeldQuestion, kb: KbNow) -> str:
    """Return why a question has to be asked whatever comes near it, or an empty text."""
    candidate = held.candidate
    if held.unknown:
        return "not every document could be asked in the revision before"
    if candidate.document_path in kb.confidential:
        return f"{candidate.document_path} is confidential now"
    marked = {*(found.document_path for found in candidate.partly), *candidate.confidential}
    if moved := sorted(path for path in marked if not kb.same(path)):
        return f"{', '.join(moved)}: what a person was told to look at there is not what it was"
    return ""


def _standing_texts(held: Sequence[HeldQuestion], kb: KbNow) -> dict[tuple[str, str], str]:
    """Return the ids, by document and text, of those passages shown with the questions that still may be shown."""
    shown = {(p.document_path, p.content) for each in held for p in each.candidate.nearest}
    paths = {path for path, _ in shown} - kb.confidential
    found = kb.passages(paths) if paths else ()
    return {(p.document_path, p.content): p.id for p in found if (p.document_path, p.content) in shown}


def _shown_as_now(candidate: NoAnswerCandidate, texts: Mapping[tuple[str, str], str]) -> NoAnswerCandidate:
    """Return a candidate with those of its nearest passages that stand as they did, under their ids of now."""
    nearest = tuple(
        NearPassage(p.document_path, texts[p.document_path, p.content], p.content, p.score)
        for p in candidate.nearest
        if (p.document_path, p.content) in texts
    )
    return replace(candidate, nearest=nearest, chunk_id=nearest[0].chunk_id if nearest else "")


def _candidate_of(
    item: GoldenItem, candidates: Sequence[NoAnswerCandidate], register: Sequence[Registered], paths: Collection[str]
) -> NoAnswerCandidate:
    """Return a frozen item as the candidate it was frozen from."""
    id_ = item.provenance.candidate_id
    entry = next((entry for entry in reversed(register) if entry.id == item.id), None)
    root = (entry.root_id if entry else "") or id_
    origin = next((c for c in candidates if c.id == id_), None)
    # A changed refusal has no row of its own: it stands on the question that it was given to.
    origin = origin or next((c for c in candidates if c.root_id == root and c.question == item.question), None)
    if origin is not None:
        parent = origin.parent_id or (origin.id if origin.id != id_ else "")
        return replace(origin, id=id_, answer=item.answer, parent_id=parent)
    path = _document_of(item, root, paths)
    return NoAnswerCandidate(
        id=id_,
        draft_id=f"d-{id_.removeprefix('c-')}",
        document_path=path,
        chunk_id="",
        question=item.question,
        answer=item.answer,
        language=item.language,
        source_version=item.source_version,
        nearest=(),
        missing="",
        partly=(),
        confidential=(),
        documents_asked=0,
        documents_askable=0,
        documents_confidential=0,
        origin=NEAR_MISS,
        parent_id="",
        root_id=root,
        source_id="",
        round=0,
        request_key="",
        model=next(iter(item.provenance.models), ""),
        prompt_version=next(iter(item.provenance.prompt_versions), ""),
    )


def _document_of(item: GoldenItem, root: str, paths: Collection[str]) -> str:
    """Return the document of a frozen question, which its item does not name: the one that its ids are a hash of."""
    for path in sorted(paths):
        if root == no_answer_root(path, item.question):
            return path
        if item.provenance.candidate_id == no_answer_id(path, item.question, item.answer):
            return path
    return ""


def _minimal(draft: NoAnswerDraft) -> NoAnswerCandidate:
    """Return a question that was held as the candidate that it would be where nothing answers it."""
    return NoAnswerCandidate(
        id=no_answer_id(draft.document_path, draft.question, draft.refusal),
        draft_id=draft.id,
        document_path=draft.document_path,
        chunk_id="",
        question=draft.question,
        answer=draft.refusal,
        language=draft.language,
        source_version=draft.source_version,
        nearest=(),
        missing=draft.missing,
        partly=(),
        confidential=(),
        documents_asked=0,
        documents_askable=0,
        documents_confidential=0,
        origin=draft.origin,
        parent_id=draft.parent_id,
        root_id=draft.root_id,
        source_id=draft.source_id,
        round=draft.round,
        request_key=draft.request_key,
        model=draft.model,
        prompt_version=draft.prompt_version,
    )


def _row(held: HeldQuestion, outcome: Outcome, why: str, baseline: str) -> RevalidatedItem:
    candidate = held.candidate
    provenance = json.dumps(as_json(held.item.provenance), ensure_ascii=False) if held.item else ""
    return RevalidatedItem(
        id=held.id,
        member=NO_ANSWER if held.item else OPEN_NO_ANSWER,
        candidate_id=candidate.id,
        now_candidate_id=candidate.id,
        outcome=outcome,
        rung="",
        look=False,
        document_path=candidate.document_path,
        now_document_path=candidate.document_path,
        question=candidate.question,
        answer=candidate.answer,
        type=NO_ANSWER,
        language=candidate.language,
        old_evidence=(),
        now_evidence=(),
        why=why,
        diff="",
        provenance=provenance,
        baseline=baseline,
    )
