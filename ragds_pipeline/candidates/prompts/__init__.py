"""Prompts as versioned files. A prompt's version is its name with a hash of its text, so none changes unnoticed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from string import Template


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: a template with ``$name`` places."""

    name: str
    version: str
    """``name@`` and 8 hex digits of the file's SHA-256."""
    template: str

    def fill(self, **values: str) -> str:
        """Return the text with every place filled; raise KeyError for a place without a value."""
        return Template(self.template).substitute(values).strip()


def load_prompt(name: str, package: str = __name__) -> Prompt:
    """Return the prompt ``<name>.md`` of ``package``, by default of this one."""
    text = (files(package) / f"{name}.md").read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Prompt(name, f"{name}@{digest}", text)


def code_version(number: str, *prompts: Prompt) -> str:
    """Return the code version of an asset that asks Claude: a number for its code, and a hash of the prompts it uses.

    So a changed prompt shows in the Dagster UI as a changed code version, and what it made as stale.
    """
    digest = hashlib.sha256(" ".join(prompt.version for prompt in prompts).encode()).hexdigest()[:8]
    return f"{number}+{digest}"
