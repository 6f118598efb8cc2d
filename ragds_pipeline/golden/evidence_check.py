"""Does the evidence of golden items still stand in other texts, such as those of a pull request? Where did it stand?

One question, one function: :func:`evidence_report`. It looks for the words only (match keys, ``spans/locate``): what
became of a sentence that was edited is for re-validation to say, with a person. :func:`_what_became` is the one place
where a better answer can be put in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import takewhile

from ragds_pipeline.records import GoldenItem, GoldenPassage, Place
from ragds_pipeline.spans.locate import MIN_KEY_CHARS, Locator, Occurrence, QuoteTooShort, context
from ragds_pipeline.spans.match_key import key_of
from ragds_pipeline.spans.occurrences import find_everywhere


class Became(StrEnum):
    """What became of evidence that is not simply there."""

    GONE = "gone"
    """Its words stand nowhere any more: the answer is no longer proved."""
    ELSEWHERE = "elsewhere"
    """Its words stand in another document only."""
    REFORMATTED = "reformatted"
    """It stands in its document with other case, quotes, width or dashes."""
    AMBIGUOUS = "ambiguous"
    """It stands there several times, none of them where it was, and the text around it does not tell which it is."""


@dataclass(frozen=True, slots=True)
class EvidenceFault:
    """One span of evidence that is not where it was, and cannot be followed without a doubt."""

    item_id: str
    question: str
    passage: int
    """Position among the item's passages, from 1."""
    required: bool
    became: Became
    content: str
    document_path: str
    """Where it stood."""
    old_line: int
    """Line on which it began there, from 1."""
    new_path: str
    """Where to look now: the document itself, or the other one; empty where the document is gone."""
    new_line: int
    """Line in ``new_path`` where it stands, or stood as far as the lines around it tell; 0 without a document."""
    now: str
    """What that line says now."""

    @property
    def breaks(self) -> bool:
        """Whether the item is broken: a required span is gone."""
        return self.required and self.became == Became.GONE

    @property
    def message(self) -> str:
        """The fault in a sentence for the person who edits the documents."""
        quote = _shown(self.content)
        stood = f"{self.document_path}:{self.old_line}"
        there = f"{self.new_path}:{self.new_line}"
        said = {
            Became.GONE: f"{quote} (stood at {stood}) is in no document any more"
            + (f"; there it says now {_shown(self.now)}" if self.now else ""),
            Became.ELSEWHERE: f"{quote} (stood at {stood}) stands at {there} only",
            Became.REFORMATTED: f"{quote} (stood at {stood}) is written differently now, at {there}",
            Became.AMBIGUOUS: f"{quote} (stood at {stood}) stands in several places now, one of them {there}",
        }[self.became]
        kind = "evidence" if self.required else "optional evidence"
        return f"{self.item_id}: {kind} {said}. Question: {_shown(self.question)}"


Documents = Callable[[], Iterable[tuple[str, str]]]
"""Yields (path, text) of all documents, as often as it is called."""


def evidence_report(
    items: Sequence[GoldenItem],
    old_texts: Mapping[str, str],
    new_texts: Mapping[str, str],
    everywhere: Documents | None = None,
) -> list[EvidenceFault]:
    """Return what is wrong with the evidence of ``items``, in their order; nothing for what stands or simply moved.

    Args:
        items: Golden items; those without passages are passed over.
        old_texts: The texts their offsets refer to, by document.
        new_texts: The texts to look in, at least of the documents of the items; a document that is missing is gone.
        everywhere: All new texts, for what is not in its document any more; by default ``new_texts``.
    """
    locators = {path: Locator(text) for path, text in new_texts.items()}
    found: dict[tuple[int, int], EvidenceFault] = {}
    for at, item in enumerate(items):
        for number, passage in enumerate(item.passages):
            if new_texts.get(passage.document_path) == old_texts[passage.document_path]:
                continue
            outcome = _what_became(passage, locators.get(passage.document_path))
            if outcome is None:
                found[at, number] = _fault(item, number, Became.GONE, old_texts, new_texts)
            elif outcome[0] is not None:
                place = Place(passage.document_path, outcome[1].start_char, outcome[1].end_char)
                found[at, number] = _fault(item, number, outcome[0], old_texts, new_texts, place)
    if any(fault.became == Became.GONE for fault in found.values()):
        _look_elsewhere(items, found, old_texts, everywhere or (lambda: new_texts.items()))
    return [found[key] for key in sorted(found)]


def _what_became(passage: GoldenPassage, locator: Locator | None) -> tuple[Became | None, Occurrence] | None:
    """Return what is wrong (None: nothing) and the place in the passage's own document, or None if it is not there."""
    if locator is None:
        return None
    try:
        places = locator.locate(passage.content, min_key_chars=1)
    except QuoteTooShort:  # nothing but white space: it proves nothing and no search can find it
        return None
    if not places:
        return None
    if places[0].match == "lenient":
        return Became.REFORMATTED, _nearest(places, passage)
    if len(places) == 1 or any(place.start_char == passage.start_char for place in places):
        return None, places[0]
    alike = [place for place in places if _same_surroundings(locator.text, place, passage)]
    if len(alike) == 1 or len(places) <= 1 + sum(
        p.document_path == passage.document_path for p in passage.alternatives
    ):
        return None, (alike or places)[0]  # every place was valid before, and all are still there
    return Became.AMBIGUOUS, _nearest(alike or places, passage)


def _nearest(places: Sequence[Occurrence], passage: GoldenPassage) -> Occurrence:
    return min(places, key=lambda place: abs(place.start_char - passage.start_char))


def _same_surroundings(text: str, place: Occurrence, passage: GoldenPassage) -> bool:
    before, after = context(text, place.start_char, place.end_char)
    pairs = ((before, passage.prefix), (after, passage.suffix))
    return all(key_of(now) == key_of(then) for now, then in pairs)


def _look_elsewhere(
    items: Sequence[GoldenItem],
    found: dict[tuple[int, int], EvidenceFault],
    old_texts: Mapping[str, str],
    everywhere: Documents,
) -> None:
    keys = [key for key, fault in found.items() if fault.became == Became.GONE]
    keys = [key for key in keys if len(key_of(found[key].content)) >= MIN_KEY_CHARS]  # less would be found by chance
    located = find_everywhere([found[key].content for key in keys], everywhere())
    chosen: dict[tuple[int, int], Place] = {}
    for key, places in zip(keys, located, strict=True):
        if places:
            known = {place.document_path for place in items[key[0]].passages[key[1]].alternatives}
            chosen[key] = next((place for place in places if place.document_path in known), places[0])
    wanted = {place.document_path for place in chosen.values()}
    texts = {path: text for path, text in everywhere() if path in wanted} if wanted else {}
    for key, place in chosen.items():
        found[key] = _fault(items[key[0]], key[1], Became.ELSEWHERE, old_texts, texts, place)


def _fault(
    item: GoldenItem,
    number: int,
    became: Became,
    old_texts: Mapping[str, str],
    new_texts: Mapping[str, str],
    place: Place | None = None,
) -> EvidenceFault:
    passage = item.passages[number]
    path = passage.document_path
    old_line = line_of(old_texts[path], passage.start_char)
    new_path = place.document_path if place else path if path in new_texts else ""
    new_line = 0
    if place:
        new_line = line_of(new_texts[new_path], place.start_char)
    elif new_path:
        new_line = line_now(old_texts[path], new_texts[path], old_line)
    return EvidenceFault(
        item.id,
        item.question,
        number + 1,
        passage.required,
        became,
        passage.content,
        path,
        old_line,
        new_path,
        new_line,
        new_texts[new_path].split("\n")[new_line - 1].strip() if new_path else "",
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
