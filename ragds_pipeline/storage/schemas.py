"""Arrow schemas derived from the records, and the way from records to tables and back.

One dataclass field is one column of the same name; a tuple of dataclasses is a list of structs. So the
vocabulary stands in one place, and a new field of a record is a new column with nothing else to change.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

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
_hints_of: dict[Any, dict[str, Any]] = {}


def schema_of(record: Any) -> pa.Schema:
    """Return the Arrow schema of a record class: its fields, in their order, under their names, with their docs."""
    if record not in _schemas:
        _schemas[record] = pa.schema(list(_fields(record)))
    return _schemas[record]


def to_table(record: type[R], rows: Iterable[R]) -> pa.Table:
    """Return ``rows`` as a table with the schema of ``record``, also where there are none."""
    plain = [as_json(row) for row in rows]
    return pa.Table.from_pylist(plain, schema=schema_of(record))


def as_json(value: Any) -> Any:
    """Return a record as plain mappings, lists and scalars, fields in their order."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    return value


def to_records(record: type[R], table: pa.Table | pa.RecordBatch) -> list[R]:
    """Return the rows of ``table`` as records, checking each record's invariants as it is built."""
    return [_build(record, row) for row in table.to_pylist()]


def from_json(record: type[R], row: dict[str, Any]) -> R:
    """Return the record of a row as :func:`as_json` gives it, checking its invariants as it is built."""
    return _build(record, row)


def _build(record: type[R], row: dict[str, Any]) -> R:
    if record not in _hints_of:
        _hints_of[record] = get_type_hints(record)
    hints = _hints_of[record]
    # A field that the table does not have yet takes its default; without one, the record cannot be built.
    named = [field.name for field in dataclasses.fields(record) if field.name in row]  # type: ignore[arg-type]
    values = {name: _revive(hints[name], row[name]) for name in named}
    return record(**values)


def _revive(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return _build(hint, value)  # type: ignore[arg-type]
    if get_origin(hint) is tuple:
        return tuple(_revive(get_args(hint)[0], item) for item in value or ())
    return value
