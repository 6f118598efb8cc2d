"""What touches the meaning of an edit, in many languages and scripts; and how a text reads without its layout."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.anchors.markup import markup
from ragds_pipeline.anchors.meaning import meaning_changes, number_value
from ragds_pipeline.anchors.reading import plain, reading
from ragds_pipeline.anchors.word_diff import word_diff


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("within 90 days", "within 30 days", "changed number 90 -> 30"),
        ("within 90 days", "within 90 hours", "changed unit days -> hours"),
        ("９０日以内", "３０日以内", "changed number ９０ -> ３０"),
        ("三十日以内", "二十日以内", "changed number 三十 -> 二十"),
        ("५ दिन", "६ दिन", "changed number ५ -> ६"),
        ("costs € 5", "costs $ 5", "changed currency € -> $"),
        ("5 % of it", "5 ‰ of it", "changed percent % -> ‰"),
        ("from 1 March on", "from 1 April on", "changed date March -> April"),
        ("ten days", "two days", "changed number ten -> two"),
        ("an area of 10²", "an area of 102", "changed number 10 ² -> 102"),
        ("½ a day", "a day", "removed number ½"),
        ("-5 degrees", "5 degrees", "changed number -5 -> 5"),
        ("it is allowed", "it is not allowed", "added negation not"),
        ("it doesn’t apply", "it does apply", "removed negation doesn’t"),
        ("è ammesso", "non è ammesso", "added negation non"),
        ("darf man rauchen", "darf man nicht rauchen", "added negation nicht"),
        ("on peut", "on ne peut pas", "added negation ne"),
        ("se puede", "no se puede", "added negation no"),
        ("申請できる", "申請できない", "added negation ない"),
        ("you may leave", "you must leave", "changed modal may -> must"),
        ("it MUST be", "it must be", "changed modal MUST -> must"),
        ("kann man", "muss man", "changed modal kann -> muss"),
        ("at least two", "at most two", "changed limit least -> most"),
        ("ask Anna Rossi", "ask Anna Bianchi", "changed name Rossi -> Bianchi"),
        ("Anna pays Bruno", "Bruno pays Anna", "name"),
        ("システムを使う", "サーバーを使う", "changed name システム -> サーバー"),
        ("the current form", "the deprecated form", "added validity deprecated"),
        ("keep it", "~~keep it~~", "added strike-through ~~ ~~"),
    ],
)  # fmt: skip
def test_what_touches_the_meaning_is_named(old: str, new: str, expected: str) -> None:
    assert any(expected in change for change in meaning_changes(old, new)), meaning_changes(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [("９０日", "九十日"), ("1万5千円", "15000円"), ("the old house", "the new house"), ("", "")],
)
def test_what_does_not_is_silent(old: str, new: str) -> None:
    assert meaning_changes(old, new) == ()


@given(st.text(max_size=60))
def test_equal_texts_have_no_changes(text: str) -> None:
    assert meaning_changes(text, text) == () and word_diff(text, text) == ""


@given(st.integers(0, 10**8 - 1))
def test_numbers_have_one_value_in_all_scripts(number: int) -> None:
    assert number_value(str(number)) == str(number)
    assert number_value(str(number).translate(str.maketrans("0123456789", "０１２３４５６７８９"))) == str(number)
    assert number_value(kanji(number)) == str(number)


def kanji(number: int) -> str:
    if number == 0:
        return "〇"
    digits, out = "〇一二三四五六七八九", ""
    for unit, size in (("万", 10_000), ("", 1)):
        part = number // size % 10_000
        written = ""
        for name, value in (("千", 1000), ("百", 100), ("十", 10), ("", 1)):
            digit = part // value % 10
            if digit:
                written += ("" if digit == 1 and name else digits[digit]) + name
        out += written + unit if written else ""
    return out


def read(text: str) -> list[str]:
    return reading(text, 0, len(text), markup(text).kinds)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a **bold** word", "a bold word"),
        ("a *very __deep__* word", "a very deep word"),
        ("これは**重要**です", "これは重要です"),
        ("see [the form](/a/b) now", "see [the form](../c.md#d) now"),
        ("see [the form][ref] now", "see the form now"),
        ("use `must` here", "use must here"),
        ("- one\n- two", "* one\n* two"),
        ("1. one\n2. two", "1) one\n2) two"),
        ("## Title", "### Title ###"),
        ("Title\n=====", "Title"),
        ("> wrapped\n> lines", "> wrapped lines"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a  | b |\n|:--|:-:|\n| 1  | 2 |"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a | b\n---|---\n1 | 2"),
        ("see [the form]({% page \"/a b/\" %})", "see [the form](/a/b)"),
        ("“so” – he’s", "\"so\" - he's"),
        ("１２ｋｍ", "12km"),
        ("a\u00a0b\u200b c…", "a b c..."),
        ("one<br>two", "one two"),
        ("1 \\* 2", "1 * 2"),
    ],
)  # fmt: skip
def test_layout_does_not_change_how_a_text_reads(one: str, other: str) -> None:
    assert read(one) == read(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("do ~~not~~ smoke", "do not smoke"),
        ("10² m", "102 m"),
        ("10<sup>2</sup> m", "102 m"),
        ("2½ days", "21/2 days"),
        ("now here", "nowhere"),
        ("5*3*2", "532"),
        ("snake_case_name", "snakecasename"),
        ("100 mW", "100 MW"),
        ("you MUST", "you must"),
        ("20* a day", "20 a day"),
        ("text[^1] here", "text here"),
        ("<!-- not --> yes", "not yes"),
        ("- [ ] done", "- [x] done"),
        ("1. one", "2. one"),
        ("`a*b*c`", "abc"),
        ("![old](a.png)", "![old](b.png)"),
        ("1,000", "1, 000"),
        ("- 5", "-5"),
        ("https://a.b/_c_", "https://a.b/c"),
        ("ab\u202ecd", "abcd"),
    ],
)  # fmt: skip
def test_what_may_change_the_meaning_changes_how_a_text_reads(one: str, other: str) -> None:
    assert read(one) != read(other)


@given(st.text(st.sampled_from("a*_`[]()~<>|#- 1\n\\!é𠮷が\u3099"), max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    found = markup(text)
    assert len(found.kinds) == len(text)
    assert "~" * text.count("~") == "".join(char for char in plain(text, 0, len(text), found.kinds) if char == "~")
    for opening, closing in found.pairs:
        assert opening[0] < opening[1] <= closing[0] < closing[1] <= len(text)


def test_the_diff_reads_in_words() -> None:
    assert word_diff("within 90 days of it", "within 30 days of it") == "within [-90-]{+30+} days of it"
    assert word_diff("申請は九十日以内", "申請は三十日以内") == "申請は[-九-]{+三+}十日以内"
    assert word_diff("a", "b " * 4000).startswith("[-a-]{+b ")
