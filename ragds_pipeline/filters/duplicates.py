"""Questions that ask the same in nearly the same words.

Candidates for comparison come from shared rare grams (4 characters, 2 in Chinese and Japanese), are scored by
RapidFuzz on their sorted words, and must then pass ``question_form.says_something_else``. Against MinHash-LSH
and vectors, this blocking found most for least (the project's notes); recall, precision and time of this code
are in ``benchmarks/results/near_duplicates.md``.

Two questions are **never** duplicates here, however alike they look, if

* their numbers differ: "within 30 days" / "within 90 days", "EUR 43" / "EUR 61", 三年 / 五年, two / three;
* one negates and the other does not;
* a word of one is replaced in the other: "the Milan office" / "the Turin office", before / after;
* two words have changed places: "from Milan to Turin" / "from Turin to Milan".

What the surface cannot tell: an added or dropped word counts as the same question ("vacation days of
[part-time] employees"), and a paraphrase in other words counts as a different one.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from ragds_pipeline.filters.question_form import QuestionForm, says_something_else

Integers = npt.NDArray[np.int64]

THRESHOLD = 80.0
"""Least RapidFuzz ratio (0-100) of the sorted words."""

RARE_GRAMS = 5
"""Rarest grams, each of another word, by which a text meets others; an edit of a word or two leaves some
untouched. On 85,000 questions 4, 5 and 6 found equally many planted edits, in 4.5, 5.9 and 6.9 s."""

MAX_NEIGHBOURS = 32
"""How many followers, in alphabetical order, a question is compared with among those that share a gram.
Groups up to this size are compared in full; the limit keeps templated questions from costing their square."""

_GRAM_BITS, _FREQUENCY_BITS, _POSITION_BITS = 22, 20, 21
"""63 together, so that one sort of integers orders all three. Grams are hashed; a collision only adds a
comparison. 2 ** 21 - 1 distinct questions can be told apart."""
_RANK_BITS = _GRAM_BITS + _FREQUENCY_BITS
_NO_RANK = (1 << _RANK_BITS) - 1
_POSITIONS = (1 << _POSITION_BITS) - 1


@dataclass(frozen=True, slots=True, order=True)
class DuplicatePair:
    """Two questions, by position, that ask the same; ``first < second``."""

    first: int
    second: int
    score: float
    """RapidFuzz ratio of the sorted words, 0 to 100."""
    exact: bool
    """True if they differ in case, width, punctuation and white space at most."""


def near_duplicates(questions: Sequence[str], *, threshold: float = THRESHOLD) -> list[DuplicatePair]:
    """Return the pairs of duplicates found, ordered by ``(second, first)``. The module says what a pair is.

    Questions equal but for case, width, punctuation and white space are paired with the first of their kind
    only, and only that one is compared with others.

    Args:
        questions: earlier ones take precedence.
        threshold: least score, above 0 and up to 100.

    Raises:
        ValueError: if ``threshold`` is out of range, or more than 2,097,152 distinct questions are given.
    """
    if not 0 < threshold <= 100:
        raise ValueError(f"threshold {threshold} is not above 0 and up to 100")
    first_of: dict[str, int] = {}
    pairs = []
    forms = [QuestionForm(question) for question in questions]
    for at, form in enumerate(forms):
        first = first_of.setdefault(form.words, at)
        if first != at:
            pairs.append(DuplicatePair(first, at, 100.0, True))
    words = sorted(first_of)
    ones, others = _worth_comparing(words, threshold)
    kinds = [forms[first_of[each]] for each in words]
    scores = process.cpdist(
        [kinds[at].bag for at in ones],
        [kinds[at].bag for at in others],
        scorer=fuzz.ratio,
        score_cutoff=threshold,
    )
    for at in np.flatnonzero(scores).tolist():  # below the cut-off, the score is 0
        one, other = kinds[ones[at]], kinds[others[at]]
        if not says_something_else(one, other):
            first, second = sorted((first_of[one.words], first_of[other.words]))
            pairs.append(DuplicatePair(first, second, float(scores[at]), False))
    return sorted(pairs, key=lambda pair: (pair.second, pair.first))


def first_occurrences(
    questions: Sequence[str],
    protected: AbstractSet[int] = frozenset(),
    *,
    threshold: float = THRESHOLD,
) -> dict[int, int]:
    """Decide which duplicates to drop: return ``{position dropped: position kept}``.

    Questions are taken in order, but those in ``protected`` (already golden, or written by a person) come
    before all others and are never dropped. Each is compared with those kept so far only: of a chain a-b-c in
    which a and c are no duplicates, b alone is dropped. Where several kept ones match, the first of them is
    named.
    """
    order = sorted(range(len(questions)), key=lambda at: (at not in protected, at))
    dropped: dict[int, int] = {}
    for pair in near_duplicates([questions[at] for at in order], threshold=threshold):
        first, second = order[pair.first], order[pair.second]
        if second in protected or second in dropped:
            continue
        if pair.exact:
            dropped[second] = dropped.get(first, first)
        elif first not in dropped:
            dropped[second] = first
    return dropped


def _worth_comparing(texts: Sequence[str], threshold: float) -> tuple[list[int], list[int]]:
    """Return the positions of texts that share a rare gram, as two lists of equal length; each pair once.

    ``texts`` are distinct and sorted, so that likely duplicates are neighbours within a large group.
    """
    if len(texts) >= 1 << _POSITION_BITS:
        raise ValueError(f"{len(texts)} distinct questions, {(1 << _POSITION_BITS) - 1} at most")
    if len(texts) < 2:
        return [], []
    grams, positions = _rarest_grams(texts)
    postings = np.sort(grams << _POSITION_BITS | positions)
    grams, positions = postings >> _POSITION_BITS, postings & _POSITIONS
    lengths = np.array([len(text) for text in texts])
    pairs = []
    for step in range(1, MAX_NEIGHBOURS + 1):
        same = np.flatnonzero(grams[step:] == grams[:-step])
        one, other = positions[same], positions[same + step]
        # A ratio can be no higher than that of a text and its own beginning.
        reachable = 200 * np.minimum(lengths[one], lengths[other]) >= threshold * (lengths[one] + lengths[other])
        pairs.append((one << _POSITION_BITS | other)[reachable])
    found = _distinct(np.sort(np.concatenate(pairs)))
    return (found >> _POSITION_BITS).tolist(), (found & _POSITIONS).tolist()


def _rarest_grams(texts: Sequence[str]) -> tuple[Integers, Integers]:
    """Return the rarest grams of each text that occur more than once in all, and the position of its text for
    each.

    A word gives one gram, its rarest, for an edit of the word changes all of them; where no blanks part
    words, four characters count as a word.
    """
    joined = "".join(f"{text}\n" for text in texts) + "\n\n\n"
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    grams, whole = _grams(points)
    frequencies = np.bincount(grams[whole], minlength=1 << _GRAM_BITS)
    frequencies = np.minimum(frequencies, (1 << _FREQUENCY_BITS) - 1)[grams]
    ranks = np.where(whole & (frequencies > 1), frequencies << _GRAM_BITS | grams, _NO_RANK)
    begins_word = np.append(True, points[:-4] <= ord(" "))
    begins_word[::4] |= _is_cjk(points[:-3:4])
    words = np.flatnonzero(begins_word)
    best = np.minimum.reduceat(ranks, words)
    begins_text = np.cumsum([0] + [len(text) + 1 for text in texts[:-1]])
    positions = np.searchsorted(begins_text, words, side="right") - 1
    chosen = _distinct(np.sort((positions << _RANK_BITS | best)[best < _NO_RANK]))
    positions = chosen >> _RANK_BITS
    chosen = chosen[np.arange(len(chosen)) - np.searchsorted(positions, positions) < RARE_GRAMS]
    return chosen & ((1 << _GRAM_BITS) - 1), chosen >> _RANK_BITS


def _grams(points: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """For each code point but the last three, the hash of the gram that begins there, and whether it is in
    one text.

    A gram is 4 characters, or 2 where both are Chinese or Japanese.
    """
    one, two, three, four = (points[shift : len(points) - 3 + shift] for shift in range(4))
    short = _is_cjk(one) & _is_cjk(two)
    line = np.uint32(ord("\n"))
    whole = (one != line) & (two != line) & (short | ((three != line) & (four != line)))
    rest = np.where(short, np.uint32(0), three * np.uint32(0xC2B2AE35) ^ four * np.uint32(0x27D4EB2F))
    mixed = one * np.uint32(0x9E3779B1) ^ two * np.uint32(0x85EBCA6B) ^ rest
    return (mixed ^ mixed >> np.uint32(15)) * np.uint32(0x2C1B3C6D) >> np.uint32(32 - _GRAM_BITS), whole


def _is_cjk(points: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Kana and ideographs."""
    common = (points >= 0x3040) & (points < 0xA000)
    rare = ((points >= 0xF900) & (points < 0xFB00)) | ((points >= 0x20000) & (points < 0x40000))
    return common | rare


def _distinct(ordered: Integers) -> Integers:
    """Drop repetitions from a sorted array; ``np.unique`` takes ten times as long for millions of
    integers."""
    return ordered[np.diff(ordered, prepend=-1) > 0]
