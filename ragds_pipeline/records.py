"""The vocabulary of the pipeline: one frozen dataclass for each thing that flows between stages.

What belongs here: names, fields and the invariants that make a wrong record hard to build.
What does not: reading, writing, Arrow schemas (``storage``) and any logic of a stage.

Offsets everywhere are 0-based, end-exclusive Unicode code points in a document's *normalised* text,
so ``text[start_char:end_char] == content`` holds for every span that is made, read or frozen.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self


class SpanMismatch(ValueError):
    """A span's content is not what its document's normalised text holds at its offsets."""


class Difficulty(StrEnum):
    """How hard a question is for a retriever: easy (one place), medium (several), hard (both kinds combined)."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class Hops(StrEnum):
    """How many places the answer needs: one, several that are linked, or many across whole documents."""

    SINGLE = "single"
    MULTI = "multi"
    WIDE = "wide"


class Split(StrEnum):
    """The side of the tuning / held-out split. Given once, at freezing, and never changed."""

    TUNING = "tuning"
    HELD_OUT = "held_out"


class Keep(StrEnum):
    """A reviewer's decision on one candidate."""

    KEEP = "keep"
    DROP = "drop"
    FIX = "fix"


class Rung(StrEnum):
    """How a span was found again in the next revision, from the strongest tie to none (DESIGN.md 10)."""

    UNCHANGED = "unchanged"
    """The document is the same, character by character."""
    SAME_PLACE = "same_place"
    """The document changed; the same words stand at the same offsets."""
    MOVED = "moved"
    """The same words stand elsewhere in the document."""
    REFORMATTED = "reformatted"
    """It reads the same; white space, markup, or the form of characters differ."""
    EDITED = "edited"
    """Similar words stand in the document."""
    RELOCATED = "relocated"
    """It stands in another document."""
    RELOCATED_EDITED = "relocated_edited"
    """Similar words stand in another document."""
    LOST = "lost"
    """Nothing like it stands anywhere that changed."""


class Outcome(StrEnum):
    """What becomes of a golden item in the next revision."""

    CARRIED = "carried"
    REANCHORED = "reanchored"
    TO_PEOPLE = "to_people"
    LOST = "lost"
    ASKED_AGAIN = "asked_again"
    """Of the no_answer set only: what is new or changed may answer it, so the KB is asked once more."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of the KB with its normalised text, to which all offsets refer."""

    path: str
    """Path relative to the KB's root, with forward slashes."""
    title: str
    language: str
    """ISO 639-1 code, or ``und`` where it could not be told."""
    text: str
    source_sha256: str
    """SHA-256 of the file's bytes."""
    text_sha256: str
    """SHA-256 of the normalised text in UTF-8."""
    source_bytes: int
    source_version: str
    encoding: str
    """The encoding the bytes were decoded from."""
    changed_by_normalising: bool
    """False where the file was clean UTF-8 / LF / NFC, so that offsets hold in the user's own file."""
    normaliser_version: str
    converter: str
    """``none`` for Markdown and plain text, else ``name/version`` of what converted the file to Markdown."""
    front_matter_end: int
    """Offset at which the front matter ends; 0 where there is none. It is marked, never cut."""
    confidential: bool
    """True for a document that must never be sent to a model."""


@dataclass(frozen=True, slots=True)
class KbIssue:
    """A file that was skipped, or read with a reservation, and why."""

    path: str
    reason: str
    """A code from ``kb.load.REASONS``."""
    detail: str
    skipped: bool
    """True where the file is not part of the KB; False for a warning about a file that is."""


@dataclass(frozen=True, slots=True)
class Section:
    """One heading with all text up to the next heading of the same or a higher level.

    Sections nest: ``[start_char, end_char)`` of a section contains those of its sub-sections. Text before the
    first heading belongs to a section of level 0 that spans the whole document and has no heading.
    """

    document_path: str
    text_sha256: str
    index: int
    """Position in the document's list of sections; 0 is the root section of level 0."""
    parent: int
    """Index of the enclosing section; -1 for the root."""
    level: int
    heading: str
    heading_path: tuple[str, ...]
    """The headings from the outermost down to this one."""
    start_char: int
    body_start_char: int
    """Where the text after the heading line begins."""
    end_char: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document as shown to a model. Passages of a document cover it without gap or overlap."""

    id: str
    """``path-without-extension#N`` with N counting from 1, e.g. ``expense-rules#12``."""
    document_path: str
    text_sha256: str
    heading_path: tuple[str, ...]
    """The section in which the passage begins."""
    start_char: int
    end_char: int
    content: str


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range ``[start_char, end_char)`` of one document, with the text that proves it.

    Build it with :meth:`of`, which takes the content from the document's text, or check an existing one with
    :meth:`verify`.
    """

    document_path: str
    start_char: int
    end_char: int
    content: str

    def __post_init__(self) -> None:
        if not 0 <= self.start_char < self.end_char:
            raise SpanMismatch(f"{self.document_path}: [{self.start_char}, {self.end_char}) is not a range")
        if len(self.content) != self.end_char - self.start_char:
            raise SpanMismatch(
                f"{self.document_path}[{self.start_char}:{self.end_char}]: content has {len(self.content)} "
                f"characters, the range {self.end_char - self.start_char}"
            )

    @classmethod
    def of(cls, document_path: str, text: str, start_char: int, end_char: int) -> Self:
        """Return the span of ``text[start_char:end_char]``; raise SpanMismatch if that is not inside the text."""
        if end_char > len(text):
            raise SpanMismatch(f"{document_path}: [{start_char}, {end_char}) ends after the text ({len(text)})")
        return cls(document_path, start_char, end_char, text[start_char:end_char])

    def verify(self, text: str) -> None:
        """Raise SpanMismatch unless ``text[start_char:end_char] == content``."""
        found = text[self.start_char : self.end_char]
        if found != self.content:
            raise SpanMismatch(
                f"{self.document_path}[{self.start_char}:{self.end_char}] holds {found[:60]!r}, "
                f"not {self.content[:60]!r}"
            )


@dataclass(frozen=True, slots=True)
class Place:
    """Another place where the same text stands: a valid alternative for a span."""

    document_path: str
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One span that an answer rests on, with every other place where its text stands."""

    document_path: str
    start_char: int
    end_char: int
    content: str
    chunk_id: str
    """Id of the passage in which the span begins."""
    prefix: str
    """Up to 32 characters before the span, to tell equal quotes apart later."""
    suffix: str
    """Up to 32 characters after the span."""
    required: bool
    match: str
    """How the place was found: ``sentence`` (by sentence id), ``exact``, ``strict`` or ``lenient`` (match key)."""
    alternatives: tuple[Place, ...] = ()

    @property
    def span(self) -> Span:
        """The span alone."""
        return Span(self.document_path, self.start_char, self.end_char, self.content)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """How many questions of one kind are asked for from one document."""

    document_path: str
    language: str
    difficulty: str
    hops: str
    type: str
    planned: int


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """What a plan was drawn up from; the next revision's plan grows from it with the KB."""

    setting: int
    """``plan.questions`` as it was set."""
    questions: int
    """How many questions the whole KB gets: the setting in a first revision, more where the KB has grown since."""
    characters: int
    """Characters of all documents that may be asked about."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Evidence as it was given: by place (a sentence that was pointed at), or only by its words."""

    text: str
    start_char: int
    """Offset of the quote where its place is known, else -1."""
    end_char: int
    """End of the quote where its place is known, else -1."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question as a model or a person wrote it; its evidence has not been located yet."""

    id: str
    """``d-`` and 16 hex digits of the content and where it came from."""
    document_path: str
    question: str
    answer: str
    type: str
    difficulty: str
    hops: str
    language: str
    source_version: str
    quotes: tuple[Quote, ...]
    window_start: int
    """Start of the part of the document that was shown; a quote is looked for there first."""
    window_end: int
    origin: str
    """``generated``, ``corrected`` (a reviewer's edit) or ``expert`` (a question of the reviewer's own)."""
    parent_id: str
    """Id of the candidate that this one corrects, or empty."""
    round: int
    """0 for the first round, 1.. for top-up rounds."""
    request_key: str
    """Key of the ledger entry it came from, or empty."""
    model: str
    prompt_version: str
    root_id: str = ""
    """Id of the candidate as it was first written, where this one stands for it in a later revision; else empty."""


@dataclass(frozen=True, slots=True)
class AskedRow:
    """One request for questions and what came of it: ``max(asked, returned) == drafts + drops``."""

    round: int
    document_path: str
    start_char: int
    end_char: int
    """The part of the document that was shown; 0 and 0 where nothing could be sent."""
    asked: int
    drafts: int
    drops: int
    reply: str
    """``ok``, the reason of a failed call, or ``not_sent``."""
    model: str
    cost_usd: str
    """What the reply cost, also where it was paid in an earlier run; a decimal number."""
    replayed: bool
    """True where it came from the ledger or a recording, so that nothing was paid in this run."""
    request_key: str


@dataclass(frozen=True, slots=True)
class CostRow:
    """Estimated cost of one task before it is run."""

    task: str
    model: str
    calls: int
    calls_to_pay: int
    """Calls whose reply is not in the ledger."""
    input_tokens: int
    output_tokens: int
    cost_usd: str
    """Estimated cost of the calls to pay, a decimal number."""
    list_cost_usd: str
    """Estimated cost if all calls had to be paid."""
    basis: str = ""
    """What it rests on: requests as they will be sent, or a forecast of how many there will be."""


@dataclass(frozen=True, slots=True)
class SpentRow:
    """What one task cost with one model, for one revision, as the ledger has it."""

    stage: str
    task: str
    model: str
    calls: int
    """Different requests that this revision asked."""
    replayed: int
    """Those answered without paying: by a reply that another revision paid for, or by a recording."""
    unanswered: int
    """Those without a reply in the ledger: each failed with a reason of its own."""
    input_tokens: int
    """Neither written to the prompt cache nor read from it."""
    output_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    paid_usd: Decimal
    """Paid for this revision, in all its runs."""
    cost_usd: Decimal
    """What all these replies cost, whoever paid for them."""


@dataclass(frozen=True, slots=True)
class ItemCostRow:
    """What one question cost, kept or dropped, for one revision."""

    draft_id: str
    """Empty where people wrote it, or where it is not known which draft it was."""
    candidate_id: str
    """Empty where it never became a candidate."""
    golden_id: str
    """Empty where it is not in the golden set."""
    document_path: str
    question: str
    outcome: str
    """``golden``, ``kept`` (by all filters), or the stage and the reason of its drop."""
    generation_usd: Decimal
    """Its share of the request that brought it, which all readable questions of that request bear alike."""
    judging_usd: Decimal
    """Requests that were made about it alone."""
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question with its answer and located evidence that passed the code filter; nobody has kept it yet."""

    id: str
    """``c-`` and 16 hex digits of what a reviewer sees; see :func:`candidate_id`."""
    draft_id: str
    document_path: str
    chunk_id: str
    question: str
    answer: str
    type: str
    difficulty: str
    hops: str
    language: str
    source_version: str
    evidence: tuple[Evidence, ...]
    origin: str
    parent_id: str
    round: int
    request_key: str
    model: str
    prompt_version: str
    root_id: str = ""
    """Id of the candidate as it was first written, where this one stands for it in a later revision; else empty."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one filter said about one candidate. A verdict cannot lack a reason."""

    candidate_id: str
    stage: str
    passed: bool
    reason: str
    """``ok`` or a reason code of the stage."""
    detail: str
    """The judge's reason, or both where its votes were split."""
    model: str = ""
    prompt_version: str = ""
    votes: tuple[str, ...] = ()
    """What each vote said: ``correct``, ``incorrect`` or ``none``."""
    needless: tuple[int, ...] = ()
    """Numbers (from 1) of evidence spans that the support judge finds needless."""

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError(f"verdict of {self.stage} on {self.candidate_id} has no reason")


@dataclass(frozen=True, slots=True)
class Drop:
    """Something a stage let go, kept with the reason. ``payload`` is the thing itself as JSON."""

    stage: str
    reason: str
    detail: str
    document_path: str
    item_id: str
    """Id of the draft or candidate that was dropped; empty where none could be read."""
    question: str
    type: str
    language: str
    round: int
    payload: str
    difficulty: str = ""
    """Difficulty that was asked for; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """How many items one reason let go."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """What went into one stage and what came out: ``came_in == kept + dropped``."""

    stage: str
    came_in: int
    kept: int
    dropped: int
    reasons: tuple[ReasonCount, ...]
    """The dropped ones by reason, most frequent first; they add up to ``dropped``."""
    note: str = ""
    joined: int = 0
    """How many of those that came in do not come from the stage before, but from the last frozen set."""

    def faults(self) -> list[str]:
        """Return what does not add up, in words."""
        found = []
        if self.came_in != self.kept + self.dropped:
            found.append(f"{self.stage}: {self.came_in} came in, but {self.kept} kept + {self.dropped} dropped")
        if (by_reason := sum(r.count for r in self.reasons)) != self.dropped:
            found.append(f"{self.stage}: {self.dropped} dropped, but the reasons add up to {by_reason}")
        return found


@dataclass(frozen=True, slots=True)
class FunnelCell:
    """Items of one document, type and language that had one fate in one stage. Summed, the cells are the funnel."""

    stage: str
    document_path: str
    type: str
    """Empty where it could not be read."""
    language: str
    fate: str
    """``kept``, or the reason of the drop."""
    count: int


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """One judge measured against one source of labels, in one language or in all. Cells count (should be, judged).

    ``correct`` means that the item stays. Figures that cannot be computed are empty, never 0.
    """

    judge: str
    """Name of a judge, or ``together``: whether all of them let an item through."""
    source: str
    """``people`` or ``probes``."""
    language: str
    """Empty for all languages together."""
    items: int
    without_verdict: int
    correct_correct: int
    correct_incorrect: int
    incorrect_correct: int
    incorrect_incorrect: int
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None
    pabak: float | None
    precision_correct: float | None
    precision_correct_low: float | None
    precision_correct_high: float | None
    recall_correct: float | None
    recall_correct_low: float | None
    recall_correct_high: float | None
    precision_incorrect: float | None
    precision_incorrect_low: float | None
    precision_incorrect_high: float | None
    recall_incorrect: float | None
    recall_incorrect_low: float | None
    recall_incorrect_high: float | None
    expected_kappa: float | None
    """Kappa over all items judged, of which people saw only a share of the dropped ones; empty for probes."""
    expected_kappa_low: float | None
    expected_kappa_high: float | None
    enough: bool
    why_not_enough: str
    model: str
    rubric: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One item on which a judge and its label differ."""

    judge: str
    source: str
    rank: int
    """1 is the worst: bad items that were let through come before good ones that were dropped."""
    item_id: str
    language: str
    should_be: str
    """``correct`` (stays) or ``incorrect``."""
    judged: str
    question: str
    reason: str
    """The judge's."""
    label: str
    """Where the label comes from: who decided and what they noted, or why the probe was made so."""


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One labelled probe and what a judge said of it."""

    probe_id: str
    probe_set: str
    """Name of a judge, or ``injection``."""
    judge: str
    language: str
    expected: str
    """The verdict a careful reader gives: ``correct`` or ``incorrect``, as the rubric means them."""
    got: str
    """What most votes say, or empty where there is no verdict."""
    votes: tuple[str, ...]
    reason: str
    why: str
    """Why the label is what it is."""
    question: str
    needless_expected: tuple[int, ...]
    """Spans, from 1, that the answer does not need; only for the support judge."""
    needless_got: tuple[int, ...]
    model: str
    prompt_version: str


@dataclass(frozen=True, slots=True)
class MissingRow:
    """What is still missing of the plan after the last top-up round."""

    document_path: str
    language: str
    difficulty: str
    type: str
    planned: int
    kept: int
    missing: int
    reasons: str
    """Why, as ``reason ×count`` over all rounds, most frequent first."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one reviewer decided on one candidate. Appended, never changed."""

    candidate_id: str
    keep: str
    """``keep``, ``drop`` or ``fix`` (the corrected item takes its place)."""
    note: str
    reviewer: str
    decided_at: str
    """ISO 8601 in UTC, as imported."""
    source: str
    """Name of the sheet and the line, e.g. ``review-2026-10-01.csv:14``."""
    seen: str
    """JSON of what the reviewer saw: chunk id, type, question, answer, evidence."""
    corrected: str
    """For ``fix``: JSON of question, answer and evidence as the reviewer wants them. Else empty."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """What became of one document since the revision of the last frozen set."""

    document_path: str
    status: str
    """``first`` (there is no frozen set before this revision), ``added``, ``changed``, ``renamed`` (the same text under
    another path), ``unchanged`` or ``removed``."""
    was: str
    """The path it had, where it was renamed; else empty."""
    fresh: tuple[int, ...]
    """Start offsets of the passages whose text is new or changed: only these are asked about again."""
    fresh_characters: int
    """Characters in those passages."""
    since: str
    """Source version of the last frozen set; empty for ``first``."""


@dataclass(frozen=True, slots=True)
class RevalidatedItem:
    """One item of the last frozen set, or a candidate still to be decided, held against the documents of now."""

    id: str
    """Golden id, or the candidate's id where it was not frozen yet."""
    member: str
    """``golden_set`` (frozen) or ``open`` (a candidate that nobody had decided on); ``no_answer`` and
    ``no_answer_open`` say the same of questions without an answer."""
    candidate_id: str
    """Id of the candidate as it was frozen or sent out."""
    now_candidate_id: str
    """Id of the candidate that stands for it in this revision: the same where its decision goes on applying, another
    where people have to look at new evidence, empty where nothing came over. Of a question that is asked again: the
    same, for that is its id where nothing new is found."""
    outcome: str
    """See :class:`Outcome`."""
    rung: str
    """The worst rung of the ladder among its required spans; empty for a question without an answer."""
    look: bool
    """True where the evidence stands but the text around it was edited: it carries over, and is marked for a look."""
    document_path: str
    """Where its first span stood."""
    now_document_path: str
    """Where it stands now, or is proposed to; empty where it was lost."""
    question: str
    answer: str
    type: str
    language: str
    old_evidence: tuple[str, ...]
    now_evidence: tuple[str, ...]
    why: str
    """What changed, for a person."""
    diff: str
    """The changes inside the evidence, in words: ``within [-23-]{+21+} calendar days``."""
    provenance: str
    """JSON of the provenance that the frozen item had, with this revision's anchor events; empty for open ones."""
    baseline: str
    """The frozen set it comes from: ``source_version/snapshot-NNNN``."""


class Change(StrEnum):
    """How an item of one frozen set stands in the next."""

    CARRIED = "carried"
    REANCHORED = "reanchored"
    RECHECKED = "rechecked"
    WAITING = "waiting"
    DROPPED = "dropped"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class ChangelogRow:
    """What happened to one golden item between two frozen sets."""

    id: str
    change: str
    """See :class:`Change`: ``waiting`` is left out until people have looked at its new evidence."""
    document_path: str
    """Where its first span stands; where it stood, for one that is not in the set any more."""
    question: str
    why: str


@dataclass(frozen=True, slots=True)
class GoldenPassage:
    """One evidence span of a golden item."""

    document_path: str
    start_char: int
    end_char: int
    content: str
    required: bool
    alternatives: tuple[Place, ...]
    prefix: str
    suffix: str
    chunk_id: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a golden item comes from."""

    candidate_id: str
    models: tuple[str, ...]
    prompt_versions: tuple[str, ...]
    verdicts: tuple[str, ...]
    """``stage:reason`` of each verdict, in order."""
    decision: str
    """``keep`` or ``fix``, with reviewer and source: ``keep by rev@sheet.csv:3``."""
    first_frozen_in: str
    """``source_version`` of the snapshot in which the item first stood."""
    anchors: tuple[str, ...] = ()
    """Anchor events, oldest first (filled by re-validation)."""


@dataclass(frozen=True, slots=True)
class AnchorEvent:
    """What became of one evidence span from one revision to the next. Appended, never changed."""

    item_id: str
    span_index: int
    """Position of the span among its item's passages, from 0."""
    required: bool
    rung: str
    """One of ``Rung``."""
    carries: bool
    """True where the new place takes over by itself; else a person decides."""
    reason: str
    """``ok``, or why it does not carry: a code from ``anchors.reasons.REASONS``."""
    from_version: str
    to_version: str
    document_path: str
    start_char: int
    end_char: int
    content: str
    new_document_path: str
    """Where it stands now, or is thought to; empty where nothing is proposed."""
    new_start_char: int
    """-1 where nothing is proposed."""
    new_end_char: int
    new_content: str
    alternatives: tuple[Place, ...]
    """Every other place with the same words. Where the place is in doubt, the other places it may be."""
    score: float
    """How alike old and new content are, 0 to 1; 1 where they are equal."""
    context_score: float
    """How alike the text before and after is, 0 to 1."""
    meaning_changes: tuple[str, ...]
    """What changed that touches the meaning, e.g. ``changed number 90 -> 30``."""
    word_diff: str
    """The change in words, e.g. ``within [-90-]{+30+} days``; empty where nothing changed."""
    section_changed: bool
    """True where the text around the span was edited, so that a look is advised."""
    detail: str


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What becomes of one item: as good as its worst required span."""

    item_id: str
    outcome: str
    """One of ``Outcome``."""
    reason: str
    """``ok``, or the reason of the span that decided it."""
    detail: str
    from_version: str
    to_version: str
    removed_spans: tuple[int, ...]
    """Optional spans that did not carry and are no longer evidence of the item, by their index."""
    section_changed: bool
    """True where a required span is marked for a look."""


@dataclass(frozen=True, slots=True)
class GivenId:
    """A golden id for an item that had none, or for the corrected form of one that had."""

    id: str
    candidate_id: str
    split: str
    first_frozen_in: str
    register_length: int
    """How many entries the register of ids had when this one was given."""
    root_id: str = ""
    """Id of the candidate as it was written, before people corrected it."""
    evidence_keys: tuple[str, ...] = ()
    """What the item's evidence says and where, hashed: later questions on it take the same side of the split."""


@dataclass(frozen=True, slots=True)
class GoldenItem:
    """One line of the frozen golden set (DESIGN.md 13); the order of fields is the order in the file."""

    id: str
    question: str
    answer: str
    type: str
    difficulty: str
    hops: str
    language: str
    split: str
    source_version: str
    passages: tuple[GoldenPassage, ...]
    chunk_id: str
    evidence: str
    provenance: Provenance = field(kw_only=True)


def canonical_json(value: Any) -> str:
    """Serialise ``value`` to the one JSON text it has here: sorted keys, no spaces, non-ASCII kept."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def printable(text: str) -> str:
    """Return ``text`` with lone surrogates written out as ``\\ud83d``: JSON can hold them, no table or file can."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def sha256_text(text: str) -> str:
    """Hex SHA-256 of ``text`` in UTF-8 (lone surrogates, which no normalised text holds, are passed through)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def draft_id(*parts: Any) -> str:
    """Return the id of a draft: a hash of its content and origin."""
    return "d-" + sha256_text(canonical_json(list(parts)))[:16]


def candidate_id(
    document_path: str, type_: str, question: str, answer: str, evidence: tuple[str, ...] | list[str]
) -> str:
    """Return the id of a candidate: a hash of what a reviewer sees of it.

    Offsets, passage numbers and source version are left out on purpose: where nothing that the reviewer saw has
    changed, a decision goes on applying in the next revision (DESIGN.md 8).
    """
    seen = canonical_json([document_path, type_, question, answer, list(evidence)])
    return "c-" + sha256_text(seen)[:16]
