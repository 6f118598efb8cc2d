"""``data/ragds.duckdb``: read-only views over all tables, for people with SQL. The pipeline itself never opens it."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path

import duckdb

FILE = "ragds.duckdb"


def write_views(data_dir: Path, others: Mapping[str, Path] | None = None) -> Path:
    """Make the database file anew, one view a table over all its partitions, and return its path.

    It is made beside its place and renamed, so that a reader's open file is never touched.

    Args:
        data_dir: Where the tables are, below ``tables``.
        others: Parquet files that get a view as well, by its name.
    """
    target = data_dir / FILE
    staged = target.with_name(f".{FILE}.{os.getpid()}")
    staged.unlink(missing_ok=True)
    with duckdb.connect(str(staged)) as connection:
        for place in sorted((data_dir / "tables").iterdir()):
            if place.suffix == ".parquet":  # a table without partitions
                _view(connection, place.stem, glob.escape(str(place)))
            elif any(place.glob("*.parquet")):
                _view(connection, place.name, f"{glob.escape(str(place))}/*.parquet")
        for name, path in (others or {}).items():
            _view(connection, name, glob.escape(str(path)))
    staged.replace(target)
    return target


def _view(connection: duckdb.DuckDBPyConnection, name: str, pattern: str) -> None:
    name, pattern = name.replace('"', '""'), pattern.replace("'", "''")
    # A view cannot take parameters; both parts are names of our own folders and files, quoted.
    connection.execute(
        f"create view \"{name}\" as select * from read_parquet('{pattern}', union_by_name = true, "  # noqa: S608
        "filename = 'table_file')"
    )
