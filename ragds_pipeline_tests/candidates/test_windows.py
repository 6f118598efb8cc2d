"""What one request shows."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.candidates.windows import Window, spread, windows
from ragds_pipeline.config import CandidateSettings
from ragds_pipeline.records import Passage


def passages_of(sizes: list[int]) -> list[Passage]:
    found, start = [], 0
    for number, size in enumerate(sizes, start=1):
        found.append(Passage(f"d#{number}", "d.md", "", (), start, start + size, "x" * size))
        start += size
    return found


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=40), st.integers(500, 9000))
def test_windows_cover_the_document_in_whole_passages(sizes: list[int], limit: int) -> None:
    found = windows(passages_of(sizes), CandidateSettings(request_max_chars=limit))
    assert found[0].start_char == 0 and found[-1].end_char == sum(sizes)
    for one, other in pairwise(found):
        assert one.end_char == other.start_char
    edges = {p.start_char for p in passages_of(sizes)}
    for window in found:
        assert window.start_char in edges
        assert window.characters <= limit or window.characters in sizes


@given(st.integers(0, 40), st.integers(1, 30), st.integers(0, 3))
def test_all_questions_are_spread(questions: int, count: int, turn: int) -> None:
    choices = [Window("d.md", at * 100, at * 100 + 100) for at in range(count)]
    found = spread(questions, choices, turn)
    assert sum(number for _, number in found) == questions
    assert len({window.start_char for window, _ in found}) == len(found)


def test_another_turn_looks_elsewhere() -> None:
    choices = [Window("d.md", at * 100, at * 100 + 100) for at in range(10)]
    assert spread(2, choices, 0) != spread(2, choices, 1)
