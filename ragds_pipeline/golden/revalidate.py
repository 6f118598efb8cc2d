"""The last frozen set, and the candidates still to be decided, held against the documents of a new revision.

``anchors`` says for every span where it stands now and whether it may go there by itself. Here that becomes candidates
of the new revision: an item whose evidence stands keeps its id, so the decision on it goes on applying; one whose
evidence was edited gets a new id, made of what a reviewer sees now, so that nobody's old decision speaks for the new
text. In = carried + re-anchored + to people + lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.outcome import outcomes
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.anchors.view import SectionRange, SectionsOf
from ragds_pipeline.golden.baseline import Baseline
from ragds_pipeline.golden.placing import Placed, Places
from ragds_pipeline.golden.registry import Registered
from ragds_pipeline.kb.documents import texts
from ragds_pipeline.kb.normalise import front_matter_end
from ragds_pipeline.kb.structure import STRUCTURE_VERSION, parse
from ragds_pipeline.records import (
    AnchorEvent,
    Candidate,
    Evidence,
    GoldenItem,
    ItemOutcome,
    Outcome,
    Provenance,
    RevalidatedItem,
    Rung,
    candidate_id,
)
from ragds_pipeline.review.standing import FROZEN
from ragds_pipeline.storage.tables import TableFile

OPEN = "open"

_RUNGS = [str(rung) for rung in Rung]


@dataclass(frozen=True, slots=True)
class Held:
    """One item to be held against the new documents."""

    id: str
    """Golden id, or the candidate's id."""
    candidate: Candidate
    item: GoldenItem | None
    """The frozen item; None for a candidate that nobody has decided on."""


@dataclass
class Revalidated:
    """What came over, and a row for every item."""

    items: list[RevalidatedItem] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)


def held_items(
    frozen: Sequence[GoldenItem],
    candidates: Sequence[Candidate],
    closed: Callable[[Candidate], bool],
    register: Sequence[Registered],
) -> list[Held]:
    """Return what has to be held against the new documents: all frozen items, then the candidates that are still open.

    ``candidates`` are those of the frozen set's revision; ``closed`` says whether anybody has decided on one.
    """
    known = {candidate.id: candidate for candidate in candidates}
    roots = {entry.candidate_id: entry.root_id for entry in register}
    held = [Held(item.id, _candidate_of(item, known, roots), item) for item in frozen]
    there = {each.candidate.id for each in held} | {each.candidate.root_id for each in held}
    held += [Held(c.id, c, None) for c in candidates if c.id not in there and not closed(c)]
    return held


def _candidate_of(item: GoldenItem, known: Mapping[str, Candidate], roots: Mapping[str, str]) -> Candidate:
    """Return a frozen item as the candidate it was frozen from, with the places it was frozen with."""
    id_ = item.provenance.candidate_id
    root = roots.get(id_) or id_
    origin = known.get(id_) or known.get(root)
    return Candidate(
        id=id_,
        draft_id=origin.draft_id if origin else "",
        document_path=item.passages[0].document_path,
        chunk_id=item.chunk_id,
        question=item.question,
        answer=item.answer,
        type=item.type,
        difficulty=item.difficulty,
        hops=item.hops,
        language=item.language,
        source_version=item.source_version,
        evidence=tuple(
            Evidence(
                document_path=p.document_path,
                start_char=p.start_char,
                end_char=p.end_char,
                content=p.content,
                chunk_id=p.chunk_id,
                prefix=p.prefix,
                suffix=p.suffix,
                required=p.required,
                match="exact",
                alternatives=p.alternatives,
            )
            for p in item.passages
        ),
        origin=origin.origin if origin else "generated",
        parent_id="",
        round=origin.round if origin else 0,
        request_key=origin.request_key if origin else "",
        model=origin.model if origin else "",
        prompt_version=origin.prompt_version if origin else "",
        root_id=root,
    )


def anchored(
    held: Sequence[Held],
    baseline: Baseline,
    documents: TableFile,
    now: Mapping[str, str],
    source_version: str,
    sections: TableFile | None = None,
) -> tuple[list[AnchorEvent], list[ItemOutcome]]:
    """Return where every span of ``held`` stands now, and the outcome of each item.

    ``documents`` is the table of the new revision's documents, ``now`` the SHA-256 of the text of each that may hold
    evidence, by path, ``sections`` the table of their sections. Only texts of documents that differ are read.
    """
    spans = [
        AnchoredSpan(each.id, at, e.required, e.document_path, e.start_char, e.end_char, e.content, e.alternatives)
        for each in held
        for at, e in enumerate(each.candidate.evidence)
    ]
    used = {span.document_path for span in spans}
    differing = {path for path, sha in now.items() if baseline.documents.get(path) != sha}
    gone = {path for path in baseline.documents if now.get(path) != baseline.documents[path]}
    old_paths = gone | (used - now.keys())
    old_texts, new_texts = baseline.texts(old_paths), texts(documents, differing)
    before = _sections_of(baseline.sections, old_paths, baseline.documents)
    after = _sections_of(sections, differing, now)
    old = Revision(baseline.release.source_version, baseline.documents, old_texts.__getitem__, before)
    new = Revision(source_version, now, new_texts.__getitem__, after)
    events = reanchor(spans, old, new)
    return events, outcomes(events)


def _sections_of(table: TableFile | None, paths: Collection[str], documents: Mapping[str, str]) -> SectionsOf:
    """Return what gives a document's sections: as they were cut, where they were by the rules of now, else parsed.

    A parse of all changed documents, of before and of now, would take as long as all the rest.
    """
    known: dict[str, list[SectionRange]] = {}
    if table is not None and table.path.exists() and table.fingerprint.startswith(f"{STRUCTURE_VERSION}/"):
        columns = ["document_path", "text_sha256", "start_char", "body_start_char", "end_char"]
        rows = table.where("document_path", paths, columns)
        for path, sha, *place in zip(*(rows.column(name).to_pylist() for name in columns), strict=True):
            if documents.get(path) == sha:
                known.setdefault(path, []).append((place[0], place[1], place[2]))

    def sections(path: str, text: str) -> list[SectionRange]:
        return known[path] if path in known else section_ranges(path, text)

    return sections


def section_ranges(path: str, text: str) -> list[SectionRange]:
    """Return a document's sections as the ladder needs them."""
    return [
        (s.start_char, s.body_start_char, s.end_char) for s in parse(path, text, "", front_matter_end(text)).sections
    ]


def settle(
    held: Sequence[Held],
    events: Sequence[AnchorEvent],
    judged: Sequence[ItemOutcome],
    places: Places,
    source_version: str,
    baseline: str,
    confidential: Collection[str] = (),
) -> Revalidated:
    """Return the candidates that come over into ``source_version`` and a row for every item of ``held``.

    ``places`` say what stands around each span now. A candidate that nobody had decided on comes over only where its
    evidence stands: what was written about a text that is no longer there is asked anew instead.
    ``confidential`` are the documents that are so now; no span is looked for in them.
    """
    by_item: dict[str, list[AnchorEvent]] = {}
    for event in events:
        by_item.setdefault(event.item_id, []).append(event)
    said = {outcome.item_id: outcome for outcome in judged}
    result = Revalidated()
    for each in held:
        found = sorted(by_item[each.id], key=lambda event: event.span_index)
        outcome = said[each.id]
        now = _now(each, found, outcome, places, source_version)
        if each.item is None and outcome.outcome not in (Outcome.CARRIED, Outcome.REANCHORED):
            now = None
        row = _row(each, found, outcome, now, source_version, baseline)
        if now is None and (secret := sorted({e.document_path for e in each.candidate.evidence} & set(confidential))):
            row = replace(row, why=f"{', '.join(secret)} is confidential now")
        result.items.append(row)
        if now is not None:
            result.candidates.append(now)
    return result


def _now(
    held: Held, events: Sequence[AnchorEvent], outcome: ItemOutcome, places: Places, source_version: str
) -> Candidate | None:
    """Return the candidate as it stands in the new documents, or None where nothing of it can be shown."""
    removed = set(outcome.removed_spans)
    left = [
        (event, held.candidate.evidence[event.span_index])
        for event in events
        if (event.item_id, event.span_index) in places and event.span_index not in removed
    ]
    if outcome.outcome == Outcome.LOST or not any(event.required for event, _ in left):
        return None
    evidence = tuple(_evidence(event, old, places[event.item_id, event.span_index]) for event, old in left)
    path = next(e.document_path for e in evidence if e.required)
    now = replace(
        held.candidate,
        document_path=path,
        chunk_id=evidence[0].chunk_id,
        evidence=evidence,
        source_version=source_version,
    )
    if outcome.outcome in (Outcome.CARRIED, Outcome.REANCHORED):
        return now
    contents = [e.content for e in evidence]
    new_id = candidate_id(path, now.type, now.question, now.answer, contents)
    root = held.candidate.root_id or held.candidate.id
    if new_id == held.candidate.id:
        # The same words in the same document have the same id, and the old decision would speak for a doubtful place.
        new_id = candidate_id(path, now.type, now.question, now.answer, [*contents, source_version])
    return replace(now, id=new_id, root_id=root)


def _evidence(event: AnchorEvent, old: Evidence, now: Placed) -> Evidence:
    return Evidence(
        document_path=event.new_document_path,
        start_char=event.new_start_char,
        end_char=event.new_end_char,
        content=now.content,
        chunk_id=now.chunk_id,
        prefix=now.prefix,
        suffix=now.suffix,
        required=event.required,
        match="exact" if now.content == old.content else "lenient",
        alternatives=event.alternatives if event.carries else (),
    )


def _row(
    held: Held,
    events: Sequence[AnchorEvent],
    outcome: ItemOutcome,
    now: Candidate | None,
    source_version: str,
    baseline: str,
) -> RevalidatedItem:
    required = [event for event in events if event.required] or list(events)
    worst = max(required, key=lambda event: (not event.carries, _RUNGS.index(event.rung)))
    anchors = tuple(_anchor(event, source_version) for event in events if event.rung != Rung.UNCHANGED)
    provenance = ""
    if held.item is not None:
        before = held.item.provenance
        provenance = _json(replace(before, anchors=(*before.anchors, *anchors)))
    return RevalidatedItem(
        id=held.id,
        member=OPEN if held.item is None else FROZEN,
        candidate_id=held.candidate.id,
        now_candidate_id=now.id if now else "",
        outcome=outcome.outcome,
        rung=worst.rung,
        look=any(event.section_changed for event in events),
        document_path=held.candidate.document_path,
        now_document_path=now.document_path if now else "",
        question=held.candidate.question,
        answer=held.candidate.answer,
        type=held.candidate.type,
        language=held.candidate.language,
        old_evidence=tuple(e.content for e in held.candidate.evidence),
        now_evidence=tuple(e.content for e in now.evidence) if now else (),
        why=_why(events, outcome),
        diff="\n".join(event.word_diff for event in events if event.word_diff),
        provenance=provenance,
        baseline=baseline,
    )


def _why(events: Sequence[AnchorEvent], outcome: ItemOutcome) -> str:
    told = [outcome.detail] if outcome.detail else []
    told += [change for event in events for change in event.meaning_changes]
    if not told:
        told = [f"{event.rung}: {event.detail}" if event.detail else event.rung for event in events]
    return "; ".join(dict.fromkeys(told))


def _anchor(event: AnchorEvent, source_version: str) -> str:
    """Return an anchor event as it stands in an item's provenance."""
    old = f"{event.document_path}[{event.start_char}:{event.end_char}]"
    if event.new_start_char < 0:
        return f"{source_version}: {event.rung} from {old}"
    new = f"{event.new_document_path}[{event.new_start_char}:{event.new_end_char}]"
    return f"{source_version}: {event.rung}{'' if event.carries else ' (proposed)'} from {old} to {new}"


_provenance = TypeAdapter(Provenance)


def _json(provenance: Provenance) -> str:
    return _provenance.dump_json(provenance).decode()
