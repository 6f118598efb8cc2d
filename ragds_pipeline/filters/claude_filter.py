"""Claude's filters in their order: an item that one judge drops is not sent to the next.

For every judge: candidates in = passed + dropped, with a verdict for each. Split votes pass, marked for people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragds_pipeline.config import Settings
from ragds_pipeline.filters.closed_book import closed_book
from ragds_pipeline.filters.judges import CLOSED_BOOK, JUDGES, SUPPORT, Judge, fields_of
from ragds_pipeline.filters.judging import Asker, ask_judge
from ragds_pipeline.records import Candidate, Drop, Verdict, canonical_json
from ragds_pipeline.storage.schemas import as_json


@dataclass
class Judged:
    """What came of the judges that were asked."""

    candidates: list[Candidate]
    """Those that passed every judge, needless spans made optional."""
    verdicts: list[Verdict] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)


def enabled_judges(settings: Settings) -> list[Judge]:
    """Return the judges that are switched on, in the order in which they are asked."""
    return [judge for judge in JUDGES if judge.name in settings.filters.judges.enabled]


def ask_about(judge: Judge, candidates: Sequence[Candidate], claude: Asker, settings: Settings) -> list[Verdict]:
    """Return one judge's verdicts on ``candidates``, in their order."""
    if judge.name == CLOSED_BOOK.name:
        found = closed_book(candidates, claude, settings)
    else:
        found = ask_judge(judge, {c.id: fields_of(c) for c in candidates}, claude, settings)
    return [found[candidate.id] for candidate in candidates]


def apply_verdicts(judge: Judge, candidates: Sequence[Candidate], verdicts: Mapping[str, Verdict]) -> Judged:
    """Return what one judge's verdicts leave of ``candidates``."""
    result = Judged([], [verdicts[candidate.id] for candidate in candidates])
    for candidate in candidates:
        verdict = verdicts[candidate.id]
        if verdict.passed:
            result.candidates.append(_with_optional(candidate, verdict) if judge is SUPPORT else candidate)
        else:
            result.drops.append(_drop(candidate, verdict))
    return result


def judge_all(candidates: Sequence[Candidate], claude: Asker, settings: Settings) -> Judged:
    """Ask every judge that is switched on, each only about what the ones before let through."""
    result = Judged(list(candidates))
    for judge in enabled_judges(settings):
        verdicts = ask_about(judge, result.candidates, claude, settings)
        left = apply_verdicts(judge, result.candidates, {v.candidate_id: v for v in verdicts})
        result = Judged(left.candidates, result.verdicts + left.verdicts, result.drops + left.drops)
    return result


def _with_optional(candidate: Candidate, verdict: Verdict) -> Candidate:
    """Make needless spans optional; at least one stays required."""
    needless = {number - 1 for number in verdict.needless}
    evidence = tuple(replace(e, required=at not in needless) for at, e in enumerate(candidate.evidence))
    return replace(candidate, evidence=evidence) if any(e.required for e in evidence) else candidate


def _drop(candidate: Candidate, verdict: Verdict) -> Drop:
    return Drop(
        stage=verdict.stage,
        reason=verdict.reason,
        detail=verdict.detail,
        document_path=candidate.document_path,
        item_id=candidate.id,
        question=candidate.question,
        type=candidate.type,
        language=candidate.language,
        round=candidate.round,
        payload=canonical_json(as_json(candidate)),
        difficulty=candidate.difficulty,
    )
