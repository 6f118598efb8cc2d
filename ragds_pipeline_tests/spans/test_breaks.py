from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.spans.breaks import cut_before, inside_grapheme, sentence_ends
from ragds_pipeline_tests.kb.markdown_texts import texts


def _split(text: str) -> list[str]:
    ends = [0, *sentence_ends(text, 0, len(text)), len(text)]
    return [text[a:b].strip() for a, b in pairwise(ends)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Use tools, e.g. Slack, i.e. chat, or cf. page 3.",
        "See No. 5 and Art. 12 and fig. 3 of vol. IV.",
        "Il Sig. Rossi e il Dott. Bianchi, ai sensi dell'art. 5, pagano EUR 1.200,50.",
        "It costs 3.5 million or $1.20.",
        "J. R. R. Tolkien met Dr. Who in the U.S. Army.",
        "See https://a.b/c.d?e=f. for more at www.x.it.",
        "Wait... what is this?",
        "1. First do this.",
        "He works for Acme Inc. and others etc. as told.",
        "「はい。」と彼は言った。",
        "約３．５％です。",
        "One line\nwrapped into two.",
    ],
)
def test_one_sentence_stays_one(sentence: str) -> None:
    assert _split(sentence) == [sentence]
    assert _split(f"{sentence}\nNext one.") == [sentence, "Next one."]


@pytest.mark.parametrize(
    "marked",
    [
        "Is it?| Yes!| It is.",
        "He said “stop.”| Then he left.",
        "It was 2021.| Then came 2022.",
        "The answer is no.| We agree.",
        "We met in the U.S.| The law differs.",
        "Read this.[^1]| Then that.",
        "**Bold ends.**| Then plain.",
        "これは文です。|次の文です！|本当？|はい。",
        "「終わり。」|彼は去った。",
        "È così.| È vero.",
        "Wait…| Then go.",
    ],
)
def test_sentences_are_told_apart(marked: str) -> None:
    assert _split(marked.replace("|", "")) == [part.strip() for part in marked.split("|")]


@given(texts)
def test_ends_are_in_order_and_inside(text: str) -> None:
    ends = sentence_ends(text, 0, len(text))
    assert ends == sorted(set(ends))
    assert all(0 < end < len(text) and not inside_grapheme(text, end) for end in ends)


@given(texts, st.integers(1, 40))
def test_a_cut_makes_progress_and_passes_over_white_space(text: str, room: int) -> None:
    for start in range(0, max(0, len(text) - room), 7):
        cut = cut_before(text, start, start + room)
        assert start < cut <= len(text)
        assert cut <= start + room or not text[start + room : cut].strip()


def test_graphemes() -> None:
    for whole in ("e\u0323\u0301", "👩‍👩‍👧", "🇮🇹", "👍🏽", "❤\ufe0f", "ｶﾞ", "각", "हि"):
        assert all(inside_grapheme(whole, n) for n in range(1, len(whole)))
    assert [n for n in range(6) if not inside_grapheme("🇮🇹🇫🇷a", n)][1:3] == [2, 4]
    assert not inside_grapheme("ab", 1) and not inside_grapheme("日本", 1) and not inside_grapheme("\n\u0301", 1)
