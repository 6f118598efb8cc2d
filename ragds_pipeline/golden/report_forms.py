"""The outcomes of ``today`` in the forms that people and CI services read: a table, JUnit XML, SARIF, annotations.

JUnit: one test case a finding of severity error, one a check that passed or only warns (JUnit knows no warnings; they
are its output). SARIF 2.1.0: https://docs.oasis-open.org/sarif/sarif/v2.1.0/. Annotations: workflow commands as in
https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from ragds_pipeline import __version__
from ragds_pipeline.golden.today import CHECKS, ERROR, Finding, Outcome
from ragds_pipeline.records import sha256_text

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped (production Char)."""

_WIDTH = 116


@dataclass(frozen=True, slots=True)
class Places:
    """Names documents as the repository does in which CI runs."""

    kb: str
    """The KB folder, relative to the repository's root (where the command runs), or absolute if it lies elsewhere."""
    otherwise: str
    """The file to point at where a finding is about no document: ``ragds.yaml``."""

    @classmethod
    def of(cls, kb_dir: Path, config_file: Path, root: Path) -> Places:
        """Return names relative to ``root``."""
        return cls(_relative(kb_dir, root), _relative(config_file, root))

    def file(self, finding: Finding) -> str:
        """Return the path of the file that a finding is about."""
        if not finding.document_path:
            return self.otherwise
        return finding.document_path if self.kb == "." else f"{self.kb}/{finding.document_path}"

    def shown(self, finding: Finding) -> str:
        """Return ``file:line``, or an empty text where the finding is about no document."""
        if not finding.document_path:
            return ""
        return f"{self.file(finding)}:{finding.line}" if finding.line else self.file(finding)


def _relative(path: Path, root: Path) -> str:
    real, base = path.resolve(), root.resolve()
    return (real.relative_to(base) if real.is_relative_to(base) else real).as_posix()


def table(outcomes: Sequence[Outcome], places: Places) -> str:
    """Return all outcomes for a terminal, each finding with where it belongs."""
    lines = [f"{'check':<22}{'severity':<10}{'result':<10}what was looked at"]
    for outcome in outcomes:
        result = "ok" if outcome.passed else "FAILED" if outcome.severity == ERROR else "warning"
        lines.append(f"{outcome.name:<22}{outcome.severity:<10}{result:<10}{outcome.note}".rstrip())
        for finding in outcome.findings:
            where = places.shown(finding)
            text = f"{where}: {finding.message}" if where else finding.message
            lines += textwrap.wrap(" ".join(text.split()), _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    failed = [outcome.name for outcome in outcomes if not outcome.passed and outcome.severity == ERROR]
    warned = [outcome.name for outcome in outcomes if not outcome.passed and outcome.severity != ERROR]
    lines += ["", f"{len(outcomes)} checks: {len(failed)} failed, {len(warned)} with warnings"]
    return "\n".join(lines)


def failed(outcomes: Iterable[Outcome]) -> bool:
    """Return whether a check of severity error did not pass."""
    return any(not outcome.passed and outcome.severity == ERROR for outcome in outcomes)


def junit(outcomes: Sequence[Outcome], places: Places) -> str:
    """Return the outcomes as JUnit XML."""
    suite = ElementTree.Element("testsuite", name="ragds checks")
    failures = 0
    for outcome in outcomes:
        if outcome.passed or outcome.severity != ERROR:
            case = _case(suite, outcome.name, outcome)
            told = [_line(places, finding) for finding in outcome.findings]
            if told or outcome.note:
                output = ElementTree.SubElement(case, "system-out")
                output.text = _xml("\n".join([outcome.note, *(f"warning: {line}" for line in told)]).strip())
            continue
        for finding in outcome.findings:
            failures += 1
            name = " ".join(filter(None, [outcome.name, finding.item_id, places.shown(finding)]))
            case = _case(suite, name, outcome)
            case.set("file", _xml(places.file(finding)))
            if finding.line:
                case.set("line", str(finding.line))
            failure = ElementTree.SubElement(case, "failure", message=_xml(finding.message), type=outcome.name)
            failure.text = _xml(_line(places, finding))
    counts = {"tests": str(len(suite)), "failures": str(failures), "errors": "0", "skipped": "0"}
    suite.attrib.update(counts)
    suites = ElementTree.Element("testsuites", {"name": "ragds checks", **counts})
    suites.append(suite)
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, name: str, outcome: Outcome) -> ElementTree.Element:
    classname = f"ragds.checks.{outcome.name}"
    return ElementTree.SubElement(suite, "testcase", name=_xml(name), classname=classname, time="0")


def _line(places: Places, finding: Finding) -> str:
    where = places.shown(finding)
    return f"{where}: {finding.message}" if where else finding.message


def _xml(text: str) -> str:
    """Return ``text`` with what XML cannot hold written out, as ``\\x0b``."""
    return _NOT_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def sarif(outcomes: Sequence[Outcome], places: Places) -> str:
    """Return the findings as a SARIF 2.1.0 log."""
    names = list(CHECKS)
    rules = [
        {
            "id": name,
            "name": "".join(part.capitalize() for part in name.split("_")),
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": severity},
        }
        for name, (severity, text) in CHECKS.items()
    ]
    results = [
        {
            "ruleId": outcome.name,
            "ruleIndex": names.index(outcome.name),
            "level": outcome.severity,
            "message": {"text": _json_text(finding.message)},
            "locations": [{"physicalLocation": _location(places, finding)}],
            "partialFingerprints": {"ragdsFinding/v1": sha256_text(f"{outcome.name}\0{finding.message}")[:32]},
        }
        for outcome in outcomes
        for finding in outcome.findings
    ]
    driver = {"name": "ragds", "version": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return json.dumps(log, ensure_ascii=False, indent=1) + "\n"


def _location(places: Places, finding: Finding) -> dict[str, object]:
    path = places.file(finding)
    absolute = os.path.isabs(path)  # noqa: PTH117
    artifact = {"uri": f"file://{quote(path)}"} if absolute else {"uri": quote(path), "uriBaseId": "%SRCROOT%"}
    region = {"region": {"startLine": finding.line}} if finding.line else {}
    return {"artifactLocation": artifact, **region}


def _json_text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def workflow_commands(outcomes: Sequence[Outcome], places: Places) -> list[str]:
    """Return one workflow command a finding, which GitHub shows beside the line it is about."""
    commands = []
    for outcome in outcomes:
        for finding in outcome.findings:
            where = {"file": places.file(finding), "line": str(finding.line or 1)}
            told = {**where, "title": f"ragds {outcome.name}"}
            properties = ",".join(f"{name}={_property(value)}" for name, value in told.items())
            commands.append(f"::{outcome.severity} {properties}::{_data(finding.message)}")
    return commands


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
