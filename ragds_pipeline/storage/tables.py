"""Tables larger than memory: written batch by batch to a staged Parquet file, read the same way.

A stage whose table is small returns a ``pyarrow.Table``. The KB's own tables hold the text of every document, so
they are staged: :class:`TableWriter` writes row groups as they come, the I/O manager renames the finished file
into place, and later stages read it through :class:`TableFile`, all of it or a batch at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ragds_pipeline.storage.schemas import schema_of, to_records, to_table

R = TypeVar("R")

BATCH_BYTES = 8_000_000
"""Text gathered before a row group is written. With 8 MB a KB of 1 GB was read, cut and written in well under
1 GB of memory; larger groups compress no better."""

COMPRESSION = "zstd"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A finished Parquet table on disk."""

    path: Path

    @property
    def num_rows(self) -> int:
        """Number of rows, from the file's footer."""
        return int(pq.read_metadata(self.path).num_rows)

    @property
    def fingerprint(self) -> str:
        """What the writer said the table depends on, or an empty text; see :class:`TableWriter`."""
        metadata = pq.read_schema(self.path).metadata or {}
        return str(metadata.get(b"ragds.fingerprint", b"").decode())

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the whole table, or some of its columns, in memory."""
        return pq.read_table(self.path, columns=list(columns) if columns is not None else None)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the table row group by row group."""
        with pq.ParquetFile(self.path) as file:
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group, columns=columns).to_batches()

    def records(self, record: type[R]) -> Iterator[R]:
        """Yield the rows as records, one row group in memory at a time."""
        for batch in self.batches():
            yield from to_records(record, batch)

    def where(self, column: str, values: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows whose ``column`` is one of ``values``, in the order of the table.

        One row group is in memory at a time; of one that holds none of them only ``column`` is read.
        """
        wanted = pa.array(sorted(set(values)), pa.string())
        parts = []
        with pq.ParquetFile(self.path) as file:
            for group in range(file.num_row_groups if len(wanted) else 0):
                found = pc.is_in(file.read_row_group(group, columns=[column]).column(column), wanted)
                if pc.any(found).as_py():
                    parts += file.read_row_group(group, columns=columns).filter(found).to_batches()
        full = pq.read_schema(self.path)
        schema = pa.schema([full.field(c) for c in columns]) if columns is not None else full
        return pa.Table.from_batches([p for p in parts if p.num_rows], schema=schema.remove_metadata())


class TableWriter(Generic[R]):
    """Write records of one class to a Parquet file in row groups of about ``BATCH_BYTES`` of text.

    ``fingerprint`` names what else the rows depend on (versions, settings); it is stored in the file, and a later
    run reuses rows only from a table with the same one. The file is complete only after a clean exit.
    """

    def __init__(self, path: Path, record: type[R], fingerprint: str = "") -> None:
        self.path = path
        self.rows = 0
        self._record = record
        self._pending: list[R] = []
        self._pending_bytes = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {b"ragds.fingerprint": fingerprint.encode()} if fingerprint else None
        self._schema = schema_of(record).with_metadata(metadata)
        self._writer = pq.ParquetWriter(path, self._schema, compression=COMPRESSION)

    def add(self, row: R, size: int) -> None:
        """Append one record; ``size`` is roughly how many bytes it holds."""
        self._pending.append(row)
        self._pending_bytes += size + 200
        if self._pending_bytes >= BATCH_BYTES:
            self._flush()

    def add_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows that already have the right schema (rows reused from an earlier table)."""
        self._flush()
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if table.num_rows:
            self._writer.write_table(table.cast(self._schema))
            self.rows += table.num_rows

    def _flush(self) -> None:
        if self._pending:
            self._writer.write_table(to_table(self._record, self._pending).cast(self._schema))
            self.rows += len(self._pending)
            self._pending, self._pending_bytes = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
        if kind is not None:
            self.path.unlink(missing_ok=True)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table in memory to ``path``; the bytes depend on the table alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression=COMPRESSION)


def preview(
    table: pa.Table | pa.RecordBatch, columns: Sequence[str], rows: int = 10, width: int = 120
) -> list[dict[str, Any]]:
    """Return the first ``rows`` of some columns as plain values, long texts shortened, for a person to look at."""
    head = table.select(list(columns)).slice(0, rows).to_pylist()
    return [{k: _short(v, width) for k, v in row.items()} for row in head]


def _short(value: Any, width: int) -> Any:
    if isinstance(value, list):
        value = " › ".join(str(item) for item in value)
    if isinstance(value, str) and len(value) > width:
        return value[: width - 1] + "…"
    return value
