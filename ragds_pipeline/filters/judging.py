"""From votes to verdicts: unanimous votes decide, split ones go to people with both reasons, no vote is no pass.

An item is asked about once. Where that vote would drop it, or gives no verdict, it is asked again, up to ``votes``
times in all, because dropping is what cannot be seen on the review sheet. With ``vote_on: all`` every item gets all
votes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ragds_pipeline.claude import Failure, Reply, Request
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


class Asker(Protocol):
    """Whatever hands requests to a model: the door itself, or what is known of its replies."""

    def ask(self, requests: Sequence[Request], batch_above: int | None = None) -> Mapping[str, Reply | Failure]:
        """Return a reply or a failure for each request, by its key."""


Items = Mapping[str, tuple[Judge, Fields]]
"""What is judged, by its id: by whom, and what is shown."""


def batch_above(settings: Settings) -> int | None:
    """Return above how many requests the filters ask by batch; None for never.

    Another server often has no batches, so there it holds only where the project says so.
    """
    judges = settings.filters.judges
    if settings.claude.base_url is not None and "batch_above" not in judges.model_fields_set:
        return None
    return judges.batch_above or None


def ask_judge(judge: Judge, items: Mapping[str, Fields], claude: Asker, settings: Settings) -> dict[str, Verdict]:
    """Return the verdict on each item, by its id. Raises RepliesMissing where the model cannot be reached at all."""
    return ask_judges({item: (judge, fields) for item, fields in items.items()}, claude, settings)


def ask_judges(items: Items, claude: Asker, settings: Settings, task: str = "") -> dict[str, Verdict]:
    """Return the verdict on each item, each of the judge it names, by its id; as :func:`ask_judge`.

    ``task`` names what it is paid for in the ledger, by default each judge.
    """
    wanted, every = settings.filters.judges.votes, settings.filters.judges.vote_on == "all"
    votes = _vote(items, claude, settings, [0], task)
    again = {
        item: items[item]
        for item, cast in votes.items()
        if wanted > 1 and (every or cast[0].word in (items[item][0].drops_on, "none"))
    }
    for item, more in _vote(again, claude, settings, range(1, wanted), task).items():
        votes[item] += more
    return {item: decide(items[item][0], item, cast, settings) for item, cast in votes.items()}


def _vote(items: Items, claude: Asker, settings: Settings, numbers: Sequence[int], task: str) -> dict[str, list[Vote]]:
    requests = {
        item: [judge_request(judge, fields, item, settings, vote=number) for number in numbers]
        for item, (judge, fields) in items.items()
    }
    asked = [replace(r, task=task) if task else r for each in requests.values() for r in each]
    replies = claude.ask(asked, batch_above(settings))
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
