"""How far the set covers the KB: planned, delivered, kept and frozen, by document, language and type.

The counting is done by DuckDB over the tables in memory, the report for people by pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

_QUERY = """
with planned as (
    select document_path, type, sum(planned) as planned from question_plan group by all
), delivered as (
    select document_path, type, count(*) as delivered from candidates group by all
), frozen as (
    select passages[1].document_path as document_path, type, count(*) as frozen,
           count(*) filter (where split = 'held_out') as held_out
    from golden_items group by all
), kinds as (
    select document_path, type from planned
    union select document_path, type from delivered
    union select document_path, type from frozen
)
select d.path as document_path, d.language, d.confidential, coalesce(k.type, '') as type,
       coalesce(p.planned, 0)::bigint as planned, coalesce(c.delivered, 0)::bigint as delivered,
       coalesce(f.frozen, 0)::bigint as frozen, coalesce(f.held_out, 0)::bigint as held_out
from documents d
left join kinds k on k.document_path = d.path
left join planned p on p.document_path = k.document_path and p.type = k.type
left join delivered c on c.document_path = k.document_path and c.type = k.type
left join frozen f on f.document_path = k.document_path and f.type = k.type
order by d.path, type
"""


def coverage(documents: pa.Table, question_plan: pa.Table, candidates: pa.Table, golden_items: pa.Table) -> pa.Table:
    """Return one row for each document and type: planned, delivered by the filters, frozen, held out.

    ``documents`` needs the columns path, language, confidential. Documents of which nothing is asked have one row with
    an empty type, so that a gap in the coverage is seen and not only missing.
    """
    with duckdb.connect() as connection:
        for name, table in (
            ("documents", documents),
            ("question_plan", question_plan),
            ("candidates", candidates),
            ("golden_items", golden_items),
        ):
            connection.register(name, table)
        return connection.sql(_QUERY).to_arrow_table()


def by_language_and_type(table: pa.Table) -> list[dict[str, Any]]:
    """Return the frozen items as rows of a report, languages down and types across, with totals."""
    frame: pd.DataFrame = table.to_pandas()
    frame = frame[frame["type"] != ""]
    if frame.empty:
        return []
    pivot = frame.pivot_table(
        index="language", columns="type", values="frozen", aggfunc="sum", fill_value=0, margins=True, margins_name="all"
    )
    return [{str(k): v for k, v in row.items()} for row in pivot.reset_index().to_dict("records")]


def by_document(table: pa.Table) -> list[dict[str, Any]]:
    """Return planned, delivered, frozen and held out by document as rows of a report."""
    frame: pd.DataFrame = table.to_pandas()
    columns = ["planned", "delivered", "frozen", "held_out"]
    sums = frame.groupby(["document_path", "language"], sort=True)[columns].sum().reset_index()
    return [{str(k): v for k, v in row.items()} for row in sums.to_dict("records")]
