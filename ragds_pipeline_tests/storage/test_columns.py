"""Records to Arrow and back, column by column: what Arrow's own way by mappings gives."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.storage.schemas import as_json, schema_of, to_records, to_table


@dataclass(frozen=True, slots=True)
class Inner:
    """A place."""

    path: str
    start: int


@dataclass(frozen=True, slots=True)
class Middle:
    """A span."""

    content: str
    required: bool
    places: tuple[Inner, ...]
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outer:
    """An item."""

    id: str
    spans: tuple[Middle, ...]
    best: Inner
    score: float


inners = st.builds(Inner, st.text(max_size=4), st.integers(-5, 5))
middles = st.builds(
    Middle, st.text(max_size=4), st.booleans(), st.lists(inners, max_size=3).map(tuple),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
)  # fmt: skip
outers = st.builds(
    Outer, st.text(max_size=3), st.lists(middles, max_size=3).map(tuple), inners, st.floats(allow_nan=False)
)


@given(st.lists(outers, max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_there_and_back_also_from_a_slice(rows: list[Outer], start: int, length: int) -> None:
    table = to_table(Outer, rows)
    assert table == pa.Table.from_pylist([as_json(row) for row in rows], schema=schema_of(Outer))
    assert table.schema.equals(schema_of(Outer), check_metadata=True)
    assert to_records(Outer, table.slice(start, length)) == rows[start : start + length]
    assert to_records(Outer, pa.concat_tables([table, table.slice(start, length)])) == [
        *rows, *rows[start : start + length],
    ]  # fmt: skip
    for batch in table.to_batches(max_chunksize=2):
        assert to_records(Outer, batch.slice(1)) == to_records(Outer, batch)[1:]


def test_a_nested_field_that_a_table_does_not_have_yet_takes_its_default() -> None:
    place = {"path": "q", "start": 2}
    row = {
        "id": "x",
        "spans": [{"content": "c", "required": True, "places": [place]}],
        "best": {"path": "p", "start": 1},
    }
    table = pa.Table.from_pylist([{**row, "score": 1.0}])
    (found,) = to_records(Outer, table)
    assert found == Outer("x", (Middle("c", True, (Inner("q", 2),), ()),), Inner("p", 1), 1.0)
    with pytest.raises(TypeError):
        to_records(Outer, pa.Table.from_pylist([{**row, "score": 1.0, "best": {"path": "p"}}]))


def test_a_list_that_is_null_is_read_as_empty() -> None:
    row = {"id": "x", "spans": None, "best": {"path": "p", "start": 1}, "score": 1.0}
    assert to_records(Outer, pa.Table.from_pylist([row], schema=schema_of(Outer)))[0].spans == ()
