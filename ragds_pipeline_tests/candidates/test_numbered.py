"""Evidence by sentence number: verbatim, joined within a section, never across one."""

from __future__ import annotations

import pytest

from ragds_pipeline.candidates.numbered import numbered
from ragds_pipeline.candidates.windows import Window
from ragds_pipeline_tests.documents import outline

TEXT = """# Travel

Hotels are paid up to EUR 118. Ask first.

- Taxis need a receipt.
- Buses do not.

## Meals

| Meal | EUR |
|---|---|
| Lunch | 17 |
| Dinner | 29 |

Tips are not paid.
"""


def test_numbers_come_back_as_places() -> None:
    found = outline(TEXT)
    shown = numbered(TEXT, found.sentences, found.sections, Window("rules.md", 0, len(TEXT)))
    lines = shown.render().split("\n")
    assert lines[0] == "[1] # Travel"
    assert "[6] ## Meals" in lines
    for line in lines:
        number = int(line[1 : line.index("]")])
        (quote,) = shown.quotes([number])
        assert TEXT[quote.start_char : quote.end_char] == quote.text
        assert quote.text in line


def test_neighbours_become_one_span_with_what_stands_between() -> None:
    found = outline(TEXT)
    shown = numbered(TEXT, found.sentences, found.sections, Window("rules.md", 0, len(TEXT)))
    (quote,) = shown.quotes([3, 2, 3])
    assert quote.text == "Hotels are paid up to EUR 118. Ask first."
    table = shown.quotes([7, 9])
    assert [q.text for q in table] == ["| Meal | EUR |", "| Dinner | 29 |"]


def test_neighbours_in_two_sections_stay_two_spans() -> None:
    found = outline(TEXT)
    shown = numbered(TEXT, found.sentences, found.sections, Window("rules.md", 0, len(TEXT)))
    assert len(shown.quotes([5, 6])) == 2


def test_a_number_that_was_not_shown_is_refused() -> None:
    found = outline(TEXT)
    shown = numbered(TEXT, found.sentences, found.sections, Window("rules.md", 0, len(TEXT)))
    for number in (0, -1, 99):
        with pytest.raises(IndexError):
            shown.quotes([number])
