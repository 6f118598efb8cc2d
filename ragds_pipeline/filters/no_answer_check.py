"""Does the KB answer it after all? Retrieve, then ask document by document; one answer is enough to drop a question.

The documents that come nearest are asked first, with that of the question among them; a question that one of them
answers is not asked of the others. What code and judges let through comes out as a candidate with its refusal, and
with everything that a person should look at. For every call: drafts in = candidates + drops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragds_pipeline.claude import Claude
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.judges import AMBIGUITY
from ragds_pipeline.filters.judging import OK, ask_judge
from ragds_pipeline.filters.no_answer_filter import drop_of
from ragds_pipeline.filters.refusals import refusal
from ragds_pipeline.filters.retrieval import PassageIndex, Ranked, documents_in_order
from ragds_pipeline.filters.whole_kb import (
    NONE,
    PARTLY,
    STAGE,
    YES,
    Found,
    ShownWindow,
    kb_request,
    read_found,
    shown_windows,
)
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Drop, Verdict, canonical_json
from ragds_pipeline.records_no_answer import (
    KbAnswer,
    NearPassage,
    NoAnswerCandidate,
    NoAnswerDraft,
    look_at,
    no_answer_id,
)
from ragds_pipeline.storage.schemas import as_json

ANSWERED, PARTLY_ANSWERED, NOT_CHECKED = "answered_in_kb", "partly_answered", "not_checked"

REASONS = {
    OK: "no document that was asked answers it",
    PARTLY_ANSWERED: "a document says part of the answer, or points at no place for it; it goes to people, marked",
    ANSWERED: "a document answers it; document, sentence and answer are in the drop's payload",
    NOT_CHECKED: "not every document could be asked, so nobody knows; not a pass, and asked again in the next run",
}
"""What the check of the whole KB says about a question."""

NEAR_SHARE = 0.5
"""A confidential document is named where a passage of it has at least this share of the best score there is, and is
among the nearest. What comes less near shares words such as "how" and "in" with the question; in a small KB that would
be every document."""

ATTEMPTS = 2
"""How often a window is asked before a reply that cannot be read counts as none."""


@dataclass(frozen=True)
class WholeKb:
    """The KB as it is asked: an index over all of it, and the documents that may be shown."""

    index: PassageIndex
    """Over all passages, those of confidential documents too."""
    askable: tuple[str, ...]
    confidential: frozenset[str]
    load: Callable[[Collection[str]], Mapping[str, Outline]]
    """Returns the outlines of documents, by path."""
    contents: Callable[[Collection[str]], Mapping[str, str]]
    """Returns the texts of passages, by id."""


@dataclass
class Checked:
    """What became of the questions that were asked."""

    candidates: list[NoAnswerCandidate] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    answers: list[KbAnswer] = field(default_factory=list)

    def __add__(self, other: Checked) -> Checked:
        return Checked(
            self.candidates + other.candidates,
            self.verdicts + other.verdicts,
            self.drops + other.drops,
            self.answers + other.answers,
        )


def judges_ambiguity(settings: Settings) -> bool:
    """Return whether the ambiguity judge is asked; the other judges need an answer and evidence."""
    return AMBIGUITY.name in settings.filters.judges.enabled


def check(drafts: Sequence[NoAnswerDraft], kb: WholeKb, claude: Claude, settings: Settings) -> Checked:
    """Ask the ambiguity judge where it is switched on, then the whole KB.

    Raises RepliesMissing where the model cannot be reached at all.
    """
    done = Checked()
    left = list(drafts)
    passed: dict[str, Verdict] = {}
    if judges_ambiguity(settings):
        said = ask_judge(AMBIGUITY, {d.id: {"question": d.question} for d in drafts}, claude, settings)
        for draft in drafts:
            id_ = no_answer_id(draft.document_path, draft.question, _refusal(draft, settings))
            verdict = replace(said[draft.id], candidate_id=id_)
            if verdict.passed:
                passed[draft.id] = verdict
            else:
                done.verdicts.append(verdict)
                done.drops.append(drop_of(draft, verdict.reason, verdict.detail, AMBIGUITY.name, id_))
        left = [draft for draft in drafts if draft.id in passed]
    ranked = {draft.id: kb.index.ranked(draft.question) for draft in left}
    answers = _ask_kb(left, ranked, kb, claude, settings)
    near = {draft.id: _near(draft, ranked[draft.id], kb, settings.no_answer.nearest) for draft in left}
    texts = kb.contents({passage.id for each in near.values() for passage in each})
    for draft in left:
        said_here = answers[draft.id]
        nearest = tuple(NearPassage(p.document_path, p.id, texts[p.id], p.score) for p in near[draft.id])
        candidate = _candidate(draft, said_here, nearest, ranked[draft.id], kb, settings)
        verdict = _verdict(candidate, said_here, settings)
        if earlier := passed.get(draft.id):
            done.verdicts.append(replace(earlier, candidate_id=candidate.id))
        done.verdicts.append(verdict)
        done.answers += said_here
        if verdict.passed:
            done.candidates.append(candidate)
        else:
            done.drops.append(_drop(draft, verdict, said_here))
    return done


def documents_for(draft: NoAnswerDraft, ranked: Sequence[Ranked], kb: WholeKb, settings: Settings) -> list[str]:
    """Return the documents that a question is asked of, in order: all of a small KB, the nearest ones of a large."""
    order = documents_in_order(ranked, draft.document_path, kb.askable)
    rules = settings.no_answer
    return order if len(order) <= rules.ask_all_up_to else order[: rules.documents_asked]


def _ask_kb(
    drafts: Sequence[NoAnswerDraft],
    ranked: Mapping[str, Sequence[Ranked]],
    kb: WholeKb,
    claude: Claude,
    settings: Settings,
) -> dict[str, list[KbAnswer]]:
    """Return the answers by draft, in the order of documents."""
    documents = {draft.id: documents_for(draft, ranked[draft.id], kb, settings) for draft in drafts}
    answers: dict[str, list[KbAnswer]] = {draft.id: [] for draft in drafts}
    first = settings.no_answer.asked_first
    for start, end in ((0, first), (first, None)):
        wave = [
            (draft, path, documents[draft.id].index(path) + 1)
            for draft in drafts
            # What is answered, or cannot be told in this run, is not worth paying for any further.
            if not any(found.answered in (YES, NONE) for found in _last(answers[draft.id]))
            for path in documents[draft.id][start:end]
        ]
        outlines = kb.load({path for _, path, _ in wave})
        shown = {path: shown_windows(outline, settings) for path, outline in sorted(outlines.items())}
        questions = [(draft, rank, window) for draft, path, rank in wave for window in shown.get(path, ())]
        for found in _ask(questions, claude, settings):
            answers[found.draft_id].append(found)
    return answers


Question = tuple[NoAnswerDraft, int, ShownWindow]


def _ask(questions: Sequence[Question], claude: Claude, settings: Settings) -> list[KbAnswer]:
    """Return the answer of each window to its question; where one was asked again, that of each attempt."""
    # Together by document, so that a window is written to the prompt cache once and read by all its questions.
    waiting = sorted(questions, key=lambda q: (q[2].outline.path, q[2].window.start_char))
    answers: list[KbAnswer] = []
    booked: set[str] = set()
    for attempt in range(ATTEMPTS):
        requests = [kb_request(shown, draft.question, draft.id, settings, attempt) for draft, _, shown in waiting]
        replies = claude.ask(requests)
        again: list[Question] = []
        for (draft, rank, shown), request in zip(waiting, requests, strict=True):
            reply = replies[request.key]
            found = read_found(shown, reply)
            row = _answer(draft, rank, shown, found, attempt, request.prompt_version, request.key)
            # Two questions may be the very same request; its reply was paid once.
            cost = "0" if request.key in booked else str(reply.cost_usd)
            model = reply.model or request.model
            answers.append(replace(row, model=model, cost_usd=cost, replayed=reply.replayed))
            booked.add(request.key)
            if found.again:
                again.append((draft, rank, shown))
        waiting = again
        if not waiting:
            break
    return sorted(answers, key=lambda a: (a.rank, a.start_char, a.attempt))


def _answer(
    draft: NoAnswerDraft, rank: int, shown: ShownWindow, found: Found, attempt: int, prompt_version: str, key: str
) -> KbAnswer:
    return KbAnswer(
        draft_id=draft.id,
        document_path=shown.outline.path,
        start_char=shown.window.start_char,
        end_char=shown.window.end_char,
        rank=rank,
        attempt=attempt,
        answered=found.answered,
        reason=found.reason,
        answer=found.answer,
        quotes=found.quotes,
        model="",
        prompt_version=prompt_version,
        cost_usd="0",
        replayed=False,
        request_key=key,
    )


def _last(answers: Sequence[KbAnswer]) -> list[KbAnswer]:
    """Return the last attempt of each window, in order."""
    return list({(found.document_path, found.start_char): found for found in answers}.values())


def _refusal(draft: NoAnswerDraft, settings: Settings) -> str:
    return draft.refusal or refusal(draft.language, settings.no_answer.refusals)


def _candidate(
    draft: NoAnswerDraft,
    answers: Sequence[KbAnswer],
    nearest: tuple[NearPassage, ...],
    ranked: Sequence[Ranked],
    kb: WholeKb,
    settings: Settings,
) -> NoAnswerCandidate:
    answer = _refusal(draft, settings)
    partly = tuple(found for found in _last(answers) if found.answered == PARTLY)
    top = [p.document_path for p in ranked[: settings.no_answer.nearest] if p.score >= NEAR_SHARE * ranked[0].score]
    confidential = tuple(dict.fromkeys(path for path in top if path in kb.confidential))
    return NoAnswerCandidate(
        id=_id(draft, answer, partly, confidential),
        draft_id=draft.id,
        document_path=draft.document_path,
        chunk_id=nearest[0].chunk_id if nearest else "",
        question=draft.question,
        answer=answer,
        language=draft.language,
        source_version=draft.source_version,
        nearest=nearest,
        missing=draft.missing,
        partly=partly,
        confidential=confidential,
        documents_asked=len({found.document_path for found in answers if found.answered != NONE}),
        documents_askable=len(kb.askable),
        documents_confidential=len(kb.confidential),
        origin=draft.origin,
        parent_id=draft.parent_id,
        root_id=draft.root_id,
        source_id=draft.source_id,
        round=draft.round,
        request_key=draft.request_key,
        model=draft.model,
        prompt_version=draft.prompt_version,
    )


def _id(draft: NoAnswerDraft, answer: str, partly: Sequence[KbAnswer], confidential: Sequence[str]) -> str:
    """Return the id of a candidate: the one that was decided on where a person would see no more than was seen then."""
    if draft.decided_id and set(look_at(partly, confidential)) <= set(draft.decided_on):
        return draft.decided_id
    found = no_answer_id(draft.document_path, draft.question, answer, partly, confidential)
    if found == draft.decided_id:
        return no_answer_id(draft.document_path, draft.question, answer, partly, confidential, draft.source_version)
    return found


def _near(draft: NoAnswerDraft, ranked: Sequence[Ranked], kb: WholeKb, count: int) -> list[Ranked]:
    """Return the passages that come nearest: the one the writer pointed at, then by score; no confidential one."""
    shareable = [passage for passage in ranked if passage.document_path not in kb.confidential]
    own = kb.load({draft.document_path}).get(draft.document_path) if draft.nearest else None
    if own is not None:
        id_ = own.passage_at(draft.nearest[0].start_char).id
        pointed = next((passage for passage in shareable if passage.id == id_), Ranked(id_, own.path, 0.0))
        shareable = [pointed, *(passage for passage in shareable if passage.id != id_)]
    return shareable[:count]


def _verdict(candidate: NoAnswerCandidate, answers: Sequence[KbAnswer], settings: Settings) -> Verdict:
    last = _last(answers)
    asked = f"asked of {candidate.documents_asked} of {candidate.documents_askable} documents"
    by_word = {word: [found for found in last if found.answered == word] for word in (YES, NONE, PARTLY)}
    if found := by_word[YES]:
        reason, detail = ANSWERED, place_of(found[0])
    elif failed := by_word[NONE]:
        named = "; ".join(f"{each.document_path}: {each.reason}" for each in failed[:3])
        reason, detail = NOT_CHECKED, f"{len(failed)} requests without an answer, {named}"
    elif not last:
        reason, detail = NOT_CHECKED, "the KB has no document that could be asked"
    elif partly := by_word[PARTLY]:
        reason, detail = PARTLY_ANSWERED, f"{asked}; " + "; ".join(place_of(each) for each in partly)
    else:
        reason, detail = OK, asked
    return Verdict(
        candidate_id=candidate.id,
        stage=STAGE,
        passed=reason in (OK, PARTLY_ANSWERED),
        reason=reason,
        detail=detail,
        model=last[0].model if last else "",
        prompt_version=last[0].prompt_version if last else "",
    )


def place_of(found: KbAnswer) -> str:
    """Return in a line where an answer stands and what it is."""
    quoted = " […] ".join(" ".join(quote.text.split()) for quote in found.quotes)[:300]
    spans = ", ".join(f"[{quote.start_char}:{quote.end_char}]" for quote in found.quotes)
    return f"{found.document_path}{spans} {quoted!r}: {found.answer or found.reason}"


def _drop(draft: NoAnswerDraft, verdict: Verdict, answers: Sequence[KbAnswer]) -> Drop:
    """Return the drop of a question; where an answer was found, all of it is in the payload, verbatim quotes too."""
    found = [as_json(each) for each in _last(answers) if each.answered == YES]
    made = drop_of(draft, verdict.reason, verdict.detail, STAGE, verdict.candidate_id)
    return replace(made, payload=canonical_json({"draft": as_json(draft), "found": found})) if found else made
