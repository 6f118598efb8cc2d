"""One judge's verdicts on a table of candidates, a part at a time, so that memory does not grow with the table.

Between the parts only the tables are held: a candidate as a record, its request and its reply take ten times what its
row takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ragds_pipeline.config import Settings
from ragds_pipeline.filters.claude_filter import Judged, apply_verdicts, ask_about, enabled_judges
from ragds_pipeline.filters.judges import Judge
from ragds_pipeline.filters.judging import OK, SPLIT, Asker, batch_above
from ragds_pipeline.records import Candidate, Drop, Verdict
from ragds_pipeline.storage.schemas import to_records, to_table

PART = 2_000
"""Candidates of a part. What a part costs beside its calls: the wait for the last of them, and for the first call with
the rubric, which stands in the prompt cache by then."""

BATCH_PART = 10_000
"""Candidates of a part where parts go as batches, each of which may take an hour."""

EXAMPLES = 40


@dataclass
class Tally:
    """What is told of a judge's verdicts."""

    asked: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    passed: int = 0
    voted: int = 0
    flips: int = 0
    model: str = ""
    rubric: str = ""
    examples: list[tuple[str, Verdict]] = field(default_factory=list)
    """Questions that did not pass, or on which the votes were split, with the verdict; the first of them."""

    @property
    def split(self) -> int:
        """How many go to people because the votes disagree."""
        return self.reasons[SPLIT]

    def add(self, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> None:
        """Count the verdicts on ``candidates``."""
        questions = {candidate.id: candidate.question for candidate in candidates}
        for verdict in verdicts:
            self.asked += 1
            self.passed += verdict.passed
            self.reasons[verdict.reason] += 1
            self.voted += len(verdict.votes) > 1
            self.flips += len(set(verdict.votes)) > 1
            self.model, self.rubric = self.model or verdict.model, self.rubric or verdict.prompt_version
            if verdict.reason != OK and len(self.examples) < EXAMPLES:
                self.examples.append((questions[verdict.candidate_id], verdict))


def verdicts_in_parts(
    judge: Judge,
    candidates: pa.Table,
    earlier: Mapping[Judge, pa.Table],
    claude: Asker,
    settings: Settings,
    tally: Tally,
    say: Callable[[str], None] = lambda line: None,
) -> pa.Table:
    """Return the verdicts of ``judge`` on those of ``candidates`` that the ``earlier`` judges let through.

    Args:
        judge: Who is asked.
        candidates: Table of :class:`Candidate`.
        earlier: Tables of :class:`Verdict` of the judges before, in their order.
        claude: The door to the model.
        settings: Models, votes, and from how many requests on they go as a batch.
        tally: Counts what comes.
        say: Told which part is next, where there are several.
    """
    size = part_size(candidates.num_rows, settings)
    found: list[pa.Table] = []
    for start in range(0, candidates.num_rows, size):
        if candidates.num_rows > size:
            say(f"{judge.name}: {start + 1:,} to {min(start + size, candidates.num_rows):,} of {candidates.num_rows:,}")
        left = _passing(to_records(Candidate, candidates.slice(start, size)), earlier, settings)
        verdicts = ask_about(judge, left, claude, settings)
        tally.add(left, verdicts)
        found.append(to_table(Verdict, verdicts))
    return pa.concat_tables(found) if found else to_table(Verdict, [])


def part_size(count: int, settings: Settings) -> int:
    """Return how many candidates are judged at a time."""
    above = batch_above(settings)
    batches = settings.claude.backend == "batch" or (above is not None and count > above)
    return BATCH_PART if batches else PART


@dataclass
class Applied:
    """What the judges left of a table of candidates."""

    candidates: list[Candidate] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    verdicts: pa.Table = field(default_factory=lambda: to_table(Verdict, []))
    """Table of :class:`Verdict`, judge by judge."""


def apply_in_parts(candidates: pa.Table, verdicts: Mapping[Judge, pa.Table], settings: Settings) -> Applied:
    """Apply the judges' verdicts (tables of :class:`Verdict`, in their order) to a table of :class:`Candidate`."""
    left: list[Candidate] = []
    drops: dict[Judge, list[Drop]] = {judge: [] for judge in verdicts}
    said: dict[Judge, list[pa.Table]] = {judge: [] for judge in verdicts}
    for start in range(0, candidates.num_rows, PART):
        part = to_records(Candidate, candidates.slice(start, PART))
        for judge, table in verdicts.items():
            if judge in enabled_judges(settings):
                rows = _verdicts_on(part, table)
                judged = passing(judge, part, to_records(Verdict, rows), settings)
                part = judged.candidates
                drops[judge] += judged.drops
                said[judge].append(rows)
        left += part
    tables = [table for each in said.values() for table in each]
    return Applied(
        left,
        [drop for each in drops.values() for drop in each],
        pa.concat_tables([to_table(Verdict, []), *tables]),
    )


def passing(judge: Judge, candidates: list[Candidate], verdicts: Sequence[Verdict], settings: Settings) -> Judged:
    """Return what ``judge`` left of ``candidates``: all of them where it is switched off."""
    if judge not in enabled_judges(settings):
        return Judged(candidates)
    return apply_verdicts(judge, candidates, {verdict.candidate_id: verdict for verdict in verdicts})


def _passing(candidates: list[Candidate], earlier: Mapping[Judge, pa.Table], settings: Settings) -> list[Candidate]:
    for judge, table in earlier.items():
        candidates = passing(
            judge, candidates, to_records(Verdict, _verdicts_on(candidates, table)), settings
        ).candidates
    return candidates


def _verdicts_on(candidates: Sequence[Candidate], table: pa.Table) -> pa.Table:
    ids = pa.array([candidate.id for candidate in candidates], pa.string())
    return table.filter(pc.is_in(table.column("candidate_id"), value_set=ids))
