"""The I/O managers: one Parquet file, or one Markdown file, for each asset and partition.

What belongs here: where an asset's file lies and how it gets there whole. Dagster's own page:
https://docs.dagster.io/guides/build/io-managers
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
from dagster import ConfigurableIOManagerFactory, InputContext, OutputContext, UPathIOManager
from upath import UPath

from ragds_pipeline.storage.files import write_text
from ragds_pipeline.storage.tables import TableFile, write_table


class _ParquetFiles(UPathIOManager):
    extension: str | None = ".parquet"

    def dump_to_path(self, context: OutputContext, obj: pa.Table | TableFile, path: UPath) -> None:
        target = Path(str(path))
        staged = target.with_name(f".{target.name}.{context.run_id}.part")
        if isinstance(obj, pa.Table):
            write_table(obj, staged)
        elif isinstance(obj, TableFile):
            staged = obj.path
        else:
            raise TypeError(f"{context.asset_key.to_user_string()}: expected a table, got {type(obj).__name__}")
        staged.replace(target)

    def load_from_path(self, context: InputContext, path: UPath) -> pa.Table | TableFile:
        target = TableFile(Path(str(path)))
        if not target.path.exists():
            partition = context.partition_key if context.has_partition_key else "the whole"
            raise FileNotFoundError(
                f"{context.asset_key.to_user_string()} has not been materialised for {partition}: materialise it first"
            )
        wants_file = context.dagster_type.typing_type is TableFile
        return target if wants_file else target.read()

    def get_metadata(self, context: OutputContext, obj: pa.Table | TableFile) -> dict[str, Any]:
        # A staged file has been moved into place by now, so its figures are read where it lies.
        whole = not context.has_asset_partitions
        path = self._get_path(context) if whole else next(iter(self._get_paths_for_partitions(context).values()))
        table = obj if isinstance(obj, pa.Table) else TableFile(Path(str(path)))
        schema = obj.schema if isinstance(obj, pa.Table) else pq.read_schema(str(path))
        columns = [dg.TableColumn(field.name, str(field.type), _description(field)) for field in schema]
        return {
            "dagster/row_count": table.num_rows,
            "dagster/column_schema": dg.TableSchema(columns=columns),
        }


def _description(field: pa.Field) -> str | None:
    return (field.metadata or {}).get(b"description", b"").decode() or None


class _MarkdownFiles(UPathIOManager):
    extension: str | None = ".md"

    def dump_to_path(self, context: OutputContext, obj: str, path: UPath) -> None:
        write_text(Path(str(path)), obj)

    def load_from_path(self, context: InputContext, path: UPath) -> str:
        return Path(str(path)).read_text(encoding="utf-8")


class ParquetIOManager(ConfigurableIOManagerFactory[_ParquetFiles]):
    """Tables as Parquet below ``base_dir/<asset>/<partition>.parquet``."""

    base_dir: str

    def create_io_manager(self, context: dg.InitResourceContext) -> _ParquetFiles:
        """Return the manager; the folder is made if need be."""
        Path(self.base_dir).mkdir(parents=True, exist_ok=True)
        return _ParquetFiles(base_path=UPath(self.base_dir))


class MarkdownIOManager(ConfigurableIOManagerFactory[_MarkdownFiles]):
    """Texts for people as Markdown below ``base_dir/<asset>/<partition>.md``."""

    base_dir: str

    def create_io_manager(self, context: dg.InitResourceContext) -> _MarkdownFiles:
        """Return the manager; the folder is made if need be."""
        Path(self.base_dir).mkdir(parents=True, exist_ok=True)
        return _MarkdownFiles(base_path=UPath(self.base_dir))
