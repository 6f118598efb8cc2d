"""Asking the judges about labelled probes: how far can this model, with this rubric, be trusted?

Probes are asked in the very form in which candidates are, votes included, and paid for under a task of their own; no
reply to one ever becomes a candidate. Their labels are ours; see ``probes/README.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from ragds_pipeline.claude import Claude, Failure, FailureReason, Reply, Request
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.calibration import Judged
from ragds_pipeline.filters.judges import JUDGES, Judge, judge_request
from ragds_pipeline.filters.judging import Asker, ask_judges
from ragds_pipeline.filters.verdict_reader import CORRECT, INCORRECT
from ragds_pipeline.records import ProbeRow, Verdict

TASK = "probes"
"""Name of the task in ledger and costs."""

INJECTION = "injection"
"""Name of the set of items whose texts try to steer a judge; each names its judge."""

SETS = (*(judge.name for judge in JUDGES), INJECTION)


@dataclass(frozen=True, slots=True)
class Probe:
    """One labelled item."""

    id: str
    set: str
    language: str
    judge: str
    fields: dict[str, Any]
    expected: bool
    """True for ``correct``, as the rubric means it."""
    why: str
    needless: tuple[int, ...] | None
    """Numbers of the spans that are not needed, from 1 as a judge counts (the file counts from 0); None where nothing
    is said of them."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe with what the judge said of it."""

    probe: Probe
    verdict: Verdict

    @property
    def got(self) -> bool | None:
        """What most of the votes say. A probe has no people to go to, so a split vote counts by its majority."""
        correct, incorrect = self.verdict.votes.count(CORRECT), self.verdict.votes.count(INCORRECT)
        return None if correct == incorrect else correct > incorrect

    def judged(self) -> Judged:
        """Return it for the statistics, in which True means that the *item* stays."""
        turned = judge_named(self.probe.judge).drops_on == CORRECT
        return Judged(
            item_id=self.probe.id,
            language=self.probe.language,
            expected=self.probe.expected is not turned,
            got=None if self.got is None else self.got is not turned,
            reason=self.verdict.detail,
            source="probe",
        )

    def row(self) -> ProbeRow:
        """Return it as a row of a table."""
        return ProbeRow(
            probe_id=self.probe.id,
            probe_set=self.probe.set,
            judge=self.probe.judge,
            language=self.probe.language,
            expected=_word(self.probe.expected),
            got=_word(self.got),
            votes=self.verdict.votes,
            reason=self.verdict.detail,
            why=self.probe.why,
            question=str(self.probe.fields["question"]),
            needless_expected=self.probe.needless or (),
            needless_got=self.verdict.needless,
            model=self.verdict.model,
            prompt_version=self.verdict.prompt_version,
        )


def _word(correct: bool | None) -> str:
    return "" if correct is None else CORRECT if correct else INCORRECT


def load_probes(name: str) -> list[Probe]:
    """Return the probes of one judge, or of the set :data:`INJECTION`."""
    text = (files("ragds_pipeline.filters") / "probes" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [_probe(name, json.loads(line)) for line in text.splitlines() if line]


def _probe(name: str, row: Mapping[str, Any]) -> Probe:
    judge, expected = row.get("judge", name), row["expected"] == CORRECT
    needless = tuple(at + 1 for at in row.get("needless", ())) if judge == "support" and expected else None
    return Probe(row["id"], name, row["language"], judge, row["input"], expected, row["why"], needless)


def probes_for(judges: Sequence[str] = ()) -> list[Probe]:
    """Return all probes, those that try to steer included, or those of some judges.

    Raises KeyError for a name that is no judge.
    """
    wanted = {judge_named(name).name for name in judges} or {judge.name for judge in JUDGES}
    return [probe for name in SETS for probe in load_probes(name) if probe.judge in wanted]


def first_votes(probes: Sequence[Probe], settings: Settings) -> list[Request]:
    """Return the request of each probe's first vote, to estimate what asking costs."""
    asked = (judge_request(judge_named(probe.judge), probe.fields, probe.id, settings) for probe in probes)
    return [replace(request, task=TASK) for request in asked]


def all_votes(probes: Sequence[Probe], settings: Settings) -> list[Request]:
    """Return every request that could be sent: all votes on all probes."""
    return [
        replace(request, attempt=vote)
        for request in first_votes(probes, settings)
        for vote in range(settings.filters.judges.votes)
    ]


def probe(probes: Sequence[Probe], claude: Asker, settings: Settings) -> list[Probed]:
    """Ask about all probes at once and return what was said, in their order.

    Raises RepliesMissing where the model cannot be reached at all.
    """
    items = {each.id: (judge_named(each.judge), each.fields) for each in probes}
    verdicts = ask_judges(items, claude, settings, TASK)
    return [Probed(each, verdicts[each.id]) for each in probes]


def known_probes(probes: Sequence[Probe], claude: Claude, settings: Settings) -> list[Probed]:
    """Return what is known of the probes from earlier runs or recordings; nothing is sent.

    A probe of which a vote is missing is left out, for its verdict could still be another.
    """
    known = _OnlyKnown(claude)
    found = probe(probes, known, settings)
    return [each for each in found if each.probe.id not in known.incomplete]


class _OnlyKnown:
    """Stands where the door to the model stands, and knows only what was answered before."""

    def __init__(self, claude: Claude) -> None:
        self._claude = claude
        self.incomplete: set[str] = set()

    def ask(self, requests: Sequence[Request], batch_above: int | None = None) -> Mapping[str, Reply | Failure]:
        found = self._claude.known(requests)
        absent = [request for request in requests if request.key not in found]
        self.incomplete |= {request.item for request in absent}
        return {**found, **{r.key: Failure(r.key, FailureReason.EMPTY, "not asked yet") for r in absent}}


def ask_probes(judge: Judge, probes: Sequence[Probe], claude: Asker, settings: Settings) -> list[Judged]:
    """Return what a judge says of its probes, beside their labels. A probe without a verdict has none."""
    return [found.judged() for found in probe([each for each in probes if each.judge == judge.name], claude, settings)]


def judge_named(name: str) -> Judge:
    """Return a judge by its name; raise KeyError for a name that is none."""
    return {judge.name: judge for judge in JUDGES}[name]


def with_judge(settings: Settings, model: str) -> Settings:
    """Return the settings with another model as the judge; the same where ``model`` is empty."""
    if not model:
        return settings
    models = settings.claude.models.model_copy(update={"judge": model})
    return settings.model_copy(update={"claude": settings.claude.model_copy(update={"models": models})})
