"""Files are whole or not there, paths stay inside, tables come back as they went."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.records import Evidence, GoldenPassage, KbIssue, Place, Span, SpanMismatch
from ragds_pipeline.review.sheets import SheetFolder
from ragds_pipeline.storage.files import UnsafePath, inside, write_bytes
from ragds_pipeline.storage.metadata import markdown_table
from ragds_pipeline.storage.schemas import as_json, schema_of, to_records, to_table
from ragds_pipeline.storage.tables import TableFile, TableWriter
from ragds_pipeline.storage.views import write_views

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLACES = st.builds(Place, TEXT, st.integers(0, 10**9), st.integers(0, 10**9))
EVIDENCE = st.builds(
    Evidence, TEXT, st.integers(0, 99), st.integers(0, 99), TEXT, TEXT, TEXT, TEXT, st.booleans(), TEXT,
    st.lists(PLACES, max_size=3).map(tuple),
)  # fmt: skip


@given(st.lists(EVIDENCE, max_size=4))
def test_records_come_back_from_their_table(rows: list[Evidence]) -> None:
    table = to_table(Evidence, rows)
    assert table.schema == schema_of(Evidence)
    assert to_records(Evidence, table) == rows


def test_tables_written_in_batches_are_read_whole_and_in_part(tmp_path: Path) -> None:
    rows = [KbIssue(f"p{n:03d}", "empty", "x" * n, n % 2 == 0) for n in range(200)]
    with TableWriter(tmp_path / "t.parquet", KbIssue, "v1") as writer:
        for row in rows:
            writer.add(row, 200_000)
    table = TableFile(tmp_path / "t.parquet")
    assert (table.num_rows, table.fingerprint) == (200, "v1")
    assert list(table.records(KbIssue)) == rows
    assert len(list(table.batches())) > 1
    assert table.where("path", {"p003", "p150", "nope"}, ["path"]).column("path").to_pylist() == ["p003", "p150"]
    assert table.where("path", set()).num_rows == 0


def test_a_table_that_failed_half_way_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), TableWriter(tmp_path / "t.parquet", KbIssue) as writer:
        writer.add(KbIssue("a", "empty", "", True), 10)
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "f.txt"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two" and [p.name for p in path.parent.iterdir()] == ["f.txt"]


@pytest.mark.parametrize("relative", ["../x", "a/../../x", "/etc/passwd", "", "."])
def test_paths_stay_inside(tmp_path: Path, relative: str) -> None:
    with pytest.raises(UnsafePath):
        inside(tmp_path, relative)
    with pytest.raises(UnsafePath):
        SheetFolder.of(tmp_path, f"../{relative}")


def test_a_link_that_leads_out_is_no_inside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    with pytest.raises(UnsafePath):
        inside(tmp_path / "root", "link/x")


@given(st.text(), st.integers(-3, 30), st.integers(-3, 30))
def test_a_span_cannot_be_made_without_its_text(text: str, start: int, end: int) -> None:
    if 0 <= start < end <= len(text):
        Span.of("d", text, start, end).verify(text)
    else:
        with pytest.raises(SpanMismatch):
            Span.of("d", text, start, end)
    with pytest.raises(SpanMismatch):
        Span("d", 0, 5, "four")


def test_no_cell_breaks_out_of_a_markdown_table() -> None:
    shown = markdown_table([{"a": "x | y\n\nz <script>`", "b": None}]).value
    assert shown is not None and len(shown.split("\n")) == 3
    assert "<script>" not in shown and "x \\| y" in shown


def test_the_views_show_every_table(tmp_path: Path) -> None:
    folder = tmp_path / "it's data" / "tables" / "kb_issues"
    folder.mkdir(parents=True)
    with TableWriter(folder / "2026.parquet", KbIssue) as writer:
        writer.add(KbIssue("a", "empty", "", True), 10)
    path = write_views(tmp_path / "it's data")
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.sql("select path, reason from kb_issues").fetchall() == [("a", "empty")]


def test_a_golden_passage_is_json_in_the_order_of_its_fields() -> None:
    from ragds_pipeline.storage.schemas import as_json

    passage = GoldenPassage("d", 0, 1, "x", True, (Place("e", 2, 3),), "", "", "d#1")
    assert json.dumps(as_json(passage)).startswith('{"document_path": "d", "start_char": 0')


def test_columns_are_explained_by_the_docstrings_of_the_fields() -> None:
    described = {field.name: field.metadata for field in schema_of(KbIssue)}
    assert b"True where the file is not part of the KB" in described["skipped"][b"description"]
    assert described["detail"] is None


@dataclass(frozen=True)
class _Before:
    name: str


@dataclass(frozen=True)
class _Now:
    name: str
    places: tuple[Place, ...] = ()
    size: int | None = None
    price: Decimal = field(default=Decimal(1), kw_only=True)


def test_a_column_that_a_table_does_not_have_yet_takes_its_default() -> None:
    assert to_records(_Now, to_table(_Before, [_Before("a"), _Before("b")])) == [_Now("a"), _Now("b")]
    rows = [_Now("a", (Place("p", 1, 2),), None, price=Decimal("0.5")), _Now("b", (), 3)]
    table = to_table(_Now, iter(rows))
    assert to_records(_Now, table) == rows
    assert table == pa.Table.from_pylist([as_json(row) for row in rows], schema=schema_of(_Now)), "row by row the same"
