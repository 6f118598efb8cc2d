"""Tests of ``review.cells``: any text can stand in a cell and comes back."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragds_pipeline.review.cells import (
    CELL_LIMIT,
    LINE_LIMIT,
    from_cell,
    holds_marker,
    is_shortened,
    same_cell,
    survives,
    to_cell,
    utf16_length,
)
from ragds_pipeline_tests.review.sheets import NASTY, TEXTS

TYPED = pytest.mark.parametrize("typed", [False, True])


@settings(max_examples=300)
@given(TEXTS, st.booleans())
def test_a_text_comes_back_from_its_cell(text: str, typed: bool) -> None:
    if not is_shortened(text):
        assert from_cell(to_cell(text, typed=typed)) == text


@settings(max_examples=300)
@given(TEXTS, st.booleans())
def test_a_cell_is_harmless_and_legal(text: str, typed: bool) -> None:
    cell = to_cell(text, typed=typed)
    assert not re.match(r"\s*[=+\-@＝＋－＠]|[\t\r\n]", cell)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", cell)
    assert not re.search(r"_x[0-9A-Fa-f]{4}_|x005F_", cell)
    assert utf16_length(cell) <= CELL_LIMIT


@settings(max_examples=300)
@given(TEXTS, st.booleans(), st.sampled_from(["NFC", "NFD"]), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_spreadsheets_do_is_no_edit(text: str, typed: bool, form: str, end: str) -> None:
    cell = unicodedata.normalize(form, to_cell(text, typed=typed))  # type: ignore[arg-type]
    assert same_cell(cell.replace("\n", end), text)
    assert same_cell(cell.strip(), text)
    assert same_cell(cell.removeprefix("'"), text)


@pytest.mark.parametrize("encoding", ["cp932", "cp1252"])
@pytest.mark.parametrize("marks", [1, 2])
@pytest.mark.parametrize("text", NASTY)
def test_characters_lost_in_a_code_page_are_no_edit(text: str, encoding: str, marks: int) -> None:
    cell = re.sub(r"[\U00010000-\U0010ffff]", "?" * marks, to_cell(text))
    assert same_cell(cell.encode(encoding, "replace").decode(encoding), text, encoding)


@pytest.mark.parametrize(
    ("received", "text", "encoding"),
    [
        ("'=1+1", "＝1+1", "cp1252"),  # as LibreOffice 7.4 writes it
        ("cafe", "café", "cp932"),
        ("10?1?", "10月1日", "cp1252"),
        ("日本～", "日本〜", "cp932"),
    ],
)
def test_nearest_character_of_a_code_page_is_no_edit(received: str, text: str, encoding: str) -> None:
    assert same_cell(received, text, encoding)
    assert not same_cell(received, text)


def test_an_edit_is_an_edit() -> None:
    assert not same_cell("30 days", "31 days")
    assert not same_cell('"q"', "“q”")
    assert not same_cell("a b", "a  b")
    assert not same_cell("日本?", "日本海", "cp932")
    assert not same_cell("?" * 999, "🚀" * 1000, "cp1252")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("'=1+1", "''=1+1"),
        ("'tis", "'tis"),
        ("0012", "'0012"),
        ("1-2", "'1-2"),
        ("a\x0bb", "a\\x0bb"),
        ("\\x0b", "\\x5cx0b"),
        ("C:\\temp", "C:\\temp"),
        ("\\u00e9", "\\u00e9"),
        ("\ud83d", "\\ud83d"),
        ("It takes 30 days.", "It takes 30 days."),
    ],
)
def test_what_a_reviewer_sees(text: str, cell: str) -> None:
    assert to_cell(text) == cell


def test_typed_cells_need_no_guard_but_for_formulas() -> None:
    assert to_cell("0012", typed=True) == "0012"
    assert to_cell("=1", typed=True) == "'=1"


@TYPED
@pytest.mark.parametrize("text", ["a" * 40_000, "🚀" * 20_000, "x\n" + "y" * 17_000, "a\n" * 20_000])
def test_long_texts_are_shortened_visibly(text: str, typed: bool) -> None:
    cell = to_cell(text, typed=typed)
    assert is_shortened(text) and holds_marker(cell)
    assert max(map(utf16_length, cell.split("\n"))) <= LINE_LIMIT
    assert same_cell(cell, text) and not same_cell(cell + "!", text)


def test_a_cell_that_fits_exactly_is_left_whole() -> None:
    assert not is_shortened("a" * CELL_LIMIT) and is_shortened("a" * (CELL_LIMIT + 1))
    assert is_shortened("=" + "a" * (CELL_LIMIT - 1))  # the guard counts


def test_survives() -> None:
    assert survives("perché", "cp1252") and not survives("perché", "cp932") and survives("\ud83d", "cp932")


def test_guarding_takes_no_time_on_long_runs() -> None:
    assert to_cell("marmarmarmarmarmarmarmarmarmarmarmar!x") == "marmarmarmarmarmarmarmarmarmarmarmar!x"
