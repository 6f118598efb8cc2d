"""Whether what the KB folder holds is a new revision for which a run is due: the decision, without Dagster.

Level, not edge: each look asks the event log whether the revision's job is done, under way or has failed, and the
folder whether it is quiet. What earlier looks saw (:class:`Seen`) only says since when the folder has looked the same;
where it is lost, a run starts later, never twice and never not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragds_pipeline.config import WatchSettings
from ragds_pipeline.kb.revision import Revision
from ragds_pipeline.kb.scan import ScannedFile
from ragds_pipeline.records import canonical_json, sha256_text


@dataclass(frozen=True, slots=True)
class Seen:
    """What the folder looked like, and since when."""

    state: str
    """See :func:`state_of`."""
    since: float
    """Seconds since 1970."""

    def to_text(self) -> str:
        """Return it as a cursor."""
        return json.dumps({"state": self.state, "since": self.since})

    @classmethod
    def from_text(cls, text: str | None) -> Seen | None:
        """Return what a cursor says; None for one that is empty or not ours."""
        try:
            content = json.loads(text or "")
            return cls(str(content["state"]), float(content["since"]))
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run that was started for a revision because it was noticed."""

    run_id: str
    number: int
    status: Literal["failed", "cancelled", "done"]
    ended_at: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """What the event log says of a revision."""

    done: bool
    """The asset at which the job ends is there."""
    active: str = ""
    """Id of a run on this revision that has not ended, or empty."""
    attempts: Sequence[Attempt] = ()
    """Ended runs that were started because it was noticed, oldest first."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done now, and why."""

    kind: Literal["run", "done", "wait"]
    """``done``: the revision was run before, so that it only becomes the current one. ``wait``: nothing."""
    reason: str
    attempt: int = 0
    """Number of the run to start, from 1."""


def state_of(revision: Revision) -> str:
    """Return a hash of all that the folder says: documents and ``kb.yaml``. It is the folder's data version.

    Unlike ``content_sha256`` it also moves with settings that are no part of a revision, such as ``confidential``.
    """
    return sha256_text(canonical_json([revision.content_sha256, revision.manifest.model_dump(mode="json")]))[:16]


def look(revision: Revision, before: Seen | None, now: float) -> Seen:
    """Return what is seen now: the same as before since then, or something else since now."""
    state = state_of(revision)
    return before if before is not None and before.state == state and before.since <= now else Seen(state, now)


def quiet_for(revision: Revision, seen: Seen | None, now: float) -> float:
    """Return for how many seconds nothing has changed: since it was first seen so, and by the files' own marks.

    Without ``seen`` the marks alone count.
    """
    return max(0.0, now - max(revision.scan.changed_at, seen.since if seen is not None else 0.0))


def gone(before: Sequence[ScannedFile], now: Sequence[ScannedFile]) -> list[str]:
    """Return the documents that were there before and are not now, neither under their name nor under another."""
    paths, contents = {file.path for file in now}, {file.sha256 for file in now}
    return [file.path for file in before if file.path not in paths and file.sha256 not in contents]


def next_step(
    revision: Revision,
    quiet_s: float,
    history: History,
    before: Sequence[ScannedFile],
    now: float,
    settings: WatchSettings,
) -> Step:
    """Say what is due for the revision that the folder holds now.

    Args:
        revision: What the folder holds.
        quiet_s: For how long it has been quiet; see :func:`quiet_for`.
        history: What the event log says of it.
        before: The documents of the current revision, as archived; empty where there is none.
        now: Seconds since 1970.
        settings: ``watch`` of ragds.yaml.
    """
    version = revision.source_version
    if quiet_s < settings.quiet_s:
        left = _for(settings.quiet_s - quiet_s)
        return Step("wait", f"{version}: the KB folder changed {_for(quiet_s)} ago; quiet in {left} at the earliest")
    if history.done:
        return Step("done", f"{version} has its review queue")
    if history.active:
        return Step("wait", f"{version} is in progress in run {history.active}")
    if held := _held(revision, before, quiet_s, settings):
        return Step("wait", held)
    return _attempt(version, history.attempts, now, settings)


def _held(revision: Revision, before: Sequence[ScannedFile], quiet_s: float, settings: WatchSettings) -> str:
    missing = gone(before, revision.scan.files)
    if len(missing) <= settings.gone_share * len(before) or quiet_s >= settings.gone_quiet_s:
        return ""
    shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return (
        f"held: {len(missing)} of {len(before)} documents are gone ({shown}), more than watch.gone_share. If that is "
        f"meant, run it by hand (ragds run); if not, put them back. Otherwise {revision.source_version} is run when "
        f"the folder has been quiet for {_for(settings.gone_quiet_s)} (watch.gone_quiet_s)"
    )


def _attempt(version: str, attempts: Sequence[Attempt], now: float, settings: WatchSettings) -> Step:
    by_hand = f"materialise revision_job for {version} by hand (ragds run)"
    number = 1 + max((attempt.number for attempt in attempts), default=0)
    ends = [at for at, attempt in enumerate(attempts, start=1) if attempt.status == "done"]
    attempts = attempts[ends[-1] :] if ends else attempts  # what was done once and is not there any more was taken away
    if not attempts:
        return Step("run", f"{version} has no review queue", number)
    last = attempts[-1]
    if last.status == "cancelled":
        return Step("wait", f"{version}: run {last.run_id} was cancelled, so nothing starts by itself; {by_hand}")
    if len(attempts) >= settings.max_attempts:
        why = f": {last.error}" if last.error else ""
        return Step(
            "wait",
            f"{version}: given up after {len(attempts)} attempts (watch.max_attempts), the last of them run "
            f"{last.run_id}{why}. Mend what it says and {by_hand}",
        )
    if (left := last.ended_at + settings.retry_after_s - now) > 0:
        return Step("wait", f"{version}: run {last.run_id} failed; the next attempt is due in {_for(left)}")
    return Step("run", f"{version}: run {last.run_id} failed", number)


def _for(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
