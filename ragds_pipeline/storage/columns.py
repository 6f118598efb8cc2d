"""Values of record fields as Arrow arrays and back, nested records included, column by column.

A tuple of records is a list of structs. Its members are laid end to end and each of their fields becomes an array of
its own: a mapping for every member, as Arrow's own conversion takes and gives them, costs several times as much.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa

_hints: dict[Any, dict[str, Any]] = {}


def hints_of(record: Any) -> dict[str, Any]:
    """Return the type of each field of a record class, by name, in their order."""
    if record not in _hints:
        hints = get_type_hints(record)
        _hints[record] = {field.name: hints[field.name] for field in dataclasses.fields(record)}
    return _hints[record]


def _by_position(record: Any) -> bool:
    return not any(field.kw_only for field in dataclasses.fields(record))


def holds_records(hint: Any) -> bool:
    """Whether values of a type are records, or tuples of them: what this module converts."""
    if get_origin(hint) in (tuple, list):
        return holds_records(get_args(hint)[0])
    return dataclasses.is_dataclass(hint)


def to_array(hint: Any, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return ``values`` of the type ``hint`` as an array of ``type_``. None of them is None."""
    if get_origin(hint) in (tuple, list):
        offsets = pa.array([0, *accumulate(map(len, values))], pa.int32())
        inner = to_array(get_args(hint)[0], list(chain.from_iterable(values)), type_.value_type)
        return pa.ListArray.from_arrays(offsets, inner, type=type_)
    if dataclasses.is_dataclass(hint):
        children = [
            to_array(inner, [getattr(value, name) for value in values], type_.field(name).type)
            for name, inner in hints_of(hint).items()
        ]
        return pa.StructArray.from_arrays(children, fields=list(type_))
    return pa.array(values, type_)


def from_array(hint: Any, array: pa.Array) -> list[Any]:
    """Return what :func:`to_array` was given; a field that the array does not have takes its default.

    Raises TypeError where such a field has no default.
    """
    if get_origin(hint) in (tuple, list):
        offsets = array.offsets.to_pylist()
        first = offsets[0] if offsets else 0
        inner = from_array(get_args(hint)[0], array.flatten())
        return [tuple(inner[start - first : end - first]) for start, end in pairwise(offsets)]
    if dataclasses.is_dataclass(hint):
        there = {field.name for field in array.type}
        names = [name for name in hints_of(hint) if name in there]
        # flatten, not field: it heeds where a slice begins.
        by_name = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
        columns = [from_array(hints_of(hint)[name], by_name[name]) for name in names]
        if names == list(hints_of(hint)) and _by_position(hint):
            return list(map(hint, *columns))  # type: ignore[arg-type]
        return [hint(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]  # type: ignore[operator]
    return list(array.to_pylist())
