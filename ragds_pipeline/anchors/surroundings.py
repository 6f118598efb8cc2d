"""What changed around a span whose own words did not: does it still say the same where it stands now?

A ``not`` put in front of a quoted clause leaves every quoted character as it was. So the sentence that holds the
span, the line that leads in to it, its headings and its state (commented out, struck out ...) are compared too, as they
read; a change there sends the span to a person. Other edits in its section, or within 200 characters, only mark it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile, zip_longest
from typing import NamedTuple

from ragds_pipeline.anchors.blocks_around import innermost_section, lead_in, own_text, sentence, skip_marker, states
from ragds_pipeline.anchors.markup import markup
from ragds_pipeline.anchors.meaning import changed_kinds, meaning_changes
from ragds_pipeline.anchors.reading import plain, tokens
from ragds_pipeline.anchors.reasons import HEADING, LEAD_IN, OK, SENTENCE, STATE
from ragds_pipeline.anchors.view import TextView
from ragds_pipeline.anchors.word_diff import word_diff
from ragds_pipeline.anchors.word_lists import NAME, VALIDITY

NEARBY = 200
"""Characters before and after a span in which an edit marks it for a look."""

Range = tuple[int, int]


class Around(NamedTuple):
    """What the text around a span says about it."""

    reason: str
    """``ok``, or why a person must look."""
    detail: str
    section_changed: bool


class Surroundings:
    """Compares what surrounds spans in an old and a new document; headings and sections are compared once."""

    def __init__(self, old: TextView, new: TextView) -> None:
        self._old = old
        self._new = new
        self._sections: dict[tuple[int, int], bool] = {}
        self._paths: dict[tuple[int, int], str] = {}
        self._lead_ins: dict[tuple[TextView, int], list[Range]] = {}
        self._headings: dict[tuple[TextView, int], str] = {}

    def compare(self, was: Range, now: Range) -> Around:
        """Compare the surroundings of the place ``was`` in the old text with those of ``now`` in the new one."""
        sections = self._section(self._old, was), self._section(self._new, now)
        reason, detail = self._decisive(was, now, sections)
        return Around(reason, detail, bool(reason != OK or self._edited_nearby(was, now, sections)))

    def _decisive(self, was: Range, now: Range, sections: tuple[int, int]) -> tuple[str, str]:
        if not self._same_text(was, now):
            if not self._same_paragraph(was, now):
                before, after = states(self._old, *was), states(self._new, *now)
                if before != after:
                    gone = [f"no longer {state}" for state in sorted(before - after)]
                    return STATE, ", ".join([*gone, *(f"now {state}" for state in sorted(after - before))])
                changed = self._sentence(was, now)
                if changed:
                    return SENTENCE, changed
            changed = self._lead_in(was, now)
            if changed:
                return LEAD_IN, changed
        changed = self._heading_change(*sections)
        return (HEADING, changed) if changed else (OK, "")

    def _same_text(self, was: Range, now: Range) -> bool:
        """Whether the text is the same from the heading above to the end of the paragraph: the common case, and then
        sentence, lead-in and state are the same too."""
        old, new = self._old, self._new
        if not self._same_kind_of_text(was, now):
            return False
        above = max(0, old.text.rfind("\n#", 0, was[0]), _block_before(old.text, was[0]))
        size = was[0] - above
        if size > now[0] or old.text[above : was[0]] != new.text[now[0] - size : now[0]]:
            return False
        if above == 0 and size != now[0]:
            return False
        below = old.text.find("\n\n", was[1])
        if below < 0:
            return old.text[was[1] :] == new.text[now[1] :]
        return new.text.startswith(old.text[was[1] : below + 2], now[1])

    def _same_kind_of_text(self, was: Range, now: Range) -> bool:
        old, new = self._old, self._new
        return old.is_in_comment(was[0]) == new.is_in_comment(now[0]) and old.is_in_code(was[0]) == new.is_in_code(
            now[0]
        )

    def _same_paragraph(self, was: Range, now: Range) -> bool:
        """Whether all is the same from the blank line above to the one below, so that sentence and state must be."""
        old, new = self._old.text, self._new.text
        above, below = max(0, old.rfind("\n\n", 0, was[0])), old.find("\n\n", was[1])
        start = now[0] - (was[0] - above)
        if was[1] - was[0] != now[1] - now[0] or start < 0 or (above == 0) != (start == 0):
            return False
        same = old[above:] == new[start:] if below < 0 else new.startswith(old[above : below + 2], start)
        return same and self._same_kind_of_text(was, now)

    def _sentence(self, was: Range, now: Range) -> str:
        old, new = self._old.text, self._new.text
        first, last = sentence(self._old, *was)
        new_first, new_last = sentence(self._new, *now)
        # Items are renumbered, and full stops put in, without any of them saying something else.
        first, new_first = skip_marker(old, first, was[0]), skip_marker(new, new_first, now[0])
        for one, other in (
            ((first, was[0]), (new_first, now[0])),
            ((was[1], last), (now[1], new_last)),
        ):
            if old[slice(*one)].strip() != new[slice(*other)].strip():
                read, reads = self._old.plain(*one), self._new.plain(*other)
                if _said(read) != _said(reads):
                    return word_diff(read.strip(), reads.strip(), shorten=True)
        return ""

    def _lead_in(self, was: Range, now: Range) -> str:
        old, new = self._old.text, self._new.text
        before, after = self._lead_in_of(self._old, was[0]), self._lead_in_of(self._new, now[0])
        if [old[slice(*each)].strip() for each in before] == [new[slice(*each)].strip() for each in after]:
            return ""
        read = " / ".join(self._old.plain(*each).strip() for each in before)
        reads = " / ".join(self._new.plain(*each).strip() for each in after)
        return word_diff(read, reads, shorten=True) if tokens(read) != tokens(reads) else ""

    def _lead_in_of(self, view: TextView, start: int) -> list[Range]:
        line = view.text.rfind("\n", 0, start) + 1
        if (view, line) not in self._lead_ins:
            self._lead_ins[view, line] = lead_in(view.text, start)
        return self._lead_ins[view, line]

    def _heading_change(self, before: int, after: int) -> str:
        """What changed in the headings, or in the front matter's words of validity, that matters."""
        if (before, after) not in self._paths:
            front = self._front_matter(self._old) != self._front_matter(self._new)
            path, new_path = self._path(self._old, before), self._path(self._new, after)
            # Names change whenever a span moves to another section; that is marked, and no more.
            kinds = changed_kinds(meaning_changes(path, new_path)) - {NAME} if path != new_path else ()
            said = word_diff(path, new_path) if kinds else ""
            if not said and front:
                old_front, new_front = self._front_matter(self._old), self._front_matter(self._new)
                if VALIDITY in changed_kinds(meaning_changes(old_front, new_front)):
                    said = word_diff(old_front, new_front, shorten=True)
            self._paths[before, after] = said
        return self._paths[before, after]

    def _section(self, view: TextView, place: Range) -> int:
        """The section whose headings stand above a place: for a heading, the one around it. -1 for none."""
        at = innermost_section(view, place[0])
        return view.parents[at] if at >= 0 and place[0] < view.sections[at][1] else at

    def _path(self, view: TextView, index: int) -> str:
        """The headings down to a section, without their numbers."""
        if index < 0 or (index == 0 and _is_root(view)):
            return ""
        if (view, index) not in self._headings:
            start, body, _ = view.sections[index]
            above = self._path(view, view.parents[index])
            self._headings[view, index] = (
                f"{above} > {_heading(view.text[start:body])}" if above else _heading(view.text[start:body])
            )
        return self._headings[view, index]

    def _front_matter(self, view: TextView) -> str:
        return view.text[: view.sections[0][1]] if view.sections and _is_root(view) else ""

    def _edited_nearby(self, was: Range, now: Range, sections: tuple[int, int]) -> bool:
        old, new = self._old.text, self._new.text
        for one, other in (
            (old[max(0, was[0] - NEARBY) : was[0]], new[max(0, now[0] - NEARBY) : now[0]]),
            (old[was[1] : was[1] + NEARBY], new[now[1] : now[1] + NEARBY]),
        ):
            if one != other and _bare(one) != _bare(other):
                return True
        before, after = sections
        if before < 0 or after < 0:
            return False
        if (before, after) not in self._sections:
            self._sections[before, after] = self._section_differs(before, after)
        return self._sections[before, after]

    def _section_differs(self, before: int, after: int) -> bool:
        if self._path(self._old, before) != self._path(self._new, after):
            return True
        one = self._old.text[slice(*own_text(self._old, before))]
        other = self._new.text[slice(*own_text(self._new, after))]
        return one.strip() != other.strip() and _reads_differently(one, other)


def _said(read: str) -> list[str]:
    """The tokens of what stands beside a span in its sentence, without a stop at its end."""
    found = tokens(read)
    return found[:-1] if found and found[-1] in _STOPS else found


_STOPS = (".", ";", ",", "。")


def _block_before(text: str, start: int) -> int:
    """Where the block before a plain paragraph begins, from which on all is there that leads in to it; 0 for lists,
    tables and the like, to which more may belong."""
    own = text.rfind("\n\n", 0, start) + 2
    if own < 2 or not text[own : own + 1].isalpha() or text[own + 1 : own + 2] in (".", ")") or "|" in text[own:start]:
        return 0
    if "\n" in text[own:start] and _ITEM_LINE.search(text, own, start):
        return 0
    return max(0, text.rfind("\n\n", 0, own - 2))


_ITEM_LINE = re.compile(r"\n[ \t]*(?:[-*+•]|\w{1,9}[.)])[ \t]")


def _is_root(view: TextView) -> bool:
    """Whether the first section is the whole document, whose heading is the front matter, if anything."""
    start, body, _ = view.sections[0]
    return start == 0 and not view.text[:body].lstrip().startswith("#")


@lru_cache(maxsize=1024)  # a heading is mostly the same in both revisions
def _heading(heading: str) -> str:
    """A heading without marks and its number: ``## 3.2 Leave`` as ``Leave``; a year (``2026 rates``) stays."""
    if _SIGNS.search(heading):
        heading = plain(heading, 0, len(heading), markup(heading).kinds)
    text = " ".join(heading.strip("#= \t\n").split())
    number = _NUMBER.match(text)
    return text[number.end() :] if number and number.end() < len(text) else text


_SIGNS = re.compile(r"[*_`\[<&{\\]")
_NUMBER = re.compile(r"(?:\d+\.)+\d*\s+|\d{1,2}[.)]?\s+")


def _bare(text: str) -> str:
    return "".join(text.split())


_TARGETS = re.compile(r"\]\([^()\n]*\)|\]\[[^\[\]\n]*\]|<[^<>\n]*>|\{:[^{}\n]*\}|&nbsp;")
_WORDS = re.compile(r"\w+")


def _reads_differently(one: str, other: str) -> bool:
    """Whether two sections read differently; other words, whatever the layout, settle it at once."""
    lines, others = one.split("\n"), other.split("\n")
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(lines, others, strict=False)))
    # One word after another from the first line that differs: sections that differ mostly do so there.
    if any(word != opposite for word, opposite in zip_longest(_words(lines[same:]), _words(others[same:]))):
        return True
    return _as_read(one) != _as_read(other)


def _words(lines: Sequence[str]) -> Iterator[str]:
    """The words of lines; those of a text, as neither words nor targets of links go beyond a line."""
    for line in lines:
        yield from _WORDS.findall(unicodedata.normalize("NFKC", _TARGETS.sub("", line)))


def _as_read(text: str) -> list[str]:
    return tokens(plain(text, 0, len(text), markup(text).kinds))
