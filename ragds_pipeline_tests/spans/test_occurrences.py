"""The index over a KB against one locator a document, sorted and scanned, in one shard and in many."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragds_pipeline.records import Place
from ragds_pipeline.spans import occurrences
from ragds_pipeline.spans.locate import Locator, QuoteTooShort
from ragds_pipeline.spans.match_key import key_of
from ragds_pipeline.spans.occurrences import OccurrenceIndex, find_everywhere
from ragds_pipeline.spans.suffix_array import SuffixArray
from ragds_pipeline_tests.spans import published_spans

texts = st.text(st.sampled_from("abé\u0301か\u3099が𠮷 \n\u200b\ufe0f\ud800ÿ"), max_size=12)
Documents = list[tuple[str, str]]


def twin(quotes: list[str], documents: Documents) -> list[list[Place]]:
    return [
        [
            Place(path, found.start_char, found.end_char)
            for path, text in documents
            for found in Locator(text).locate(quote, min_key_chars=1)
            if found.match != "lenient"
        ]
        for quote in quotes
    ]


def scanned(quotes: list[str], documents: Documents, shard_bytes: int, min_key_chars: int = 1) -> list[list[Place]]:
    assert len(quotes) <= occurrences.SCAN_AT_MOST
    return find_everywhere(quotes, iter(documents), min_key_chars=min_key_chars, shard_bytes=shard_bytes)


@settings(deadline=None)
@given(st.lists(texts, max_size=6), st.lists(texts.filter(key_of), max_size=6), st.sampled_from([1, 20, 10_000]))
def test_sorted_and_scanned_find_what_a_locator_finds(contents: list[str], quotes: list[str], shard_bytes: int) -> None:
    documents = [(f"{at}.md", text) for at, text in enumerate(contents)]
    expected = twin(quotes, documents)
    index = OccurrenceIndex.build(iter(documents), shard_bytes=shard_bytes)
    assert index.find_many(quotes, min_key_chars=1) == expected
    assert scanned(quotes, documents, shard_bytes) == expected


@given(
    st.lists(st.sampled_from([b"a", b"b", b"\x00", b"\xff", b"abababab", b"aaaaaaaaaaaa"]), min_size=1, max_size=90),
    st.lists(st.integers(0, 500), min_size=1, max_size=8),
    st.integers(1, 20),
)
def test_a_suffix_array_finds_what_a_scan_finds(pieces: list[bytes], starts: list[int], size: int) -> None:
    buffer = b"".join(pieces)
    patterns = [buffer[at : at + size] or b"a" for at in starts] + [b"\x00" * size, b"\xff" * size, b"c"]
    expected = [[at for at in range(len(buffer)) if buffer.startswith(each, at)] for each in patterns]
    assert list(SuffixArray(buffer).find(patterns)) == expected


def test_many_quotes_are_sorted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [
        ("a.md", "持股比\n例は八割である。持股比例は八割"),
        ("b.md", ""),
        ("c.md", "🚀 持股比例は八割である"),
    ]
    quotes = ["持股比例は八割である", "持股比例は八割", "not in any of them"]
    expected = [
        [Place("a.md", 0, 11), Place("c.md", 2, 12)],
        [Place("a.md", 0, 8), Place("a.md", 12, 19), Place("c.md", 2, 9)],
        [],
    ]
    assert find_everywhere(quotes, documents, min_key_chars=7) == expected
    monkeypatch.setattr(occurrences, "SCAN_AT_MOST", 0)
    monkeypatch.setattr(occurrences, "_scan", None)
    assert find_everywhere(quotes, documents, min_key_chars=7) == expected


def test_more_places_than_the_first_guess_of_a_range() -> None:
    text = "same words; " * 100
    (places,) = OccurrenceIndex.build([("a.md", text)]).find_many(["same words;"])
    assert [place.start_char for place in places] == list(range(0, 1200, 12))


def test_equal_quotes_get_lists_of_their_own() -> None:
    one, other = find_everywhere(["same words"] * 2, [("a.md", "the same words")])
    one.clear()
    assert other == [Place("a.md", 4, 14)]


def test_no_match_crosses_documents() -> None:
    documents = [("a.md", "ends with one"), ("b.md", "two begins")]
    assert OccurrenceIndex.build(documents).find_many(["with one two begins"]) == [[]]


def test_an_empty_kb_and_no_quotes() -> None:
    assert OccurrenceIndex.build([]).find_many(["twelve chars"]) == [[]]
    assert OccurrenceIndex.build([("a.md", "text")]).find_many([]) == []


@pytest.mark.parametrize("quote", ["", " \n", "short"])
def test_short_quotes_are_refused(quote: str) -> None:
    with pytest.raises(QuoteTooShort):
        OccurrenceIndex.build([("a.md", "a short text")]).find_many(["long enough", quote])


def test_published_spans_are_among_the_places() -> None:
    spans = [*published_spans.datapizza(), *published_spans.chroma()]
    documents = list({name: text for name, text, *_ in spans}.items())
    index = OccurrenceIndex.build(documents, shard_bytes=500_000)
    found = index.find_many([content for *_, content in spans], min_key_chars=1)
    for (name, _, start, end, content), places in zip(spans, found, strict=True):
        trimmed = start + content.index(content.strip())
        assert Place(name, trimmed, trimmed + len(content.strip())) in places
        assert end - start == len(content)
    assert sum(len(places) > 1 for places in found) > 50
