"""Does the evidence of golden items still stand in other texts, such as those of a pull request? Where did it stand?

The ladder of ``anchors`` judges, the same that re-validates a frozen set: what it carries is no fault here, what it
gives to people is one, and so is what is lost. Here that is put in terms of lines, for those who edit the documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.anchors.reasons import EDITED, LOST, MEANING, REASONS, STATE
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.records import AnchorEvent, GoldenItem, Rung

BREAKING = frozenset({LOST, MEANING, EDITED, STATE})
"""Reasons for which evidence says what was frozen no longer. The others are doubts: its words stand, but in several
places, in other surroundings, or in characters that code cannot judge."""


@dataclass(frozen=True, slots=True)
class EvidenceFault:
    """One span of evidence that the ladder does not carry by itself."""

    item_id: str
    question: str
    passage: int
    """Position among the item's passages, from 1."""
    required: bool
    reason: str
    """A code of ``anchors.reasons.REASONS``."""
    rung: str
    """One of ``Rung``."""
    changes: tuple[str, ...]
    """What changed that touches the meaning."""
    word_diff: str
    content: str
    document_path: str
    """Where it stood."""
    old_line: int
    """Line on which it began there, from 1."""
    new_path: str
    """Where to look now: the document itself, or another one; empty where the document is gone."""
    new_line: int
    """Line in ``new_path`` where it stands, or stood as far as the lines around it tell; 0 without a document."""
    now: str
    """What that line says now."""
    confidential: bool = False
    """Whether its document is confidential now, so that it can be no evidence whatever it says."""

    @property
    def breaks(self) -> bool:
        """Whether the item is broken: a required span is gone, or was edited."""
        edited = self.rung in (Rung.EDITED, Rung.RELOCATED_EDITED)
        return self.required and (edited or self.reason in BREAKING)

    @property
    def message(self) -> str:
        """The fault in a sentence for the person who edits the documents."""
        kind = "evidence" if self.required else "optional evidence"
        stood = f"{_shown(self.content)} (stood at {self.document_path}:{self.old_line})"
        return f"{self.item_id}: {kind} {stood} {self._said()}. Question: {_shown(self.question)}"

    def _said(self) -> str:
        if self.confidential:
            return "is in a document that is confidential now"
        if self.rung == Rung.LOST:
            return "is in no document any more" + (f"; there it says now {_shown(self.now)}" if self.now else "")
        changed = "; ".join(dict.fromkeys([*self.changes, *([self.word_diff] if self.word_diff else [])]))
        there = f"; see {self.new_path}:{self.new_line}" if self.new_path else ""
        return f"needs a person: {REASONS[self.reason]}{f' ({changed})' if changed else ''}{there}"


def evidence_report(
    items: Sequence[GoldenItem], old: Revision, new: Revision, confidential: Collection[str] = ()
) -> list[EvidenceFault]:
    """Return what is wrong with the evidence of ``items``, in their order; nothing for what the ladder carries.

    Spans that do not hold their text in ``old`` are passed over: ``verify.spans_resolve`` names those.

    Args:
        items: Golden items; those without passages, as in the no_answer set, are passed over.
        old: The documents their offsets refer to.
        new: The documents to look in, without those that are confidential.
        confidential: Paths of documents that are left out of ``new`` because they are confidential.
    """
    found = [
        (
            item,
            AnchoredSpan(item.id, at, p.required, p.document_path, p.start_char, p.end_char, p.content, p.alternatives),
        )
        for item in items
        for at, p in enumerate(item.passages)
        if p.document_path in old.documents and _stands(old, p.document_path, p.start_char, p.end_char, p.content, new)
    ]
    events = reanchor([span for _, span in found], old, new)
    pairs = zip((item for item, _ in found), events, strict=True)
    return [_fault(item, event, old, new, confidential) for item, event in pairs if not event.carries]


def _stands(old: Revision, path: str, start: int, end: int, content: str, new: Revision) -> bool:
    return old.documents[path] == new.documents.get(path) or old.load(path)[start:end] == content


def _fault(
    item: GoldenItem, event: AnchorEvent, old: Revision, new: Revision, confidential: Collection[str]
) -> EvidenceFault:
    path = event.document_path
    old_line = line_of(old.load(path), event.start_char)
    new_path = event.new_document_path or (path if path in new.documents else "")
    new_line, now = 0, ""
    if new_path:
        text = new.load(new_path)
        placed = event.new_start_char >= 0
        new_line = line_of(text, event.new_start_char) if placed else line_now(old.load(path), text, old_line)
        now = text.split("\n")[new_line - 1].strip()
    return EvidenceFault(
        item_id=item.id,
        question=item.question,
        passage=event.span_index + 1,
        required=event.required,
        reason=event.reason,
        rung=event.rung,
        changes=event.meaning_changes,
        word_diff=event.word_diff,
        content=event.content,
        document_path=path,
        old_line=old_line,
        new_path=new_path,
        new_line=new_line,
        now=now,
        confidential=event.rung == Rung.LOST and path in confidential,
    )


def line_of(text: str, offset: int) -> int:
    """Return the number of the line, from 1, on which a character stands; normalised texts break lines with LF."""
    return text.count("\n", 0, offset) + 1


LINES_COMPARED = 20_000
"""Above so many lines that differ, lines are not aligned, which takes time by the square; the old number is shown."""


def line_now(old: str, new: str, line: int) -> int:
    """Return the line of ``new`` that stands where ``line`` of ``old`` stood, as far as the lines around it tell."""
    before, after = old.split("\n"), new.split("\n")
    head = _common(before, after)
    tail = _common(reversed(before[head:]), reversed(after[head:]))
    at = line - 1
    if at < head:
        return line
    if at >= len(before) - tail:
        return at + len(after) - len(before) + 1
    middle = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(map(len, middle)) > LINES_COMPARED:
        return min(line, len(after))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *middle, autojunk=False).get_opcodes():
        if i1 <= at - head < i2:
            inside = min(at - head - i1, max(j2 - j1 - 1, 0)) if tag != "delete" else 0
            return min(head + j1 + inside + 1, len(after))
    return min(line, len(after))


def _common(one: Iterable[str], other: Iterable[str]) -> int:
    """Return how many lines two texts have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _shown(text: str) -> str:
    plain = " ".join(text.split())
    return f"“{plain if len(plain) <= 90 else plain[:89] + '…'}”"
