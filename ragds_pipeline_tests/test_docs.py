"""Docs are code: what they name exists, and the generated reference is the one in the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from ragds_pipeline.cli import _parser
from ragds_pipeline.config_reference import reference
from ragds_pipeline_tests.projects import REPOSITORY

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")), REPOSITORY / "benchmarks/README.md"]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_configuration_reference_is_up_to_date() -> None:
    assert read(REPOSITORY / "docs/configuration.md") == reference(), "run: make docs"


def test_every_dependency_has_a_reason_in_the_readme() -> None:
    project = tomllib.loads(read(REPOSITORY / "pyproject.toml"))["project"]
    table = read(REPOSITORY / "README.md").split("## Every dependency has a reason")[1]
    for requirement in project["dependencies"]:
        name = re.split(r"[<>=\[]", requirement)[0]
        assert re.search(rf"^\|[^|]*\b{re.escape(name)}\b", table, re.MULTILINE), f"{name} is not explained"


def test_constraints_hold_names_and_versions_only() -> None:
    project = tomllib.loads(read(REPOSITORY / "pyproject.toml"))["project"]
    lines = [line for line in read(REPOSITORY / "constraints.txt").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line) for line in lines)
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    for requirement in wanted:
        assert re.split(r"[<>=\[]", requirement)[0].lower() in pinned, f"{requirement} is not pinned"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(page)):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_commands_in_the_docs_exist() -> None:
    choices: set[str] = set()
    for action in _parser()._actions:
        choices |= set(action.choices or ())
    for page in PAGES:
        for line in re.findall(r"`(?:\.venv/bin/)?ragds ([^`]+)`", read(page)):
            for command in re.findall(r"^\w+|(?<=\| )\w+", line):
                assert command in choices, f"{page.name} names ragds {command}"


def test_make_targets_in_the_readme_exist() -> None:
    makefile = read(REPOSITORY / "Makefile")
    for target in re.findall(r"make (\w+)", read(REPOSITORY / "README.md")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"


def test_the_example_workflow_is_yaml_and_its_command_is_one_of_ours() -> None:
    text = read(REPOSITORY / "examples/ci/github-workflow.yml")
    (job,) = yaml.safe_load(text)["jobs"].values()
    (command,) = [step["run"] for step in job["steps"] if step.get("run", "").startswith("ragds ")]
    arguments = _parser().parse_args(command.split()[1:])
    assert arguments.junit.suffix == ".xml" and arguments.sarif.suffix == ".sarif"
    assert "://" not in text, "which registry packages come from is the reader's affair"
    installs = [line.split("pip install", 1)[1].split() for line in text.splitlines() if "pip install" in line]
    assert installs and all(word == "-r" or not word.startswith("-") for words in installs for word in words)
