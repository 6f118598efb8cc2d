"""Match keys against a twin written one code point at a time, and the cases that went wrong elsewhere."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragds_pipeline.spans.match_key import LENIENT, STRICT, Level, encoded_keys, fold, key_of, match_key

TRICKY = (
    "aAeé\u0301\u0327\u0323が\u3099か９9ﬁfß İ\r\n\t\u00a0\u3000\u00ad\u200b\u200d\ufe0f️"
    "👩🏽🚀𠮷‘’“”—−‐각ᄀ\u309b\u00b4\u1fee\ud800"
)
texts = st.one_of(st.text(), st.text(st.sampled_from(TRICKY)))
levels = st.sampled_from(list(Level))


def twin_fold(char: str, level: Level) -> str:
    if (
        char.isspace()
        or unicodedata.category(char) in {"Cc", "Cf"}
        or "VARIATION SELECTOR" in unicodedata.name(char, "")
    ):
        return ""
    return char if level is STRICT else fold(char, LENIENT)


@settings(deadline=None)  # the first example builds the tables
@given(texts, levels)
def test_key_and_map_equal_those_made_one_code_point_at_a_time(text: str, level: Level) -> None:
    expected = [(folded, at) for at, char in enumerate(text) for folded in twin_fold(char, level)]
    key = match_key(text, level)
    assert key.offsets.tolist() == [at for _, at in expected]
    joined = "".join(folded for folded, _ in expected)
    assert key.key == (joined if level is STRICT else unicodedata.normalize("NFD", joined))


@settings(deadline=None)  # the first example builds the tables
@given(texts, levels)
def test_short_strings_get_the_same_key_without_a_map(text: str, level: Level) -> None:
    assert key_of(text, level) == match_key(text, level).key


@given(st.lists(texts, max_size=6))
def test_many_short_strings_get_the_same_keys_at_once(quotes: list[str]) -> None:
    assert encoded_keys(quotes) == [key_of(quote).encode("utf-8", "surrogatepass") for quote in quotes]


@settings(deadline=None)  # the first example builds the tables
@given(texts, levels)
def test_a_key_is_its_own_key(text: str, level: Level) -> None:
    key = key_of(text, level)
    assert key_of(key, level) == key


@settings(deadline=None)  # the first example builds the tables
@given(texts)
def test_composed_and_decomposed_texts_have_one_lenient_key(text: str) -> None:
    keys = {key_of(unicodedata.normalize(form, text), LENIENT) for form in ("NFC", "NFD")}
    assert keys == {key_of(text, LENIENT)}


def test_tables_hold_what_fold_says_for_every_code_point() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    for level in Level:
        folded = [fold(char, level) for char in everything]
        assert all(unicodedata.is_normalized("NFD", each) for each in folded if level is LENIENT)
        key = match_key(everything, level)
        joined = "".join(folded)
        assert key.key == (joined if level is STRICT else unicodedata.normalize("NFD", joined))
        assert len(key.offsets) == len(joined)


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        ("持股比\n例", "持股比例", STRICT),
        ("line\r\nbreak", "line break", STRICT),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth", STRICT),
        ("❤️", "❤", STRICT),
        ("e\u0301", "é", LENIENT),
        ("か\u3099", "が", LENIENT),
        ("ｶﾞ", "ガ", LENIENT),
        ("１２３", "123", LENIENT),
        ("“don’t” — ‘do’", "\"don't\" - 'do'", LENIENT),
        ("«Sì», 10−20", '"Sì", 10-20', LENIENT),
        ("STRASSE", "straße", LENIENT),
        ("10〜20", "10～20", LENIENT),
        ("a\u0327\u0323", "ạ\u0327", LENIENT),
    ],
)
def test_what_matches(one: str, other: str, level: Level) -> None:
    assert key_of(one, level) == key_of(other, level)


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        ("が", "か", LENIENT),
        ("é", "e", LENIENT),
        ("a´", "á", LENIENT),
        ("か゛", "が", LENIENT),
        ("e\u0301", "é", STRICT),
        ("Ａ", "A", STRICT),
        ("A", "a", STRICT),
    ],
)
def test_what_does_not_match(one: str, other: str, level: Level) -> None:
    assert key_of(one, level) != key_of(other, level)


@pytest.mark.parametrize(
    ("text", "key_start", "key_end", "content"),
    [
        ("text 🚀 rocket", 4, 5, "🚀"),
        ("text 🚀 rocket", 5, 11, "rocket"),
        ("a ❤\ufe0f b", 1, 2, "❤\ufe0f"),
        ("e\u0301 b", 0, 1, "e\u0301"),
        ("👩\u200d👧", 0, 1, "👩\u200d"),
    ],
)
def test_spans_are_offsets_in_the_text_and_end_after_a_whole_character(
    text: str, key_start: int, key_end: int, content: str
) -> None:
    start, end = match_key(text).span(key_start, key_end)
    assert text[start:end] == content


@pytest.mark.parametrize(("key_start", "key_end"), [(0, 0), (-1, 1), (0, 4), (2, 1)])
def test_a_range_outside_the_key_is_an_error(key_start: int, key_end: int) -> None:
    with pytest.raises(ValueError, match="is not in a key of 3 characters"):
        match_key("a b c").span(key_start, key_end)


@pytest.mark.parametrize("text", ["", " \r\n\u3000", "\u200b\ufe0f"])
def test_texts_without_content_have_an_empty_key(text: str) -> None:
    for level in Level:
        assert match_key(text, level).key == ""
        assert list(match_key(text, level).find("")) == []
