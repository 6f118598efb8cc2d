"""Does the golden set that was frozen last still hold on the documents as they are now? No model is asked.

What belongs here: the checks that CI runs on a pull request to the documents, each with what it found and where. What
does not: what must hold before anything is frozen (``verify``), and the forms of a report (``report_forms``).
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragds_pipeline.anchors.revision import Revision as Documents
from ragds_pipeline.config import ConfigError, Settings
from ragds_pipeline.golden import verify
from ragds_pipeline.golden.baseline import text_hashes
from ragds_pipeline.golden.evidence_check import EvidenceFault, evidence_report
from ragds_pipeline.golden.latest import latest_snapshot
from ragds_pipeline.golden.registry import Registry
from ragds_pipeline.golden.revalidate import section_ranges
from ragds_pipeline.golden.snapshot import SnapshotDamaged, read_items, snapshots
from ragds_pipeline.golden.snapshot import verify as verify_files
from ragds_pipeline.kb.documents import texts, write_documents
from ragds_pipeline.kb.revision import FolderSource, Revision, is_native
from ragds_pipeline.kb.scan import KbMissing
from ragds_pipeline.records import GoldenItem, KbIssue, sha256_text
from ragds_pipeline.storage.files import inside
from ragds_pipeline.storage.tables import TableFile

ERROR, WARNING = "error", "warning"

CHECKS = {
    "snapshot_intact": (ERROR, "Every file of every snapshot is as it was frozen."),
    "kb_readable": (ERROR, "The KB folder is there, kb.yaml is right, and there are documents in it."),
    "evidence_exists": (ERROR, "Every required span of evidence still stands, and was not edited or struck out."),
    "spans_resolve": (ERROR, "Every span holds its text at its exact place in the texts of the snapshot."),
    "ids_stable": (ERROR, "Ids are unique, and in the register with the side of the split that they have."),
    "split_leak_free": (ERROR, "No evidence and no near-equal question stands on both sides of the split."),
    "nothing_confidential": (ERROR, "No item rests on, or names a place in, a document that is confidential now."),
    "evidence_in_place": (WARNING, "All evidence can be followed to its place without a person."),
    "stale_share": (WARNING, "No more than checks.stale_share of the items need a re-validation."),
    "kb_issues": (WARNING, "No file of the KB was skipped that could have been a document."),
    "plan_met": (WARNING, "The snapshot holds as many questions as were planned."),
}
"""Every check with its severity and what holds where it passes. An error ends ``ragds checks`` with 1."""

_EXPECTED = frozenset({"excluded", "not_included", "duplicate_content", "pattern_matches_nothing"})
"""Issues that are as somebody wanted them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and where to look."""

    message: str
    item_id: str = ""
    document_path: str = ""
    """Document it is about, relative to the KB folder; empty where it is about none."""
    line: int = 0
    """Line of that document as it is now, from 1; 0 where none can be named."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one check ended."""

    name: str
    severity: str
    findings: tuple[Finding, ...]
    note: str
    """What was looked at, or why nothing was."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class _Kb:
    """The documents as they are now."""

    texts: Mapping[str, str]
    confidential: frozenset[str]
    issues: Sequence[KbIssue]
    source_version: str


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The golden set as it was frozen."""

    path: Path
    items: Sequence[GoldenItem]
    texts: Mapping[str, str]
    manifest: Mapping[str, Any]


@dataclass(slots=True)
class _Checks:
    """Gathers outcomes; what cannot be checked is never passed."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def add(self, name: str, found: Iterable[str | Finding], note: str) -> None:
        findings = tuple(Finding(each, _id_in(each)) if isinstance(each, str) else each for each in found)
        self.outcomes[name] = Outcome(name, CHECKS[name][0], findings, note)

    def give_up(self, because: str) -> list[Outcome]:
        for name in CHECKS:
            if name not in self.outcomes:
                self.add(name, [f"not checked: {because}"], "")
        return [self.outcomes[name] for name in CHECKS]


def examine(settings: Settings, folder_revision: Callable[[], Revision], snapshot: Path | None = None) -> list[Outcome]:
    """Run all checks and return how each ended, in the order of :data:`CHECKS`.

    Args:
        settings: The project.
        folder_revision: Returns the revision that the KB folder holds now.
        snapshot: The snapshot to check; by default the one that was frozen last.
    """
    checks = _Checks()
    kb = _read_kb(settings, folder_revision, checks)
    frozen = _read_snapshot(settings, snapshot, checks)
    if frozen is not None:
        _check_snapshot(settings, frozen, checks)
    if kb is not None:
        shown = [issue for issue in kb.issues if issue.skipped and issue.reason not in _EXPECTED]
        found = [Finding(f"{i.path}: {i.reason}: {i.detail}", document_path=i.path) for i in shown]
        checks.add("kb_issues", found, f"{len(kb.texts)} documents, revision {kb.source_version}")
    if kb is not None and frozen is not None:
        _check_evidence(settings, frozen, kb, checks)
    return checks.give_up("the KB folder cannot be read" if kb is None else "no snapshot can be read")


def _read_kb(settings: Settings, folder_revision: Callable[[], Revision], checks: _Checks) -> _Kb | None:
    try:
        revision = folder_revision()
    except (KbMissing, ConfigError, OSError) as error:
        checks.add("kb_readable", [str(error)], "")
        return None
    with tempfile.TemporaryDirectory(prefix="ragds-checks-") as folder:
        documents, issues = TableFile(Path(folder) / "documents"), TableFile(Path(folder) / "issues")
        write_documents(revision, FolderSource(settings.kb_dir), documents.path, issues.path)
        rows = documents.read(["path", "text", "confidential"]).to_pylist()
        found = list(issues.records(KbIssue))
    if not rows:
        checks.add("kb_readable", [f"{settings.kb_dir}: none of its files could be read; see kb_issues"], "")
        return None
    checks.add("kb_readable", [], f"{len(rows)} documents in {settings.kb_dir}")
    secret = frozenset(row["path"] for row in rows if row["confidential"])
    return _Kb({row["path"]: row["text"] for row in rows}, secret, found, revision.source_version)


def _read_snapshot(settings: Settings, snapshot: Path | None, checks: _Checks) -> _Snapshot | None:
    root = settings.data_dir / "golden"
    chosen = snapshot or latest_snapshot(root)
    if chosen is None:
        checks.add("snapshot_intact", [f"no snapshot below {root}: freeze one, or name one (--snapshot)"], "")
        return None
    others = [] if snapshot else [path for folder in sorted(root.glob("*/")) for path in snapshots(folder)]
    damaged = {}
    for path in dict.fromkeys([chosen, *others]):
        try:
            verify_files(path)
        except SnapshotDamaged as error:
            damaged[path] = str(error)
    checks.add("snapshot_intact", damaged.values(), f"{max(1, len(others))} snapshot(s); the others look at {chosen}")
    if chosen in damaged:
        return None
    try:
        manifest = json.loads((chosen / "manifest.json").read_text(encoding="utf-8"))
        files = {each["document_path"]: inside(chosen, each["file"]) for each in manifest["documents"]}
        held = {path: file.read_bytes().decode("utf-8") for path, file in files.items()}
        return _Snapshot(chosen, read_items(chosen), held, manifest)
    except (OSError, ValueError, KeyError, TypeError) as error:
        checks.add("snapshot_intact", [f"{chosen}: cannot be read ({error})"], "")
        return None


def _check_snapshot(settings: Settings, frozen: _Snapshot, checks: _Checks) -> None:
    items = frozen.items
    checks.add("spans_resolve", verify.spans_resolve(items, frozen.texts), f"{len(items)} items")
    known = Registry(settings.data_dir / "golden" / "registry.jsonl").known()
    found, note = verify.ids_stable(items, [], known), f"{len(known.entries)} entries in the register"
    if known.entries:
        given = {entry.id for entry in known.entries}
        found += [f"{item.id}: is not in the register of ids" for item in items if item.id not in given]
    else:
        note = "there is no register here, so only that no id is given twice"
    checks.add("ids_stable", found, note)
    sides = dict(Counter(item.split for item in items))
    leaks = verify.split_leak_free(items, settings.filters.duplicate_score)
    checks.add("split_leak_free", leaks, ", ".join(f"{side} {count}" for side, count in sorted(sides.items())))
    missing = [row for row in frozen.manifest.get("missing", []) if row["missing"]]
    found = [f"{r['document_path']}, {r['type']}: {r['missing']} question(s) missing ({r['reasons']})" for r in missing]
    checks.add("plan_met", found, f"{frozen.manifest['counts']['items']} items")


def _check_evidence(settings: Settings, frozen: _Snapshot, kb: _Kb, checks: _Checks) -> None:
    items, spans = frozen.items, sum(len(item.passages) for item in frozen.items)
    open_texts = {path: text for path, text in kb.texts.items() if path not in kb.confidential}
    now = {path: sha256_text(text) for path, text in open_texts.items()}
    new = Documents(kb.source_version, now, open_texts.__getitem__, section_ranges)
    faults = evidence_report(items, _as_frozen(settings, frozen, now), new, kb.confidential)
    stale = {fault.item_id for fault in faults}
    note = f"{spans} spans of {len(items)} items in {kb.source_version}"
    checks.add("evidence_exists", (_finding(fault) for fault in faults if fault.breaks), note)
    checks.add("evidence_in_place", (_finding(fault) for fault in faults if not fault.breaks), note)
    limit = settings.checks.stale_share
    share = len(stale) / len(items) if items else 0.0
    said = f"{len(stale)} of {len(items)} items ({share:.0%}) need a re-validation"
    checks.add("stale_share", [f"{said}; checks.stale_share is {limit:.0%}"] if share > limit else [], said)
    secret = verify.nothing_confidential(items, kb.confidential)
    checks.add("nothing_confidential", secret, f"{len(kb.confidential)} confidential documents")


def _as_frozen(settings: Settings, frozen: _Snapshot, now: Mapping[str, str]) -> Documents:
    """Return the documents as they were: all of them where their table is still there, as for a re-validation.

    Else those that the snapshot ships, and every other document counts as new.
    """
    version = str(frozen.manifest["source_version"])
    shipped = {path: sha256_text(text) for path, text in frozen.texts.items()}
    table = TableFile(settings.data_dir / "tables" / "kb_documents" / f"{version}.parquet")
    if table.path.exists():
        known = text_hashes(table)
        if shipped.items() <= known.items():
            wanted = {path for path, sha in known.items() if now.get(path) != sha} - shipped.keys()
            there = {**frozen.texts, **texts(table, wanted)}
            return Documents(version, known, there.__getitem__, section_ranges)
    return Documents(version, shipped, frozen.texts.__getitem__, section_ranges)


def _finding(fault: EvidenceFault) -> Finding:
    path = fault.new_path or fault.document_path
    return Finding(fault.message, fault.item_id, path, fault.new_line if is_native(path) else 0)


def _id_in(message: str) -> str:
    first = message.split(" ", 1)[0].rstrip(":")
    return first if first.startswith("g-") and first[2:].isdigit() else ""
