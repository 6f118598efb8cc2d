"""The join on seeds against a scan, and against the other two ways to find quotes everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.spans import seeds
from ragds_pipeline.spans.match_key import key_of
from ragds_pipeline.spans.occurrences import KeyShards, find_everywhere, find_keys

pieces = st.lists(st.sampled_from([b"a", b"b", b"\x00", b"\xff", b"abababab", b"a" * 33]), max_size=90)


@given(pieces, st.lists(st.integers(0, 900), max_size=8), st.sampled_from([8, 9, 31, 32, 33, 64]), st.integers(1, 3))
def test_a_join_finds_what_a_scan_finds(parts: list[bytes], starts: list[int], size: int, piece: int) -> None:
    buffer = b"".join(parts)
    patterns = [part for at in starts if len(part := buffer[at : at + size]) >= 8] + [b"a" * size, b"c" * size]
    expected = [[at for at in range(len(buffer)) if buffer.startswith(each, at)] for each in patterns]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(seeds, "_PIECE", piece * 7)
        found = seeds.find_all(buffer, patterns)
        assert [found.get(each, []) for each in patterns] == expected


def test_short_patterns_are_refused() -> None:
    with pytest.raises(ValueError, match="less than 8 bytes"):
        seeds.find_all(b"0123456789", [b"0123456"])


texts = st.text(st.sampled_from("abé\u0301か\u3099が𠮷 \n\u200b\ufe0f"), max_size=60)


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=6), st.sampled_from([1, 20, 10_000]))
def test_keys_are_found_where_quotes_are(contents: list[str], quotes: list[str], shard_bytes: int) -> None:
    documents = [(f"{at}.md", text) for at, text in enumerate(contents)]
    long = [quote for quote in [*quotes, *contents] if len(key_of(quote).encode()) >= seeds.SHORTEST]
    expected = find_everywhere(long, documents, min_key_chars=1)
    assert find_keys([key_of(quote) for quote in long], documents, shard_bytes=shard_bytes) == expected


@given(
    st.lists(texts, max_size=5),
    st.lists(texts, max_size=6),
    st.sampled_from([1, 20, 10_000]),
    st.sampled_from([None, 0, 1, 2]),
)
def test_shards_are_the_same_at_each_look(
    contents: list[str], quotes: list[str], shard_bytes: int, at_most: int | None
) -> None:
    documents = [(f"{at}.md", text) for at, text in enumerate(contents * 2)]
    keys = [key for quote in [*quotes, *contents] if len((key := key_of(quote)).encode()) >= seeds.SHORTEST]
    found = zip(keys, find_keys(keys, documents), strict=True)
    expected = {key.encode(): each for key, each in found if each and (at_most is None or len(each) <= at_most)}
    shards = KeyShards(lambda: documents, shard_bytes=shard_bytes)
    for _ in range(2):
        assert shards.find([key.encode() for key in keys], at_most) == expected
