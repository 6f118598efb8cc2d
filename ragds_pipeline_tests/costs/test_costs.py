"""What a run cost, told by the ledger, against a server that keeps books of its own."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa

from ragds_pipeline.claude.database import replies
from ragds_pipeline.claude.ledger import Ledger, ledger_url
from ragds_pipeline.claude.spending import books_of, total
from ragds_pipeline.records import AskedRow, Candidate, CostRow, Drop, ItemCostRow, SpentRow
from ragds_pipeline.summary import summary
from ragds_pipeline_tests.costs.judging import answer_and_judge
from ragds_pipeline_tests.loopback import LoopbackServer
from ragds_pipeline_tests.projects import ProjectRun, project

JUDGES = {"judges": {"enabled": ["ambiguity", "closed_book", "support"], "votes": 3}}


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(responder=answer_and_judge) as running:
        yield running


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, server: LoopbackServer) -> Iterator[ProjectRun]:
    """A project that was run, decided on and frozen, every call of it paid."""
    root = tmp_path_factory.mktemp("costs")
    kb = root / "kb"
    kb.mkdir()
    for name in ("alpha", "beta", "gamma"):
        lines = "".join(f"In {name} rule {n} grants {n + 10} days for case {n}.\n\n" for n in range(40))
        (kb / f"{name}.md").write_text(f"# {name}\n\n{lines}", encoding="utf-8")
    claude: dict[str, Any] = {"base_url": server.url, "check_models": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_API_KEY", "test")
        with project(root / "p", kb, plan={"questions": 24}, filters=JUDGES, claude=claude) as made:
            made.must()
            made.answer(**{made.rows("candidates", Candidate)[0].id: "n"})
            made.must("freeze_job")
            yield made


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")


def paid_by(ledger_rows: list[dict[str, Any]]) -> Decimal:
    return sum((Decimal(row["cost_usd"]) for row in ledger_rows), Decimal(0))


def ledgered(run: ProjectRun) -> list[dict[str, Any]]:
    ledger = Ledger(ledger_url(run.settings))
    rows = list(ledger.rows())
    ledger.close()
    return rows


def test_the_rows_come_to_the_ledgers_sum_and_to_the_servers(run: ProjectRun, server: LoopbackServer) -> None:
    rows, entries = run.rows("costs", SpentRow), ledgered(run)
    assert sum(row.paid_usd for row in rows) == sum(row.cost_usd for row in rows) == paid_by(entries) > 0
    assert sum(row.calls for row in rows) == len(entries) == server.calls
    assert sum(row.output_tokens for row in rows) == sum(usage.output_tokens for usage in server.usage.values())
    prompts = sum(row.input_tokens + row.cache_write_tokens + row.cache_read_tokens for row in rows)
    assert prompts == sum(row["input_tokens"] + row["cache_creation_input_tokens"] + row["cache_read_input_tokens"]
                          for row in entries)  # fmt: skip
    assert {row.stage for row in rows} == {"generate", "ambiguity", "closed_book", "support"}
    assert rows[0].stage == "generate" and all(row.replayed == row.unanswered == 0 for row in rows)


def test_every_question_bears_its_share_and_the_rest_is_told(run: ProjectRun) -> None:
    rows, entries = run.rows("item_costs", ItemCostRow), ledgered(run)
    drafts = run.table("drafts").num_rows + run.table("top_up_drafts").num_rows
    assert len(rows) == drafts == len({row.draft_id for row in rows})
    judged = [entry for entry in entries if entry["task"] != "generate_easy"]
    candidates = {row.candidate_id for row in rows} - {""}
    assert {entry["item"].partition("#")[0] for entry in judged} == candidates
    assert sum(row.judging_usd for row in rows) == paid_by(judged)
    # Every request brought a readable question here, so all of it is borne by questions.
    assert sum(row.cost_usd for row in rows) == paid_by(entries)
    golden = [row for row in rows if row.golden_id]
    assert len(golden) == len(run.golden()) and {row.outcome for row in golden} == {"golden"}
    dropped = {drop.item_id for name in ("judge_drops", "top_up_drops") for drop in run.rows(name, Drop)}
    told = {row.candidate_id or row.draft_id: row.outcome for row in rows}
    assert all(": " in told[item] for item in dropped if item in told) and dropped & told.keys()
    assert "review: dropped_by_reviewer" in told.values()


def test_metadata_of_each_stage_tells_what_it_paid(run: ProjectRun, server: LoopbackServer) -> None:
    calls = server.calls
    outcome = run.must()
    assert server.calls == calls, "all of it is replayed"
    for name in ("drafts", "ambiguity_verdicts", "closed_book_verdicts", "support_verdicts", "candidates"):
        facts = outcome.metadata[name]
        assert facts["paid in this step"] == "$0.00" and "replayed" in facts["cost by task"], name
    assert outcome.metadata["ambiguity_verdicts"]["calls"] > 0
    facts = outcome.metadata["costs"]
    assert facts["calls"] == calls and facts["cost of a kept item"] not in ("$0.00", "(none kept)")
    assert facts["kept items"] == len(run.golden()) and "judge_support" in facts["by task and model"]
    frozen = run.must("freeze_job").metadata["golden_set"]
    assert frozen["cost of the snapshot"] == facts["cost of its replies, whoever paid"] != "$0.00"
    assert len(run.snapshots()) == 1, "what it cost is no part of a snapshot"
    text = summary(run.settings, run.version)
    assert f"paid for {calls} calls" in text and "support " in text and "a kept item" in text


def test_the_estimate_has_a_row_for_each_task_before_anything_is_paid(run: ProjectRun) -> None:
    rows = run.rows("cost_estimate", CostRow)
    tasks = [row.task for row in rows]
    assert tasks == [
        "generate_easy", "generate_easy", "judge_ambiguity", "answer_closed_book", "judge_closed_book", "judge_support",
    ]  # fmt: skip
    assert "first round" in rows[0].basis and all(row.basis.startswith("forecast: ") for row in rows[1:])
    # A run before this one asked all of it, so that nothing is to be paid, and lengths are measured.
    assert all(row.calls_to_pay == 0 and Decimal(row.cost_usd) == 0 < Decimal(row.list_cost_usd) for row in rows)
    assert "replies in the ledger" in rows[2].basis


def test_another_revision_pays_only_for_what_changed(run: ProjectRun, server: LoopbackServer) -> None:
    before, old = server.calls, run.version
    alpha = run.settings.kb_dir / "alpha.md"
    text = alpha.read_text(encoding="utf-8")
    alpha.write_text(text + "\nIn alpha a last rule grants 99 days for case 99.\n", encoding="utf-8")
    try:
        run.must()
        books = books_of(run.settings, run.version)
        assert books is not None and not books.faults() and run.version != old
        whole = total(books.calls)
        # What has not changed is not even asked again, so nothing of it is replayed.
        assert whole.calls - whole.replayed == server.calls - before > 0
        assert {row.document_path for row in run.rows("draft_requests", AskedRow)} == {"alpha.md"}
        assert 0 < whole.paid_usd <= whole.cost_usd and whole.paid_usd == books.replies_usd
    finally:
        alpha.write_text(text, encoding="utf-8")


def test_people_with_sql_see_the_ledger_beside_the_tables(run: ProjectRun) -> None:
    run.must(selection=["costs", "item_costs"])
    with duckdb.connect(str(run.settings.data_dir / "ragds.duckdb"), read_only=True) as connection:
        names = [
            name for (name,) in connection.execute("select view_name from duckdb_views() where not internal").fetchall()
        ]
        assert {"ledger", "costs", "item_costs", "cost_estimate"} <= set(names)
        columns = [row[0] for row in connection.execute("describe ledger").fetchall()]
        assert "cost_usd" in columns and not {"request", "message"} & set(columns)
        (by_ledger,) = (
            connection.execute("select sum(cost_usd) from ledger where partition = ?", [run.version]).fetchone() or ()
        )
        (by_costs,) = (
            connection.execute(
                "select sum(paid_usd) from costs where table_file like ?", [f"%{run.version}%"]
            ).fetchone()
            or ()
        )
    assert by_ledger == by_costs > 0


def test_sums_that_differ_are_a_warning_and_stop_nothing(run: ProjectRun) -> None:
    ledger = Ledger(ledger_url(run.settings))
    with ledger.engine.begin() as connection:
        key = connection.execute(
            sa.select(replies.c.key).where(replies.c.task == "judge_support").limit(1)
        ).scalar_one()
        connection.execute(replies.delete().where(replies.c.key == key))
    ledger.close()
    outcome = run.must(selection=["costs", "item_costs"])
    (warning,) = outcome.warnings
    assert warning.startswith("costs_reconcile: $") and "does not hold" in warning
    assert sum(row.unanswered for row in run.rows("costs", SpentRow)) == 1
