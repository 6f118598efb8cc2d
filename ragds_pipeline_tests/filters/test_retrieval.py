"""Retrieval over passages, against a brute-force twin, and which items a revision makes worth asking again."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.filters.retrieval import (
    PassageIndex,
    PassageText,
    documents_in_order,
    questions_for_recheck,
    tokens,
)


def passage(text: str, id_: str = "", path: str = "") -> PassageText:
    return PassageText(id_ or text[:12], path or f"{text[:6]}.md", text)


def test_words_and_pairs_of_characters() -> None:
    assert tokens("Form T-7, EUR 30!") == ["form", "t", "7", "eur", "30"]
    assert tokens("鍵をなくす") == ["鍵を", "をな", "なく", "くす"]
    assert tokens("ＰＣの鍵") == ["pc", "の鍵"] and tokens("鍵 1 個") == ["鍵", "1", "個"]
    assert tokens("분실 신고") == ["분실", "신고"] and tokens("è perché") == ["è", "perché"] and tokens("— … |") == []


def brute(question: str, texts: list[str]) -> list[float]:
    """BM25 as Lucene has it (k1 1.5, b 0.75), from the formula."""
    bags = [Counter(tokens(text)) for text in texts]
    mean = sum(sum(bag.values()) for bag in bags) / len(bags)
    scores = []
    for bag in bags:
        score = 0.0
        for word in set(tokens(question)):
            holding = sum(word in other for other in bags)
            if holding:
                idf = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
                length = 1 - 0.75 + 0.75 * sum(bag.values()) / mean
                score += idf * bag[word] / (bag[word] + 1.5 * length)
        scores.append(score)
    return scores


TEXTS = st.lists(st.text("abc 鍵紛失を\n.", min_size=1, max_size=24), min_size=1, max_size=8)


@given(TEXTS, st.text("abcd 鍵紛失を?", max_size=16))
def test_scores_are_those_of_the_formula(texts: list[str], question: str) -> None:
    index = PassageIndex(PassageText(str(at), f"{at}.md", text) for at, text in enumerate(texts))
    found = {ranked.id: ranked.score for ranked in index.ranked(question)}
    if not any(tokens(text) for text in texts):
        assert not found
        return
    for at, score in enumerate(brute(question, texts)):
        assert found.get(str(at), 0.0) == pytest.approx(score, abs=2e-4)
    scores = [ranked.score for ranked in index.ranked(question)]
    assert scores == sorted(scores, reverse=True)


@given(TEXTS, st.text("abcd 鍵紛失を?", max_size=16))
def test_equal_scores_keep_the_order_of_the_kb(texts: list[str], question: str) -> None:
    index = PassageIndex(PassageText(f"{at:03}", "a.md", text) for at, text in enumerate([*texts, *texts]))
    ranked = index.ranked(question)
    for one, other in pairwise(ranked):
        assert (-one.score, one.id) < (-other.score, other.id)


def test_nothing_to_search() -> None:
    assert PassageIndex([]).ranked("x") == [] and PassageIndex([passage("---")]).ranked("x") == []
    assert len(PassageIndex([passage("a")])) == 1


def test_the_own_document_comes_first_then_the_nearest_then_the_rest() -> None:
    texts = [passage("keys of Cork", path="b.md"), passage("keys", path="a.md"), passage("secret keys", path="s.md")]
    ranked = PassageIndex([*texts, passage("other", path="d.md"), passage("own", path="o.md")]).ranked("keys Cork")
    assert documents_in_order(ranked, "o.md", ["a.md", "b.md", "d.md", "o.md"]) == ["o.md", "b.md", "a.md", "d.md"]


ITEMS = {"n-0001": "Who signs for parking cards?", "n-0002": "静岡の駐車場は何台ですか。"}
FIRST = {"n-0001": ITEMS["n-0001"]}
OLD = [passage(f"Rule {n} about leave and pay.", f"r#{n}") for n in range(30)]


def test_only_questions_near_a_changed_passage_are_asked_again() -> None:
    new = [passage("Parking cards are signed for by the desk.", "r#0", "desk.md"), *OLD]
    assert questions_for_recheck(ITEMS, {"r#0"}, new) == {"n-0001": ["desk.md"]}
    japanese = [*OLD, passage("静岡事業所の駐車場は１２台です。", "j#1", "j.md")]
    assert questions_for_recheck(ITEMS, {"j#1"}, japanese) == {"n-0002": ["j.md"]}


def test_nothing_new_means_nothing_to_ask() -> None:
    assert questions_for_recheck(ITEMS, set(), OLD) == {} and questions_for_recheck({}, {"r#0"}, OLD) == {}
    assert questions_for_recheck(ITEMS, {"x#1"}, [*OLD, passage("Nothing alike", "x#1")]) == {}


def test_a_changed_passage_below_the_nearest_is_left_and_ties_all_count() -> None:
    near = [passage("parking cards signs", f"n#{n}", f"n{n}.md") for n in range(5)]
    far = passage("cards with a great many other words of no use at all in it", "f#1", "f.md")
    assert questions_for_recheck(FIRST, {"f#1"}, [*near, far], top=3) == {}
    assert questions_for_recheck(FIRST, {"f#1"}, [*near, far], top=6) == {"n-0001": ["f.md"]}
    assert questions_for_recheck(FIRST, {"n#4", "n#2"}, [*near, far], top=1) == {"n-0001": ["n2.md", "n4.md"]}
