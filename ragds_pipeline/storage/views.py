"""``data/ragds.duckdb``: read-only views over all tables, for people with SQL. The pipeline itself never opens it."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import duckdb

FILE = "ragds.duckdb"


def write_views(data_dir: Path) -> Path:
    """Make the database file anew, one view a table over all its partitions, and return its path.

    It is made beside its place and renamed, so that a reader's open file is never touched.
    """
    target = data_dir / FILE
    staged = target.with_name(f".{FILE}.{os.getpid()}")
    staged.unlink(missing_ok=True)
    with duckdb.connect(str(staged)) as connection:
        for place in sorted((data_dir / "tables").iterdir()):
            if any(place.glob("*.parquet")) or place.suffix == ".parquet":  # partitioned, or a single table
                pattern = glob.escape(str(place)) + ("" if place.suffix == ".parquet" else "/*.parquet")
                pattern, name = pattern.replace("'", "''"), place.stem.replace('"', '""')
                # A view cannot take parameters; both parts are names of our own folders, quoted.
                connection.execute(
                    f"create view \"{name}\" as select * from read_parquet('{pattern}', union_by_name = true, "  # noqa: S608
                    "filename = 'table_file')"
                )
    staged.replace(target)
    return target
