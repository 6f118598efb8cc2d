"""A window of a document as numbered sentences: what the model sees, and the way from numbers back to places.

Evidence named by number is verbatim by construction: neighbouring numbers become one span of the text itself,
whatever stands between the sentences (line breaks, list markers) included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragds_pipeline.candidates.windows import Window
from ragds_pipeline.records import Quote, Section
from ragds_pipeline.spans.sentences import Sentence


@dataclass(frozen=True, slots=True)
class NumberedText:
    """The sentences of one window, numbered from 1."""

    text: str
    sentences: tuple[Sentence, ...]
    sections: tuple[Section, ...]

    def render(self) -> str:
        """Return the sentences a line each, ``[7] ...``; headings carry their ``#`` marks."""
        levels = {(s.start_char, s.body_start_char): s.level for s in self.sections if s.level}
        bounds = sorted(levels)
        lines = []
        at = 0
        for number, (start, end) in enumerate(self.sentences, start=1):
            while at < len(bounds) and bounds[at][1] <= start:
                at += 1
            inside = at < len(bounds) and bounds[at][0] <= start < bounds[at][1]
            mark = "#" * levels[bounds[at]] + " " if inside else ""
            lines.append(f"[{number}] {mark}{' '.join(self.text[start:end].split(chr(10)))}")
        return "\n".join(lines)

    def quotes(self, numbers: Iterable[int]) -> list[Quote]:
        """Return the spans of the sentences named: neighbours joined, unless a section ends between them.

        Raises IndexError for a number that was not shown.
        """
        wanted = sorted(set(numbers))
        for number in wanted:
            if not 1 <= number <= len(self.sentences):
                raise IndexError(f"sentence {number} of {len(self.sentences)}")
        runs: list[list[int]] = []
        for number in wanted:
            if runs and number == runs[-1][-1] + 1 and self._same_section(number - 1, number):
                runs[-1].append(number)
            else:
                runs.append([number])
        quotes = []
        for run in runs:
            start, end = self.sentences[run[0] - 1].start_char, self.sentences[run[-1] - 1].end_char
            quotes.append(Quote(self.text[start:end], start, end))
        return quotes

    def _same_section(self, first: int, second: int) -> bool:
        after, before = self.sentences[first - 1].end_char, self.sentences[second - 1].start_char
        return not any(after <= s.start_char <= before for s in self.sections if s.level)


def numbered(text: str, sentences: Sequence[Sentence], sections: Sequence[Section], window: Window) -> NumberedText:
    """Return the numbered sentences of ``window``."""
    inside = [s for s in sentences if window.start_char <= s.start_char and s.end_char <= window.end_char]
    return NumberedText(text, tuple(inside), tuple(sections))
