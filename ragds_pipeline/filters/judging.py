"""From votes to verdicts: unanimous votes decide, split ones go to people with both reasons, no vote is no pass.

An item is asked about once. Where that vote would drop it, or gives no verdict, it is asked again, up to ``votes``
times in all, because dropping is what cannot be seen on the review sheet. With ``vote_on: all`` every item gets all
votes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragds_pipeline.claude import Claude, Failure, Reply
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.judges import Fields, Judge, judge_request, rubric_version
from ragds_pipeline.filters.verdict_reader import CORRECT, INCORRECT, Judgement, NoVerdict, read_verdict
from ragds_pipeline.records import Verdict, printable

OK, SPLIT, NO_VERDICT = "ok", "split_votes", "no_verdict"

REASONS = {
    OK: "passed",
    SPLIT: "the votes disagree; it goes to people with both reasons",
    NO_VERDICT: "no reply held a verdict; not a pass",
}
"""Reasons common to all judges; each has one of its own for a drop."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One reply of a judge."""

    word: str
    """``correct``, ``incorrect`` or ``none``."""
    reason: str
    needless: tuple[int, ...] = ()


def ask_judge(judge: Judge, items: Mapping[str, Fields], claude: Claude, settings: Settings) -> dict[str, Verdict]:
    """Return the verdict on each item, by its id. Raises RepliesMissing where the model cannot be reached at all."""
    wanted = settings.filters.judges.votes
    votes = _vote(judge, items, claude, settings, [0])
    again = {
        item: items[item]
        for item, cast in votes.items()
        if wanted > 1 and (settings.filters.judges.vote_on == "all" or cast[0].word in (judge.drops_on, "none"))
    }
    for item, more in _vote(judge, again, claude, settings, range(1, wanted)).items():
        votes[item] += more
    return {item: decide(judge, item, cast, settings) for item, cast in votes.items()}


def _vote(
    judge: Judge, items: Mapping[str, Fields], claude: Claude, settings: Settings, numbers: Sequence[int]
) -> dict[str, list[Vote]]:
    requests = {
        item: [judge_request(judge, fields, item, settings, vote=number) for number in numbers]
        for item, fields in items.items()
    }
    replies = claude.ask([request for each in requests.values() for request in each])
    return {item: [_read(replies[request.key]) for request in each] for item, each in requests.items()}


def _read(reply: Reply | Failure) -> Vote:
    if isinstance(reply, Failure):
        return Vote("none", f"{reply.reason}: {reply.detail}"[:300])
    try:
        found: Judgement = read_verdict(reply.text)
    except NoVerdict as error:
        return Vote("none", printable(str(error)[:300]))
    return Vote(CORRECT if found.correct else INCORRECT, printable(found.reason), found.needless)


def decide(judge: Judge, item: str, votes: Sequence[Vote], settings: Settings) -> Verdict:
    """Return the verdict that votes come to. Replies without a verdict do not count, but cannot pass an item alone."""
    cast = [vote for vote in votes if vote.word != "none"]
    words = {vote.word for vote in cast}
    if not cast:
        reason, told = NO_VERDICT, votes
    elif len(words) > 1:
        reason, told = SPLIT, [next(vote for vote in cast if vote.word == word) for word in (CORRECT, INCORRECT)]
    else:
        reason, told = (judge.reason if words == {judge.drops_on} else OK), cast[:1]
    needless = cast[0].needless if reason == OK and judge.names_needless else ()
    return Verdict(
        candidate_id=item,
        stage=judge.name,
        passed=reason in (OK, SPLIT),
        reason=reason,
        detail=" / ".join(f"{vote.word}: {vote.reason}" for vote in told),
        model=settings.claude.models.judge,
        prompt_version=rubric_version(judge),
        votes=tuple(vote.word for vote in votes),
        needless=needless,
    )
