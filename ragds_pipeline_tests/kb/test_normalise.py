from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.kb.normalise import Undecodable, decode, front_matter, front_matter_end, normalise
from ragds_pipeline_tests.kb.markdown_texts import raw_texts, texts


@given(raw_texts)
def test_normalising_is_idempotent_and_does_nothing_else(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert once == unicodedata.normalize("NFC", re.sub("\r\n?", "\n", text))


def test_what_must_stay_stays() -> None:
    text = "---\na: 1\n---\nx\u00a0y\u200bz\u00ad Ａ１ ﬁ 👩‍👩‍👧 trailing  \n\n\ttab\x0b\x0c\u2028\ufeff"
    assert normalise(text) == text


def test_bare_cr_and_nfd_change() -> None:
    assert normalise("a\rb\r\nc\n\r") == "a\nb\nc\n\n"
    assert normalise("caf" + "e\u0301") == "caf\u00e9"


@pytest.mark.parametrize(
    ("bom", "encoding"),
    [
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"\xff\xfe\0\0", "utf-32-le"),
        (b"\0\0\xfe\xff", "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_goes(bom: bytes, encoding: str) -> None:
    decoded = decode(bom + "naïve 🚀 日本".encode(encoding), declared="ascii")
    assert decoded.text == "naïve 🚀 日本"
    assert decoded.encoding == encoding


@given(texts)
def test_utf8_comes_back_as_it_was(text: str) -> None:
    controls = len(re.findall("[\x01-\x08\x0e-\x1a\x1c-\x1f]", text))
    if not controls and not text.startswith("\ufeff"):
        assert decode(text.encode()).text == text


def test_other_encodings_are_detected_the_same_each_time() -> None:
    italian = "La società è tenuta a comunicare perché la città può già più. " * 20
    japanese = "経費の精算は翌月末までに申請してください。領収書が必要です。" * 20
    polish = "Zażółć gęślą jaźń. Proszę złożyć wniosek do końca miesiąca, żeby otrzymać zwrot kosztów. " * 5
    for text, encoding in (
        (italian, "cp1252"),
        ("café", "cp1252"),
        (polish, "cp1250"),
        (japanese, "shift_jis"),
        (japanese, "euc_jp"),
    ):
        first = decode(text.encode(encoding))
        assert first.text == text
        assert decode(text.encode(encoding)) == first


def test_a_declared_encoding_must_fit() -> None:
    assert decode("è".encode("cp1252"), declared="cp1252").text == "è"
    assert decode("è".encode("utf-16-le"), declared="UTF-16LE").encoding == "utf-16-le"
    for declared in ("ascii", "no-such-encoding", "base64"):
        with pytest.raises(Undecodable, match=declared):
            decode("è".encode(), declared=declared)


@pytest.mark.parametrize(
    "data",
    [
        b"a\0b",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff",
        bytes(range(1, 32)) * 10,
        b"\xef\xbb\xbf\xff",
        b"\xff\xfea",
        b"\xff\xfe\x00\xd8",
    ],
)
def test_binary_data_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(Undecodable) as caught:
        decode(data)
    assert caught.value.reason


@given(st.binary(max_size=60))
def test_bytes_give_a_clean_text_or_the_typed_error(data: bytes) -> None:
    try:
        text = decode(data).text
    except Undecodable:
        return
    assert "\0" not in text
    text.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("---\ntitle: A\n---\nText", 17),
        ("---\ntitle: A\n...\nText", 17),
        ("---  \n# comment\ntitle: A\n---", 28),
        ("---\n---\nText", 8),
        ("---\ntitle: A\n---", 16),
        ("---\n\nText\n\n---\n", 0),
        ("---\nSome prose: it goes on\nand on\n", 0),
        ("---\nText\n---\n", 0),
        (" ---\na: 1\n---\n", 0),
        ("----\na: 1\n---\n", 0),
        ("\n---\na: 1\n---\n", 0),
        ("---\na: 1\n ---\n", 0),
        ("", 0),
    ],
)
def test_where_front_matter_ends(text: str, end: int) -> None:
    assert front_matter_end(text) == end


def test_front_matter_gives_scalars_as_written() -> None:
    text = "---\ntitle: 'A: b'\nversion: 1.10\ndate: 2024-01-05\ndraft: no\nempty:\ntags: [a, b]\n---\nBody\n"
    assert front_matter(text) == {
        "title": "A: b",
        "version": "1.10",
        "date": "2024-01-05",
        "draft": "no",
        "empty": "",
    }


@pytest.mark.parametrize("body", ["a: [", "a: b: c", "a: 1\n? [x]\n: y", "a: \x07", "a: " + "[" * 5_000, "a: *b"])
def test_bad_yaml_gives_nothing(body: str) -> None:
    assert front_matter(f"---\n{body}\n---\n") == {}


def test_a_bomb_of_aliases_is_harmless_and_a_huge_block_is_no_front_matter() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert front_matter(f"---\nl0: &l0 lol\n{levels}---\n") == {"l0": "lol"}
    assert front_matter_end("---\n" + "a: b\n" * 200_000 + "---\n") == 0


@given(raw_texts)
def test_reading_front_matter_never_raises(text: str) -> None:
    for candidate in (text, f"---\n{text}\n---\n", f"---\na: 1\n{text}\n---\n"):
        end = front_matter_end(candidate)
        assert 0 <= end <= len(candidate)
        assert isinstance(front_matter(candidate), dict)
