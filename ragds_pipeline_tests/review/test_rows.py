"""Tests of ``review.rows``: spans that share a cell come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.review.cells import from_cell, to_cell
from ragds_pipeline.review.rows import COLUMNS, join_spans, split_spans
from ragds_pipeline_tests.review.sheets import ANY_TEXT

SPANS = st.lists(
    st.one_of(ANY_TEXT, st.text(st.sampled_from("[.]…\\ \t\n\ra|"), max_size=16)).filter(bool), max_size=4
).map(tuple)


def test_columns_are_few_and_in_this_order() -> None:
    assert COLUMNS == ("id", "chunk_id", "type", "question", "answer", "evidence", "keep", "note", "context", "judges")


@given(SPANS)
def test_spans_come_back(spans: tuple[str, ...]) -> None:
    assert split_spans(join_spans(spans)) == spans


@given(SPANS)
def test_spans_come_back_through_a_cell(spans: tuple[str, ...]) -> None:
    cell = to_cell(join_spans(spans)).replace("\n", "\r\n")
    assert split_spans(from_cell(cell)) == spans


def test_spans_are_shown_with_a_line_between_them() -> None:
    assert join_spans(("| Pro | $20 |", "[...]", "x")) == "| Pro | $20 |\n[...]\n\\[...]\n[...]\nx"


@pytest.mark.parametrize("line", ["[...]", "  [...] ", "[…]", "\t[…]"])
def test_separator_is_known_however_it_was_typed(line: str) -> None:
    assert split_spans(f"a\n{line}\nb") == ("a", "b")


def test_no_span_and_blank_spans() -> None:
    assert join_spans(()) == "" and split_spans("") == ()
    assert split_spans("[...]\na\n[...]\n[...]") == ("a",)
