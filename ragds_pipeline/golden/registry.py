"""The register of golden ids: given once, never reused, each with its side of the split.

``data/golden/registry.jsonl`` grows as the last thing before a snapshot is put in its place, so that what is in a
snapshot is always in the register; where a kill came in between, an id is taken that no snapshot holds yet, and its
item gets it at the next freezing. An id stays with its item across revisions and corrections: an item is known again by
its candidate id, or by its root, the candidate that people corrected.

Evidence keys outlive the items: what was in a snapshot once, a system may have been tuned on, so a new question on the
same text of the same document takes that side, also when the old item is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ragds_pipeline.records import Candidate, canonical_json, sha256_text
from ragds_pipeline.spans.breaks import sentence_ends
from ragds_pipeline.spans.match_key import key_of
from ragds_pipeline.storage.files import write_text
from ragds_pipeline.storage.schemas import as_json


@dataclass(frozen=True, slots=True)
class Registered:
    """One golden id."""

    id: str
    candidate_id: str
    split: str
    first_frozen_in: str
    root_id: str = ""
    """Id of the candidate as it was written: for a corrected item, of the one that was corrected. Empty in entries of
    earlier versions."""
    evidence_keys: tuple[str, ...] = ()
    """What the item's evidence says and where, hashed; see :func:`evidence_keys`. Empty in entries of earlier
    versions."""


@dataclass(frozen=True, slots=True)
class Known:
    """The register, ready to be asked. Where an item has several entries, the last one counts."""

    entries: Sequence[Registered]

    def by_candidate(self) -> dict[str, Registered]:
        """Return the entries by the id of the very candidate that was frozen."""
        return {entry.candidate_id: entry for entry in self.entries}

    def by_root(self) -> dict[str, Registered]:
        """Return the entries by the id of the candidate as it was written (an older entry may not say: its own)."""
        return {entry.root_id or entry.candidate_id: entry for entry in self.entries}

    def keys_of(self) -> dict[str, frozenset[str]]:
        """Return all evidence keys that an item ever had, by golden id."""
        keys: dict[str, frozenset[str]] = {}
        for entry in self.entries:
            keys[entry.id] = keys.get(entry.id, frozenset()) | frozenset(entry.evidence_keys)
        return keys

    def sides_of(self) -> dict[str, dict[str, str]]:
        """Return, by evidence key, the sides it was ever frozen on, each with the golden id that used it."""
        sides: dict[str, dict[str, str]] = {}
        for entry in self.entries:
            for key in entry.evidence_keys:
                sides.setdefault(key, {}).setdefault(entry.split, entry.id)
        return sides


@dataclass(frozen=True, slots=True)
class Registry:
    """The register file."""

    path: Path

    def entries(self) -> list[Registered]:
        """Return all ids ever given, in the order in which they were."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        return [_entry(json.loads(line)) for line in lines if line]

    def known(self) -> Known:
        """Return what the register says now."""
        return Known(self.entries())

    def add(self, new: Iterable[Registered]) -> None:
        """Append entries; the file is replaced as a whole, so that it is never half-written."""
        entries = [*self.entries(), *new]
        write_text(self.path, "".join(json.dumps(as_json(e), ensure_ascii=False) + "\n" for e in entries))


def root_of(candidate: Candidate) -> str:
    """Return the id of the candidate as it was written, before people corrected it or documents changed under it."""
    return candidate.root_id or candidate.parent_id or candidate.id


MIN_SENTENCE_KEY = 20
"""Fewest characters (white space apart) of a sentence that is a key of its own. A shorter one, "See below.", stands in
many passages and says nothing about what a question is on."""


def evidence_keys(candidate: Candidate) -> tuple[str, ...]:
    """Return the keys of all evidence: document and text, for each whole span and for each sentence in it.

    Offsets are left out, for they move; so is what the match key drops. The documents of alternatives count too.
    """
    keys = set()
    for evidence in candidate.evidence:
        paths = {evidence.document_path, *(place.document_path for place in evidence.alternatives)}
        content = evidence.content
        ends = [0, *sentence_ends(content, 0, len(content)), len(content)]
        parts = [key_of(content[start:end]) for start, end in pairwise(ends)]
        texts = {key_of(content), *(part for part in parts if len(part) >= MIN_SENTENCE_KEY)}
        keys |= {sha256_text(canonical_json([path, text]))[:16] for path in paths for text in texts}
    return tuple(sorted(keys))


def _entry(fields: dict[str, Any]) -> Registered:
    return Registered(**{**fields, "evidence_keys": tuple(fields.get("evidence_keys", ()))})


MAIN_PREFIX, NO_ANSWER_PREFIX = "g-", "n-"
"""How ids of the two sets begin. Each set counts on its own, in one register."""


def next_number(entries: Iterable[Registered], prefix: str = MAIN_PREFIX) -> int:
    """Return the number of the next new id with that prefix."""
    own = (entry.id for entry in entries if entry.id.startswith(prefix))
    return 1 + max((int(id_.removeprefix(prefix)) for id_ in own), default=0)


def golden_id(number: int, prefix: str = MAIN_PREFIX) -> str:
    """Return the id with that number: ``g-0001``, with more digits from 10,000 on."""
    return f"{prefix}{number:04d}"
