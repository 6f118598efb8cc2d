"""Properties of the ladder over made documents and edits, in several scripts; twins by brute force."""

from __future__ import annotations

import re
import unicodedata
from unittest.mock import patch

import edlib
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragds_pipeline.anchors import edited, markup
from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.anchors.surroundings import _TARGETS, _WORDS, Surroundings, _words
from ragds_pipeline.anchors.view import TextView, caseless_words
from ragds_pipeline.records import Place, Rung
from ragds_pipeline.spans.occurrences import find_everywhere
from ragds_pipeline_tests.anchors.revisions import PATH, check_place, revision, section_ranges, span, step

WORDS = [
    *(
        "form",
        "office",
        "trip",
        "receipt",
        "𠮷野家",
        "naïve",
        "e\u0301tude",
        "申請",
        "書類",
        "旅費",
        "期限",
        "👩\u200d👧",
        "が\u3099",
    ),
    *("must", "not", "**bold**", "[link](a.md)", "`code`", "“quoted”", "—", "ﬁle", "über", "90", "days", "und", "però"),
]
words = st.sampled_from(WORDS)


@st.composite
def sentences(draw: st.DrawFn) -> str:
    number = draw(st.integers(100, 999_999))
    chosen = draw(st.lists(words, min_size=6, max_size=14))
    return f"Rule {number} {' '.join(chosen)}."


@st.composite
def documents(draw: st.DrawFn) -> list[str]:
    """Paragraphs, each different, some of them headings."""
    found = draw(st.lists(sentences(), min_size=2, max_size=7, unique=True))
    return [f"## {each[:-1]}" if draw(st.integers(0, 5)) == 0 else each for each in found]


@st.composite
def edits_elsewhere(draw: st.DrawFn) -> tuple[str, str, str]:
    """An old text, one of its paragraphs, and a new text in which all others may have changed."""
    paragraphs = draw(documents())
    at = draw(st.integers(0, len(paragraphs) - 1))
    quote = paragraphs[at].removeprefix("## ")
    others = paragraphs[:at] + paragraphs[at + 1 :]
    kept = draw(st.permutations(others)) if draw(st.booleans()) else others
    kept = [each for each in kept if draw(st.integers(0, 3))]
    kept += draw(st.lists(sentences(), max_size=3))
    kept.insert(draw(st.integers(0, len(kept))), paragraphs[at])
    old, new = "\n\n".join(paragraphs) + "\n", "\n\n".join(kept) + "\n"
    assume(old.count(quote) == new.count(quote) == 1)
    return old, new, quote


@given(edits_elsewhere())
def test_words_that_stand_once_are_found_whatever_else_changes(case: tuple[str, str, str]) -> None:
    old, new, quote = case
    event = step(old, new, quote)
    assert (event.new_start_char, event.new_content) == (new.index(quote), quote)
    assert event.rung in (Rung.UNCHANGED, Rung.SAME_PLACE, Rung.MOVED) and event.score == 1.0


@given(edits_elsewhere())
def test_and_carry_unless_what_stands_around_speaks_against_it(case: tuple[str, str, str]) -> None:
    event = step(*case)
    assert event.carries or event.reason in ("heading_changed", "short_and_elsewhere")


@given(edits_elsewhere(), st.integers(0, 9), st.data())
def test_a_changed_digit_never_carries(case: tuple[str, str, str], digit: int, data: st.DataObject) -> None:
    old, new, quote = case
    digits = [match.start() for match in re.finditer(r"\d", quote)]
    at = data.draw(st.sampled_from(digits))
    assume(quote[at] != str(digit))
    changed = new.replace(quote, quote[:at] + str(digit) + quote[at + 1 :])
    event = step(old, changed, quote)
    assert not event.carries
    if event.rung == Rung.EDITED and event.new_content == quote[:at] + str(digit) + quote[at + 1 :]:
        assert any("number" in change for change in event.meaning_changes)


@given(edits_elsewhere())
def test_a_quote_that_is_gone_never_carries(case: tuple[str, str, str]) -> None:
    old, new, quote = case
    gone = new.replace(quote, "")
    assume(gone.strip())
    assert not step(old, gone, quote).carries


@given(edits_elsewhere())
def test_a_step_back_leads_back(case: tuple[str, str, str]) -> None:
    old, new, quote = case
    there = step(old, new, quote)
    [back] = reanchor(
        [AnchoredSpan("g", 0, True, PATH, there.new_start_char, there.new_end_char, there.new_content)],
        revision("v2", {PATH: new}),
        revision("v3", {PATH: old}),
    )
    assert (back.new_start_char, back.new_end_char) == (there.start_char, there.end_char)


@given(st.lists(documents(), min_size=1, max_size=4))
def test_nothing_changed_nothing_moves(texts: list[list[str]]) -> None:
    named = {f"{at}.md": "\n\n".join(each) + "\n" for at, each in enumerate(texts)}
    spans = [
        span(named, paragraph, path) for (path, _), each in zip(named.items(), texts, strict=True) for paragraph in each
    ]
    once = reanchor(spans, revision("v1", named), revision("v2", named))
    assert once == reanchor(spans, revision("v1", named), revision("v2", named))
    for event, given_ in zip(once, spans, strict=True):
        assert event.rung == Rung.UNCHANGED and event.carries and event.alternatives == given_.alternatives


anything = st.text(st.sampled_from("ab 1\n#-|>*_`~[](){}<!&;:.é𠮷が\u3099\u200b。日"), max_size=80)


@settings(max_examples=300)
@given(anything, anything, st.integers(0, 79), st.integers(1, 60))
def test_what_is_proposed_stands_there_in_any_text(old: str, new: str, start: int, size: int) -> None:
    content = old[start : start + size]
    assume(content)
    texts, after = {PATH: old}, {PATH: new}
    [event] = reanchor(
        [AnchoredSpan("g", 0, True, PATH, start, start + len(content), content)],
        revision("v1", texts),
        revision("v2", after),
    )
    check_place(event, after)


@given(
    st.lists(st.sampled_from("ABC"), min_size=1, max_size=5), st.lists(st.sampled_from("ABC"), max_size=5), st.data()
)
def test_alternatives_are_all_other_places(before: list[str], after: list[str], data: st.DataObject) -> None:
    """One document a letter, and one that holds what the lists say; only the latter changes."""
    rules = {letter: f"The rule of {letter * 12} holds for all of us." for letter in "ABC"}
    unchanged = {f"{letter}.md": f"# {letter}\n\n{rule}\n" for letter, rule in rules.items()}

    def texts(letters: list[str]) -> dict[str, str]:
        return {**unchanged, PATH: "".join(f"## {at}\n\n{rules[each]}\n\n" for at, each in enumerate(letters))}

    old, new = texts(before), texts(after)
    letter = data.draw(st.sampled_from(before))
    event = step(old, new, rules[letter], data.draw(st.integers(0, before.count(letter) - 1)))
    everywhere = set(find_everywhere([rules[letter]], new.items())[0])
    here = Place(event.new_document_path, event.new_start_char, event.new_end_char)
    assert set(event.alternatives) >= everywhere - {here}


wordy = st.text(st.sampled_from("aAbß_ -.1é\u0301ﬁ\u00ad\u200b²日\nI\u0130"), max_size=40)


@given(wordy, wordy)
def test_a_word_is_looked_up_as_if_all_words_of_the_text_were_listed(text: str, other: str) -> None:
    view, words_of_text = TextView(PATH, text), caseless_words(text)
    assert all(view.has_word(word) for word in words_of_text)
    parts = {word[start:] for word in caseless_words(other) | words_of_text for start in range(len(word))}
    assert {word for word in parts if view.has_word(word)} == parts & words_of_text


marked = st.lists(
    st.sampled_from(
        ["a", "B", "1", "1. ", "- ", "\n", "\n\n", " ", *"#>|*_`~[](){}<!&;:=.-\\\t", "é", "² ", "<b>", "~~"]
    ),
    max_size=16,
).map("".join)


@settings(max_examples=500)
@given(marked)
def test_text_without_a_sign_of_layout_has_none(text: str) -> None:
    found = markup.markup(text)
    with patch.object(markup, "_ANY", re.compile("")):
        whole = markup.markup(text)
    assert found.kinds.tolist() == whole.kinds.tolist()
    assert found[1:] == whole[1:]


blocks = st.lists(
    st.sampled_from(
        [
            *(
                "# One.",
                "## Two",
                "- It says:\n  - a b. C d.",
                "- e f",
                "1. g. H i",
                "Rules are:",
                "| a | b |\n|---|---|",
            ),
            *(
                "Not so. A b. C d! It",
                "A b.\nC d. it",
                "> A b. C d",
                "```\nA b. C d.\n```",
                "<!-- A b. -->",
                "~~A b. C",
                "d.~~",
            ),
            *("", "A b. C d.\n\nE f", "mr. A b", "<!--", "-->", "```", "<del>A b</del>. C d.", "e\u0301. A b"),
        ]
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=500)
@given(blocks, blocks, st.data())
def test_a_paragraph_that_is_the_same_needs_no_closer_look(
    before: list[str], after: list[str], data: st.DataObject
) -> None:
    kept = data.draw(blocks)
    old, new = ("\n\n".join([*other, *kept, *data.draw(blocks)]) for other in (before, after))
    start = data.draw(st.integers(0, len(old) - 2))
    end = data.draw(st.integers(start + 1, min(len(old), start + 12)))
    places = [match.start() for match in re.finditer(f"(?={re.escape(old[start:end])})", new)]
    if not places:
        return
    at = data.draw(st.sampled_from(places))
    surroundings = Surroundings(TextView(PATH, old, section_ranges), TextView(PATH, new, section_ranges))
    short = surroundings.compare((start, end), (at, at + end - start))
    with patch.object(Surroundings, "_same_paragraph", return_value=False):
        assert surroundings.compare((start, end), (at, at + end - start)) == short


ascii_words = st.text(st.sampled_from("ab c.\n"), min_size=1, max_size=40)


@given(ascii_words, ascii_words)
def test_ascii_is_aligned_as_any_characters_are(needle: str, window: str) -> None:
    first, second = (
        edlib.align(*made(needle, window), mode="HW", task="path", k=len(needle))
        for made in (edited._as_bytes, edited._as_symbols)
    )
    assert {**first, "alphabetLength": 0} == {**second, "alphabetLength": 0}


@given(
    st.lists(
        st.sampled_from(["a", "\u0301", "ﬁ", "²", "\n", " ", "[", "](", ")", "<", ">", "{:", "}", "&nbsp;", "\r"])
    ).map("".join)
)
def test_the_words_of_lines_are_those_of_the_text(text: str) -> None:
    whole = _WORDS.findall(unicodedata.normalize("NFKC", _TARGETS.sub("", text)))
    assert list(_words(text.split("\n"))) == whole
