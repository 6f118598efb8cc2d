"""Candidates, verdicts and decisions for tests of what people's decisions say of a judge."""

from __future__ import annotations

import json

from ragds_pipeline.records import Candidate, Decision, Evidence, Verdict


def candidate(id_: str, language: str = "en") -> Candidate:
    evidence = Evidence("a.md", 0, 4, "span", "a#1", "", "", True, "exact")
    return Candidate(
        id_, f"d-{id_}", "a.md", "a#1", f"Question {id_}?", "answer", "fact", "easy", "single", language, "v1",
        (evidence,), "generated", "", 0, "k", "m", "p",
    )  # fmt: skip


def verdict(id_: str, stage: str = "support", reason: str = "ok") -> Verdict:
    return Verdict(id_, stage, reason in ("ok", "split_votes"), reason, f"{reason}: why", "m", "r@1", ("correct",))


def decision(id_: str, keep: str, note: str = "", **edits: object) -> Decision:
    seen = {"question": "q", "answer": "a", "evidence": ["the span of it"]}
    corrected = json.dumps({**seen, **edits}) if keep == "fix" else ""
    return Decision(id_, keep, note, "Rei", "2026-01-01", f"s.csv:{len(id_)}", json.dumps(seen), corrected)
