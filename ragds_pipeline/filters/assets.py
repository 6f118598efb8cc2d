"""The filters as assets: the code filter, Claude's filters one by one, then top-up rounds until the plan is met.

https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from ragds_pipeline.candidates.assets import (
    DRAFTING,
    cost_facts,
    draft_facts,
    drop_facts,
    outlines_to_ask,
    request_facts,
    stopped,
)
from ragds_pipeline.candidates.prompts import code_version, load_prompt
from ragds_pipeline.candidates.revision_plan import open_plan
from ragds_pipeline.claude import RepliesMissing
from ragds_pipeline.config import ConfigError
from ragds_pipeline.filters.claude_filter import enabled_judges
from ragds_pipeline.filters.code_filter import code_filter
from ragds_pipeline.filters.in_parts import Tally, apply_in_parts, verdicts_in_parts
from ragds_pipeline.filters.judges import CLOSED_BOOK, JUDGES, PROMPTS, Judge, cached_rubric, rubric
from ragds_pipeline.filters.top_up import room_for, top_up
from ragds_pipeline.kb.outline import load_outlines
from ragds_pipeline.records import AskedRow, Candidate, Draft, Drop, MissingRow, PlanRow, Verdict, sha256_text
from ragds_pipeline.resources import Project, claude_retries, kb_revisions
from ragds_pipeline.storage.metadata import Facts, markdown_table
from ragds_pipeline.storage.schemas import as_json, to_records, to_table
from ragds_pipeline.storage.tables import TableFile

GROUP = "filters"
OWNERS = ["team:data-engineering"]


def shareable_texts(documents: TableFile) -> Callable[[], Iterable[tuple[str, str]]]:
    """Return a function that yields (path, text) of every document that is not confidential.

    Confidential ones are left out so that no place in them becomes part of a golden set that is handed on.
    """

    def texts() -> Iterator[tuple[str, str]]:
        for batch in documents.batches(["path", "text", "confidential"]):
            for row in batch.to_pylist():
                if not row["confidential"]:
                    yield row["path"], row["text"]

    return texts


@dg.multi_asset(
    outs={
        "first_candidates": dg.AssetOut(
            description="Drafts of the first round that passed the code filter, with exact evidence spans.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
        "code_drops": dg.AssetOut(
            description="Drafts of the first round that the code filter dropped, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version="1",
        ),
    },
    partitions_def=kb_revisions,
)  # fmt: skip
def code_filtered(
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    carried_candidates: pa.Table,
    question_plan: pa.Table,
    drafts: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Locate evidence and drop by code what cannot be right. No call is made."""
    rows = to_records(Draft, drafts)
    carried = to_records(Candidate, carried_candidates)
    room = room_for(open_plan(to_records(PlanRow, question_plan), carried))
    outlines = load_outlines(kb_documents, kb_passages, {draft.document_path for draft in rows})
    settings = project.settings().filters
    found = code_filter(rows, outlines, shareable_texts(kb_documents), settings, carried, room)
    yield dg.MaterializeResult(
        asset_key="first_candidates",
        value=to_table(Candidate, found.candidates),
        metadata={"drafts in": len(rows), **candidate_facts(found.candidates)},
    )
    yield dg.MaterializeResult(
        asset_key="code_drops", value=to_table(Drop, found.drops), metadata=drop_facts(found.drops)
    )


def _judging(judge: Judge) -> str:
    """Return the code version of a judge's verdicts, in which its rubric and the form of its verdict stand."""
    others = ["verdict_form", *(["closed_book_answer"] if judge is CLOSED_BOOK else [])]
    return code_version("1", rubric(judge), *(load_prompt(name, PROMPTS) for name in others))


def _verdict_asset(judge: Judge, earlier: Sequence[Judge], sentence: str) -> dg.AssetsDefinition:
    """Return the asset with one judge's verdicts on the first round; it reads those of the judges before it."""

    @dg.asset(
        name=f"{judge.name}_verdicts",
        description=sentence,
        ins={
            "first_candidates": dg.AssetIn("first_candidates"),
            **{f"{each.name}_verdicts": dg.AssetIn(f"{each.name}_verdicts") for each in earlier},
        },
        partitions_def=kb_revisions, io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"},
        owners=OWNERS, code_version=_judging(judge), pool="claude", retry_policy=claude_retries,
    )  # fmt: skip
    def verdicts(
        context: dg.AssetExecutionContext, project: Project, first_candidates: pa.Table, **tables: pa.Table
    ) -> dg.MaterializeResult[pa.Table]:
        settings = project.settings()
        if judge not in enabled_judges(settings):
            off: Facts = {"asked": 0, "note": f"{judge.name} is not in filters.judges.enabled (ragds.yaml)"}
            return dg.MaterializeResult(value=to_table(Verdict, []), metadata=off)
        try:
            claude = project.claude(context, settings)
            before, tally = {each: tables[f"{each.name}_verdicts"] for each in earlier}, Tally()
            found = verdicts_in_parts(judge, first_candidates, before, claude, settings, tally, context.log.info)
            claude.close()
        except (RepliesMissing, ConfigError) as error:
            raise stopped(error) from error
        facts = {
            **verdict_facts(tally),
            "rubric in the prompt cache": cached_rubric(judge, settings),
            **cost_facts(claude),
        }
        return dg.MaterializeResult(value=found, metadata=facts)

    return verdicts


_SENTENCES = {
    "ambiguity": "Does each question, read alone, have exactly one meaning? Verdicts of the judge, first round.",
    "closed_book": "Can the question be answered without the document? Then it measures no retrieval and is dropped.",
    "support": "Does the reference answer follow from the evidence spans alone, wholly? Is a span needless?",
    "class": "Is the item really of the type and the difficulty it claims? Verdicts of the judge, first round.",
}

VERDICTS = [_verdict_asset(judge, JUDGES[:at], _SENTENCES[judge.name]) for at, judge in enumerate(JUDGES)]


def verdict_facts(tally: Tally) -> Facts:
    """Return the metadata of a table of verdicts: how many, how they fell, and examples of what did not pass."""
    rows = [
        {"question": question[:140], "reason": v.reason, "detail": v.detail[:200]} for question, v in tally.examples
    ]
    voted, flips = tally.voted, tally.flips
    return {
        "asked": tally.asked,
        "passed": tally.passed,
        "split, for people": tally.split,
        "voted on": voted,
        "votes that disagreed": flips,
        "flip rate": f"{flips / voted:.0%} of the items voted on" if voted else "nothing was voted on",
        "model": tally.model,
        "rubric": tally.rubric,
        "not passed, or split": markdown_table(rows),
    }


def _asking(number: str) -> str:
    """Return the code version of what the top-up rounds make: they write questions and put them to every judge."""
    return "+".join([number, sha256_text(" ".join([DRAFTING, *(_judging(judge) for judge in JUDGES)]))[:8]])


@dg.multi_asset(
    outs={
        "candidates": dg.AssetOut(
            description="All candidates: what came over from the last frozen set, and what passed the filters.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS,
            code_version=_asking("2"),
        ),
        "verdicts": dg.AssetOut(
            description="What Claude's filters said about every candidate, first round and top-ups, with reasons.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS,
            code_version=_asking("1"),
        ),
        "judge_drops": dg.AssetOut(
            description="Candidates of the first round that Claude's filters dropped, each with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version=_asking("1"),
        ),
        "top_up_drafts": dg.AssetOut(
            description="Questions of the top-up rounds as they came back.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet", "claude"}, owners=OWNERS,
            code_version=_asking("1"),
        ),
        "top_up_drops": dg.AssetOut(
            description="What the top-up rounds dropped, at reading and in all filters, with the reason.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version=_asking("2"),
        ),
        "top_up_requests": dg.AssetOut(
            description="Every request of the top-up rounds: what was asked, what came back, what it cost.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version=_asking("1"),
        ),
        "missing_questions": dg.AssetOut(
            description="What is still missing of the plan after the last round, by document and type, and why.",
            io_manager_key="tables", group_name=GROUP, kinds={"parquet"}, owners=OWNERS, code_version=_asking("1"),
        ),
    },
    partitions_def=kb_revisions,
    pool="claude",
    retry_policy=claude_retries,
)  # fmt: skip
def topped_up(
    context: dg.AssetExecutionContext,
    project: Project,
    kb_documents: TableFile,
    kb_passages: TableFile,
    kb_changes: pa.Table,
    carried_candidates: pa.Table,
    question_plan: pa.Table,
    first_candidates: pa.Table,
    draft_drops: pa.Table,
    code_drops: pa.Table,
    ambiguity_verdicts: pa.Table,
    closed_book_verdicts: pa.Table,
    support_verdicts: pa.Table,
    class_verdicts: pa.Table,
) -> Iterator[dg.MaterializeResult[pa.Table]]:
    """Apply the verdicts, then ask again, in a bounded number of rounds, for what the filters left open."""
    settings = project.settings()
    plan = to_records(PlanRow, question_plan)
    carried = to_records(Candidate, carried_candidates)
    outlines = outlines_to_ask(kb_documents, kb_passages, kb_changes, open_plan(plan, carried))
    tables = (ambiguity_verdicts, closed_book_verdicts, support_verdicts, class_verdicts)
    judged = apply_in_parts(first_candidates, dict(zip(JUDGES, tables, strict=True)), settings)
    earlier_drops = to_records(Drop, draft_drops) + to_records(Drop, code_drops) + judged.drops
    texts = shareable_texts(kb_documents)
    try:
        claude = project.claude(context, settings)
        there = carried + judged.candidates
        done = top_up(plan, there, earlier_drops, outlines, texts, claude, settings, context.log.info)
        claude.close()
    except (RepliesMissing, ConfigError) as error:
        raise stopped(error) from error
    drafts = [draft for made in done.rounds for draft in made.drafts]
    asked = [row for made in done.rounds for row in made.asked]
    verdicts = pa.concat_tables([judged.verdicts, to_table(Verdict, done.verdicts)])
    absent = [as_json(row) for row in done.missing]
    passed = {"verdicts": verdicts.num_rows, "passed": pc.sum(verdicts["passed"]).as_py() or 0}
    short = {"questions missing": sum(row.missing for row in done.missing), "missing": markdown_table(absent)}
    yield dg.MaterializeResult(asset_key="verdicts", value=verdicts, metadata=passed)
    results: dict[str, tuple[type[Any], Sequence[Any], Facts]] = {
        "candidates": (Candidate, done.candidates, {**candidate_facts(done.candidates), **cost_facts(claude)}),
        "judge_drops": (Drop, judged.drops, drop_facts(judged.drops)),
        "top_up_drafts": (Draft, drafts, {"rounds": len(done.rounds), **draft_facts(drafts)}),
        "top_up_drops": (Drop, done.drops, drop_facts(done.drops)),
        "top_up_requests": (AskedRow, asked, request_facts(asked)),
        "missing_questions": (MissingRow, done.missing, short),
    }
    for key, (record, rows, facts) in results.items():
        yield dg.MaterializeResult(asset_key=key, value=to_table(record, rows), metadata=facts)


def candidate_facts(candidates: Sequence[Candidate]) -> Facts:
    """Return the metadata of a table of candidates."""
    rows = [
        {"question": c.question[:160], "evidence": c.evidence[0].content[:120], "chunk": c.chunk_id}
        for c in candidates[:20]
    ]
    places = sum(len(e.alternatives) for c in candidates for e in c.evidence)
    return {"candidates": len(candidates), "alternative places": places, "preview": markdown_table(rows)}


ASSETS = [code_filtered, *VERDICTS, topped_up]
