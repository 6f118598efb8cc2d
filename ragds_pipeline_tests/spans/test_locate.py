"""The locator against a twin that tries every range, on the named cases, and on spans others have
published."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragds_pipeline.spans.locate import Locator, Occurrence, QuoteTooShort, context
from ragds_pipeline.spans.match_key import LENIENT, STRICT, Level, is_dropped, is_extender, key_of
from ragds_pipeline_tests.spans import published_spans

ALPHABET = "abABか\u3099がéeE ﬁfi\n\u3000\u200b\ufe0f\u200d-—🏽"
texts = st.text(st.sampled_from(ALPHABET), max_size=14)


def twin_spans(text: str, quote: str, level: Level) -> list[tuple[int, int]]:
    """Every shortest range that begins with a kept character, ends a visible one, and has the quote's key."""
    wanted = key_of(quote, level)
    spans = []
    for start in range(len(text)):
        if is_dropped(text[start]):
            continue
        for end in range(start + 1, len(text) + 1):
            ends_character = end == len(text) or not is_extender(text[end])
            if ends_character and key_of(text[start:end], level) == wanted:
                spans.append((start, end))
                break
    return spans


def twin_locate(text: str, quote: str) -> list[Occurrence]:
    verbatim = quote[slice(*next(iter(twin_spans(quote, quote, STRICT)), (0, 0)))]
    strict = [
        Occurrence(start, end, "exact" if text[start:end] == verbatim else "strict")
        for start, end in twin_spans(text, quote, STRICT)
    ]
    return strict or [Occurrence(start, end, "lenient") for start, end in twin_spans(text, quote, LENIENT)]


@st.composite
def texts_and_quotes(draw: st.DrawFn) -> tuple[str, str]:
    text = draw(texts)
    if draw(st.booleans()):
        return text, draw(texts)
    start = draw(st.integers(0, len(text)))
    return text, text[start : draw(st.integers(start, len(text)))]


@settings(deadline=None)  # the first example builds the tables
@given(texts_and_quotes())
def test_all_occurrences_are_those_of_the_twin(text_and_quote: tuple[str, str]) -> None:
    text, quote = text_and_quote
    if key_of(quote):
        assert Locator(text).locate(quote, min_key_chars=1) == twin_locate(text, quote)
    else:
        with pytest.raises(QuoteTooShort):
            Locator(text).locate(quote, min_key_chars=0)


@pytest.mark.parametrize(
    ("text", "quote", "contents", "match"),
    [
        ("text 🚀 rocket", "text 🚀 rocket", ["text 🚀 rocket"], "exact"),
        ("first line\r\nsecond line", "line second", ["line\r\nsecond"], "strict"),
        ("Le caffe\u0301 chiude alle 18", "caffé chiude", ["caffe\u0301 chiude"], "lenient"),
        ("定員は１２３４５６名です", "定員は123456名", ["定員は１２３４５６名"], "lenient"),
        ("大株主持股比\n例は八割である", "大株主持股比例は八割", ["大株主持股比\n例は八割"], "strict"),
        ("| Plan | Price |\n|---|---|\n| Pro | $20 |", "| Plan | Price |", ["| Plan | Price |"], "exact"),
        ("| Pro   | $20  | month |", "| Pro | $20 | month |", ["| Pro   | $20  | month |"], "strict"),
        ("raise KeyError(k)\n    return x", " KeyError(k) return", ["KeyError(k)\n    return"], "strict"),
        ("the “quoted” — text", "the \"quoted\" - text", ["the “quoted” — text"], "lenient"),
        ("abababababab", "abababab", ["abababab"] * 3, "exact"),
        ("lone \ud800 surrogate", "lone \ud800 surr", ["lone \ud800 surr"], "exact"),
    ],
)  # fmt: skip
def test_named_cases(text: str, quote: str, contents: list[str], match: str) -> None:
    found = Locator(text).locate(quote)
    assert [text[each.start_char : each.end_char] for each in found] == contents
    assert {each.match for each in found} == {match}


def test_a_quote_with_other_white_space_elsewhere_stands_twice() -> None:
    text = "held within 30 days; held within\n30 days"
    assert Locator(text).locate("within 30 days") == [
        Occurrence(5, 19, "exact"),
        Occurrence(26, 40, "strict"),
    ]


def test_white_space_at_the_ends_is_not_part_of_the_span() -> None:
    assert Locator("see  expense rules  now").locate("\n expense rules\u3000") == [Occurrence(5, 18, "exact")]


def test_half_a_character_is_not_an_occurrence() -> None:
    assert Locator("これはとても長い文章か\u3099").locate("これはとても長い文章か") == []
    assert Locator("これはとても長い文章が").locate("これはとても長い文章か") == []
    assert Locator("a rather long oﬁ").locate("a rather long of") == []


@pytest.mark.parametrize("quote", ["", " \n\u3000\u200b", "1234567", "1 2 3 4\n5 6 7"])
def test_short_quotes_are_refused(quote: str) -> None:
    with pytest.raises(QuoteTooShort, match="at least 8 are needed"):
        Locator("12345678 12345678").locate(quote)


def test_an_empty_text_holds_nothing() -> None:
    assert Locator("").locate("twelve chars") == []


def test_context_is_cut_at_the_ends_of_the_text() -> None:
    assert context("abcdefgh", 3, 5, width=2) == ("bc", "fg")
    assert context("abcdefgh", 1, 8) == ("a", "")
    with pytest.raises(ValueError, match="not in a text of 8"):
        context("abcdefgh", 3, 9)


@pytest.mark.parametrize(
    ("published", "count"),
    [(published_spans.datapizza, 264), (published_spans.chroma, 790), (published_spans.jsquad, 4_134)],
)
def test_published_spans_hold_and_are_found_where_they_were_published(
    published: Callable[[], Iterator[published_spans.PublishedSpan]], count: int
) -> None:
    locators: dict[str, Locator] = {}
    seen = 0
    for name, text, start, end, content in published():
        assert text[start:end] == content, name
        locator = locators.setdefault(text, Locator(text))
        trimmed = content.strip()
        start += content.index(trimmed)
        expected = Occurrence(start, start + len(trimmed), "exact")
        assert expected in locator.locate(content, min_key_chars=1), (name, start, content)
        seen += 1
    assert seen == count
