"""Arrow schemas derived from the records, and the way from records to tables and back.

One dataclass field is one column of the same name; a tuple of dataclasses is a list of structs. So the
vocabulary stands in one place, and a new field of a record is a new column with nothing else to change.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from operator import attrgetter
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from ragds_pipeline.storage.columns import from_array, hints_of, holds_records, to_array
from ragds_pipeline.storage.field_docs import field_docs

R = TypeVar("R")

MONEY = pa.decimal128(24, 12)
"""USD: 12 decimals hold the price of a single token, 12 digits before them any bill."""

_SCALARS: dict[type, pa.DataType] = {
    str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), Decimal: MONEY,
}  # fmt: skip


def _arrow_type(hint: Any) -> pa.DataType:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if dataclasses.is_dataclass(hint):
        return pa.struct(list(_fields(hint)))
    origin, args = get_origin(hint), get_args(hint)
    if origin in (tuple, list) and args:
        return pa.list_(_arrow_type(args[0]))
    if origin in (Union, types.UnionType):
        inner = [arg for arg in args if arg is not type(None)]
        if len(inner) == 1:
            return _arrow_type(inner[0])
    raise TypeError(f"no Arrow type for a field of type {hint!r}")


def _fields(record: Any) -> Iterator[pa.Field]:
    hints, docs = get_type_hints(record), field_docs(record)
    for field in dataclasses.fields(record):
        described = {"description": docs[field.name]} if field.name in docs else None
        yield pa.field(field.name, _arrow_type(hints[field.name]), metadata=described)


_schemas: dict[Any, pa.Schema] = {}


def schema_of(record: Any) -> pa.Schema:
    """Return the Arrow schema of a record class: its fields, in their order, under their names, with their docs."""
    if record not in _schemas:
        _schemas[record] = pa.schema(list(_fields(record)))
    return _schemas[record]


Change = Callable[[Any], Any]

_changes_in: dict[Any, dict[str, Change | None]] = {}


def to_table(record: type[R], rows: Iterable[R]) -> pa.Table:
    """Return ``rows`` as a table with the schema of ``record``, also where there are none.

    Column by column: a mapping for every row, as ``Table.from_pylist`` takes them, costs three times as much.
    """
    given, schema = list(rows), schema_of(record)
    columns = []
    for (name, hint), field in zip(hints_of(record).items(), schema, strict=True):
        values = list(map(attrgetter(name), given))
        if holds_records(hint):
            columns.append(to_array(hint, values, field.type))
        else:
            columns.append(pa.array(list(map(as_json, values)) if _nested(hint) else values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _nested(hint: Any) -> bool:
    """Whether values of a type hold records."""
    return dataclasses.is_dataclass(hint) or any(_nested(each) for each in get_args(hint))


_names: dict[type, tuple[str, ...]] = {}


def as_json(value: Any) -> Any:
    """Return a record as plain mappings, lists and scalars, fields in their order."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind in _names:
        return {name: as_json(getattr(value, name)) for name in _names[kind]}
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _names[kind] = tuple(field.name for field in dataclasses.fields(value))
        return as_json(value)
    return value


def to_records(record: type[R], table: pa.Table | pa.RecordBatch) -> list[R]:
    """Return the rows of ``table`` as records, checking each record's invariants as it is built.

    A field that the table does not have yet takes its default; without one, the record cannot be built.
    """
    there = set(table.schema.names)
    wanted = [(name, change) for name, change in _in(record).items() if name in there]
    columns = []
    for name, change in wanted:
        column, hint = table.column(name), hints_of(record)[name]
        if holds_records(hint) and not column.null_count:
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            columns.append([value for chunk in chunks for value in from_array(hint, chunk)])
        else:
            values = column.to_pylist()
            columns.append(values if change is None else list(map(change, values)))
    names = [name for name, _ in wanted]
    if not names:
        return [record() for _ in range(table.num_rows)]
    if names == [field.name for field in dataclasses.fields(record) if not field.kw_only]:  # type: ignore[arg-type]
        return list(map(record, *columns))
    return [record(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def from_json(record: type[R], row: dict[str, Any]) -> R:
    """Return the record of a row as :func:`as_json` gives it, checking its invariants as it is built."""
    return _build(record, row)


def _build(record: type[R], row: dict[str, Any]) -> R:
    changes = _in(record).items()
    values = {name: row[name] if change is None else change(row[name]) for name, change in changes if name in row}
    return record(**values)


def _in(record: Any) -> dict[str, Change | None]:
    """Return the fields of a record class, each with what revives its plain value; None where nothing needs it."""
    if record not in _changes_in:
        hints = get_type_hints(record)
        _changes_in[record] = {field.name: _reviver(hints[field.name]) for field in dataclasses.fields(record)}
    return _changes_in[record]


def _reviver(hint: Any) -> Change | None:
    if dataclasses.is_dataclass(hint):
        return lambda value: _build(hint, value) if isinstance(value, dict) else value  # type: ignore[arg-type]
    if get_origin(hint) is tuple:
        inner = _reviver(get_args(hint)[0])
        if inner is None:
            return lambda value: tuple(value or ())
        return lambda value: tuple(map(inner, value or ()))
    return None
