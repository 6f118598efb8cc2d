"""Reports for CI services: well-formed whatever a document holds, with counts that add up and places that are right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.golden.report_forms import Places, failed, junit, sarif, table, workflow_commands
from ragds_pipeline.golden.today import CHECKS, ERROR, WARNING, Finding, Outcome

PLACES = Places("docs/kb", "ragds.yaml")

TEXTS = st.text(st.characters(codec=None), max_size=40)
FINDINGS = st.builds(
    Finding,
    message=TEXTS,
    item_id=st.sampled_from(["", "g-0001"]),
    document_path=st.sampled_from(["", "a.md", "dir name/ü#%.md", "経費,規程:x.md"]),
    line=st.integers(0, 10**6),
)
OUTCOMES = st.lists(
    st.builds(
        lambda name, findings, note: Outcome(name, CHECKS[name][0], tuple(findings), note),
        st.sampled_from(list(CHECKS)), st.lists(FINDINGS, max_size=3), TEXTS,
    ),
    max_size=6,
)  # fmt: skip

SARIF_RULES = {
    # Those rules of the SARIF 2.1.0 schema that this log touches, and what GitHub's code scanning asks beyond them.
    "type": "object", "required": ["version", "runs", "$schema"], "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"}, "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["tool", "results"], "additionalProperties": False,
            "properties": {
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
                    "type": "object", "required": ["name", "rules"],
                    "properties": {"name": {"type": "string", "minLength": 1}, "rules": {
                        "type": "array", "uniqueItems": True, "items": {
                            "type": "object", "required": ["id", "shortDescription"],
                            "properties": {"defaultConfiguration": {"properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]}}}}}}}}}},
                "results": {"type": "array", "items": {
                    "type": "object", "required": ["message", "ruleId", "level", "locations", "partialFingerprints"],
                    "properties": {
                        "ruleIndex": {"type": "integer", "minimum": 0},
                        "level": {"enum": ["none", "note", "warning", "error"]},
                        "message": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
                        "locations": {"type": "array", "minItems": 1, "items": {
                            "type": "object", "required": ["physicalLocation"],
                            "properties": {"physicalLocation": {
                                "type": "object", "required": ["artifactLocation"], "additionalProperties": False,
                                "properties": {
                                    "artifactLocation": {"required": ["uri"], "properties": {
                                        "uri": {"type": "string", "pattern": r"^[A-Za-z0-9._~%/:-]+$"}}},
                                    "region": {"required": ["startLine"], "properties": {
                                        "startLine": {"type": "integer", "minimum": 1}}},
                                }}}}},
                        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                    }}},
            }}},
    },
}  # fmt: skip


@given(OUTCOMES)
def test_junit_is_well_formed_and_its_counts_add_up(outcomes: list[Outcome]) -> None:
    root = ElementTree.fromstring(junit(outcomes, PLACES).encode("utf-8"))
    cases = root.findall("./testsuite/testcase")
    errors = [f for o in outcomes if o.severity == ERROR for f in o.findings]
    others = [o for o in outcomes if o.passed or o.severity == WARNING]
    for element in (root, root[0]):
        assert element.get("tests") == str(len(cases)) == str(len(errors) + len(others))
        assert element.get("failures") == str(len(root.findall(".//failure"))) == str(len(errors))
    assert all(case.get("name") and case.get("classname") for case in cases)


def test_junit_writes_out_what_xml_cannot_hold() -> None:
    odd = "a\x00b\x0bc\ud800d\ufffee<&>\"'\U0001f3d6"
    text = junit([Outcome("kb_readable", ERROR, (Finding(odd, "", "x.md", 7),), "")], PLACES)
    failure = ElementTree.fromstring(text.encode("utf-8")).find(".//failure")
    assert failure is not None and failure.get("message") == "a\\x00b\\x0bc\\xd800d\\xfffee<&>\"'\U0001f3d6"
    case = ElementTree.fromstring(text.encode("utf-8")).find(".//testcase")
    assert case is not None and (case.get("file"), case.get("line")) == ("docs/kb/x.md", "7")


@given(OUTCOMES)
def test_sarif_keeps_its_rules_and_points_at_the_documents(outcomes: list[Outcome]) -> None:
    text = sarif(outcomes, PLACES)
    log = json.loads(text.encode("utf-8"))
    jsonschema.validate(log, SARIF_RULES)
    (run,) = log["runs"]
    findings = [(o, f) for o in outcomes for f in o.findings]
    assert len(run["results"]) == len(findings)
    for result, (outcome, finding) in zip(run["results"], findings, strict=True):
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == outcome.name
        place = result["locations"][0]["physicalLocation"]
        assert unquote(place["artifactLocation"]["uri"]) == PLACES.file(finding)
        assert place.get("region", {}).get("startLine", 0) == finding.line


_COMMAND = re.compile(r"::(error|warning) file=([^,:]*),line=(\d+),title=([^,:]*)::([^\r\n]*)")


@given(OUTCOMES)
def test_annotations_are_one_line_each_and_say_the_same(outcomes: list[Outcome]) -> None:
    commands = workflow_commands(outcomes, PLACES)
    findings = [(o, f) for o in outcomes for f in o.findings]
    for command, (outcome, finding) in zip(commands, findings, strict=True):
        match = _COMMAND.fullmatch(command)
        assert match is not None and match[1] == outcome.severity
        told = match[5].replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
        assert told == finding.message
        file = match[2].replace("%2C", ",").replace("%3A", ":").replace("%25", "%")
        assert file == PLACES.file(finding)


def test_only_an_error_fails(tmp_path: Path) -> None:
    warned = Outcome("kb_issues", WARNING, (Finding("x"),), "")
    broken = Outcome("kb_readable", ERROR, (Finding("y", document_path="a.md", line=3),), "")
    assert not failed([warned]) and failed([warned, broken])
    shown = table([warned, broken], PLACES)
    assert "docs/kb/a.md:3: y" in shown and "2 checks: 1 failed, 1 with warnings" in shown


@pytest.mark.parametrize(
    ("kb", "root", "file"),
    [("kb", ".", "kb/a.md"), (".", ".", "a.md"), ("kb", "elsewhere", None)],
)
def test_documents_are_named_from_where_the_command_runs(tmp_path: Path, kb: str, root: str, file: str | None) -> None:
    (tmp_path / "elsewhere").mkdir()
    places = Places.of(tmp_path / kb, tmp_path / "ragds.yaml", tmp_path / root)
    named = places.file(Finding("x", document_path="a.md", line=1))
    assert named == (file or (tmp_path / "kb/a.md").as_posix())
