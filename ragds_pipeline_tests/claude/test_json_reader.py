"""JSON in what a model wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.claude.json_reader import UnreadableReply, read_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def is_dict(value: Any) -> bool:
    return isinstance(value, dict)


@given(st.dictionaries(st.text(max_size=6), JSON, min_size=1), st.sampled_from(["", "Sure! ", "a [1] {b} "]))
def test_an_object_is_found_with_prose_around_it(value: dict[str, Any], prose: str) -> None:
    text = f"{prose}{json.dumps(value, ensure_ascii=False)} That is all."
    assert read_json(text, lambda found: found == value).value == value


@given(st.dictionaries(st.text(max_size=6), JSON, min_size=1))
def test_an_object_is_found_in_a_fence(value: dict[str, Any]) -> None:
    found = read_json(f"x\n```json\n{json.dumps(value, indent=2)}\n```\n", is_dict)
    assert found.value == value and not found.truncated


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert is_dict(read_json(text, is_dict).value)
    except UnreadableReply as error:
        assert str(len(text)) in str(error)


def test_a_cut_object_gives_its_beginning() -> None:
    found = read_json('{"a": [1, 2], "b": "thr', is_dict)
    assert found.truncated and found.value["a"] == [1, 2]


@pytest.mark.parametrize("text", ["", "3", "null", "[]", "[" * 100_000, '{"a":' * 50_000])
def test_nothing_of_the_shape_is_refused_quickly(text: str) -> None:
    with pytest.raises(UnreadableReply):
        read_json(text, lambda value: isinstance(value, dict) and "questions" in value)
