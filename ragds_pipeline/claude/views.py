"""The ledger among the views of ``data/ragds.duckdb``, for people with SQL.

DuckDB reads neither SQLite nor PostgreSQL without an extension that it would download, so the ledger is written out as
Parquet beside the tables, without the texts of requests and replies. What does not belong here: the ledger itself.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import sqlalchemy as sa

from ragds_pipeline.claude.ledger import TABLE_SCHEMA, Ledger, ledger_url
from ragds_pipeline.config import Settings
from ragds_pipeline.storage.tables import COMPRESSION
from ragds_pipeline.storage.views import write_views

LEDGER_FILE = "ledger.parquet"
VIEW = "ledger"


def write_all_views(settings: Settings) -> Path:
    """Make the project's database of views anew, the ledger among them, and return its path.

    Where the ledger cannot be reached, the view shows it as it was when it last could.
    """
    ledger = export_ledger(settings)
    return write_views(settings.data_dir, {VIEW: ledger} if ledger.exists() else {})


def export_ledger(settings: Settings) -> Path:
    """Write the ledger's rows, without bodies, to its Parquet file if there is a ledger, and return the path."""
    target = settings.data_dir / LEDGER_FILE
    url = sa.make_url(ledger_url(settings))
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return target
    try:
        ledger = Ledger(ledger_url(settings))
    except sa.exc.SQLAlchemyError:
        return target
    staged = target.with_name(f".{LEDGER_FILE}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with pq.ParquetWriter(staged, TABLE_SCHEMA, compression=COMPRESSION) as out:
            for batch in ledger.batches():
                out.write_batch(batch)
        staged.replace(target)
    finally:
        staged.unlink(missing_ok=True)
        ledger.close()
    return target
