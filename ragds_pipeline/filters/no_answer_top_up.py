"""Ask for more near misses where fewer are left than planned, in a bounded number of rounds; say what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ragds_pipeline.candidates.no_answer import NearMisses, generate
from ragds_pipeline.candidates.no_answer_plan import open_plan
from ragds_pipeline.claude import Claude
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.no_answer_check import Checked, WholeKb, check
from ragds_pipeline.filters.no_answer_filter import draft_of, filter_drafts
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Drop, MissingRow, PlanRow
from ragds_pipeline.records_no_answer import NO_ANSWER, NoAnswerCandidate, NoAnswerDraft


@dataclass
class ToppedUpNoAnswer:
    """What all rounds came to, and what is still missing."""

    checked: Checked
    """What the check came to, first round and top-ups together."""
    rounds: list[NearMisses] = field(default_factory=list)
    """What each top-up round brought, before the code filter."""
    code_drops: list[Drop] = field(default_factory=list)
    """What the code filter dropped of it."""
    missing: list[MissingRow] = field(default_factory=list)

    @classmethod
    def nothing(cls) -> ToppedUpNoAnswer:
        """Return what comes of no questions at all."""
        return cls(Checked())

    @property
    def drops(self) -> list[Drop]:
        """Drops of the top-up rounds at reading and by code, and of all rounds in the check."""
        return [drop for made in self.rounds for drop in made.drops] + self.code_drops + self.checked.drops


def top_up(
    plan: Sequence[PlanRow],
    filtered: Sequence[NoAnswerDraft],
    earlier_drops: Sequence[Drop],
    main_questions: Sequence[str],
    outlines: Mapping[str, Outline],
    kb: WholeKb,
    claude: Claude,
    settings: Settings,
    report: Callable[[str], None] = lambda line: None,
    carried: Sequence[NoAnswerCandidate] = (),
) -> ToppedUpNoAnswer:
    """Check the questions that code let through, then ask for what is missing of the plan.

    ``earlier_drops`` are those of the first round at reading and by code; ``carried`` came over from the last frozen
    set and are not asked again. Only documents with passages that may be asked about (``outlines``) are asked for more.
    Raises RepliesMissing where the model cannot be reached at all.
    """
    result = ToppedUpNoAnswer(check(filtered, kb, claude, settings))
    seen = [*map(draft_of, carried), *filtered]
    shown = {path for path, outline in outlines.items() if outline.askable and path not in kb.confidential}
    for round_ in range(1, settings.no_answer.top_up_rounds + 1):
        there = [*carried, *result.checked.candidates]
        wanted = [row for row in open_plan(plan, there) if row.document_path in shown]
        if not wanted:
            break
        known = _made(seen, [*earlier_drops, *result.drops])
        made = generate(wanted, outlines, known, claude, settings, round_)
        kept = filter_drafts(made.drafts, main_questions, kb.confidential, settings.filters.duplicate_score, seen)
        checked = check(kept.drafts, kb, claude, settings)
        result.rounds.append(made)
        result.code_drops += kept.drops
        result.checked += checked
        seen += kept.drafts
        asked = sum(row.planned for row in wanted)
        report(f"no_answer top-up round {round_}: asked for {asked}, kept {len(checked.candidates)}")
    result.missing = missing(plan, [*carried, *result.checked.candidates], [*earlier_drops, *result.drops])
    return result


def _made(drafts: Sequence[NoAnswerDraft], drops: Sequence[Drop]) -> dict[str, list[str]]:
    """Return all questions made so far by document, kept and dropped, so that none is made again."""
    made: dict[str, list[str]] = {}
    found = [(d.document_path, d.question) for d in drafts] + [(d.document_path, d.question) for d in drops]
    for path, question in found:
        if question:
            made.setdefault(path, []).append(question)
    return {path: list(dict.fromkeys(questions)) for path, questions in made.items()}


def missing(
    plan: Sequence[PlanRow], candidates: Collection[NoAnswerCandidate], drops: Sequence[Drop]
) -> list[MissingRow]:
    """Return what is missing of the plan after all rounds, by document, with the reasons met on the way."""
    planned = {row.document_path: row.planned for row in plan}
    rows = []
    for row in open_plan(plan, candidates):
        counted = Counter(drop.reason for drop in drops if drop.document_path == row.document_path)
        told = ", ".join(f"{reason} ×{n}" for reason, n in sorted(counted.items(), key=lambda i: (-i[1], i[0])))
        total = planned[row.document_path]
        rows.append(
            MissingRow(
                document_path=row.document_path,
                language=row.language,
                difficulty="",
                type=NO_ANSWER,
                planned=total,
                kept=total - row.planned,
                missing=row.planned,
                reasons=told or "nothing came back",
            )
        )
    return rows
