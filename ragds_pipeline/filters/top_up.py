"""Ask again for what the filters left open: a bounded number of rounds, never more than the plan.

Each round asks, for each document and type, for exactly as many questions as are still missing, tells the model which
questions were made before, and filters what comes back against all that was kept before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ragds_pipeline.candidates.generate import Generated, generate
from ragds_pipeline.candidates.revision_plan import open_plan
from ragds_pipeline.claude import Claude
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.claude_filter import judge_all
from ragds_pipeline.filters.code_filter import Documents, Kind, code_filter
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Difficulty, Drop, MissingRow, PlanRow, Verdict

Report = Callable[[str], None]


@dataclass
class ToppedUp:
    """The candidates after all rounds, what the top-up rounds dropped, and what is still missing."""

    candidates: list[Candidate]
    drops: list[Drop] = field(default_factory=list)
    missing: list[MissingRow] = field(default_factory=list)
    rounds: list[Generated] = field(default_factory=list)
    """What each top-up round brought, before the code filter."""
    verdicts: list[Verdict] = field(default_factory=list)
    """What Claude's filters said about candidates of the top-up rounds."""


def room_for(plan: Sequence[PlanRow]) -> dict[Kind, int]:
    """Return how many questions of each (document, difficulty, type) the plan wants."""
    room: Counter[Kind] = Counter()
    for row in plan:
        room[(row.document_path, row.difficulty, row.type)] += row.planned
    return dict(room)


def top_up(
    plan: Sequence[PlanRow],
    first: Sequence[Candidate],
    first_drops: Sequence[Drop],
    outlines: Mapping[str, Outline],
    documents: Documents,
    claude: Claude,
    settings: Settings,
    report: Report = lambda line: None,
) -> ToppedUp:
    """Run top-up rounds after the first round, whose drops of all stages are ``first_drops``.

    What a round brings goes through the code filter and then through the judges that are switched on.
    """
    result = ToppedUp(list(first))
    for round_ in range(1, settings.plan.top_up_rounds + 1):
        wanted = [
            row
            for row in open_plan(plan, result.candidates)
            if row.difficulty == Difficulty.EASY and row.document_path in outlines
        ]
        if not wanted:
            break
        known = _made(result.candidates, [*first_drops, *result.drops])
        made = generate(wanted, outlines, known, claude, settings, round_)
        kept = code_filter(made.drafts, outlines, documents, settings.filters, result.candidates, room_for(wanted))
        judged = judge_all(kept.candidates, claude, settings)
        result.rounds.append(made)
        result.candidates += judged.candidates
        result.verdicts += judged.verdicts
        result.drops += made.drops + kept.drops + judged.drops
        report(f"top-up round {round_}: asked for {made.asked_for}, kept {len(judged.candidates)}")
    result.missing = missing(plan, result.candidates, [*first_drops, *result.drops])
    return result


def _made(candidates: Sequence[Candidate], drops: Sequence[Drop]) -> dict[str, list[str]]:
    """Return all questions made so far by document, kept and dropped, so that none is made again."""
    made: dict[str, list[str]] = {}
    found = [(c.document_path, c.question) for c in candidates] + [(d.document_path, d.question) for d in drops]
    for path, question in found:
        if question:
            made.setdefault(path, []).append(question)
    return {path: list(dict.fromkeys(questions)) for path, questions in made.items()}


def missing(plan: Sequence[PlanRow], candidates: Sequence[Candidate], drops: Sequence[Drop]) -> list[MissingRow]:
    """Return what is missing of the plan, by document and type, with the reasons met on the way.

    A drop whose type could not be read counts for every missing type of its document.
    """
    reasons: dict[str, Counter[tuple[str, str, str]]] = {}
    for item in drops:
        reasons.setdefault(item.document_path, Counter())[(item.difficulty, item.type, item.reason)] += 1
    planned = {(r.document_path, r.difficulty, r.type): r.planned for r in plan}
    rows = []
    for row in open_plan(plan, candidates):
        total = planned[(row.document_path, row.difficulty, row.type)]
        counted: Counter[str] = Counter()
        for (difficulty, type_, reason), count in reasons.get(row.document_path, Counter()).items():
            if type_ in ("", row.type) and difficulty in ("", row.difficulty):
                counted[reason] += count
        told = ", ".join(f"{reason} ×{count}" for reason, count in sorted(counted.items(), key=lambda i: (-i[1], i[0])))
        rows.append(
            MissingRow(
                document_path=row.document_path,
                language=row.language,
                difficulty=row.difficulty,
                type=row.type,
                planned=total,
                kept=total - row.planned,
                missing=row.planned,
                reasons=told or "nothing of this type came back",
            )
        )
    return rows
