"""The KB overview: what each document holds and how it is built, for people and for the multi-hop agent.

Confidential documents are named there with their size only: the overview is sent to a model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from ragds_pipeline.records import Document, Section

MAX_HEADINGS = 40
"""Headings listed of one document."""

_OPENING_CHARS = 200
_NUMBERED = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?\s|第[\d０-９一二三四五六七八九十百]+[条章節]|Art\.\s*\d+)")
_MARKUP = re.compile(r"^(?:[#>*\-+|\s]|\d+[.)]\s)+|[*_`]|\[([^\]]*)\]\([^)]*\)|<[^>]*>")


def overview(name: str, source_version: str, documents: Iterable[tuple[Document, list[Section]]]) -> str:
    """Return the overview of a revision as Markdown, documents in the order of their paths."""
    parts: list[str] = []
    languages: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    total = count = 0
    for document, sections in documents:
        count += 1
        total += len(document.text)
        languages[document.language] += 1
        folders[str(PurePosixPath(document.path).parent)] += 1
        parts.append(_document(document, sections))
    head = [
        f"# {name}, {source_version}",
        "",
        f"{count} documents, {total:,} characters. Languages: "
        + ", ".join(f"{language} ({n})" for language, n in sorted(languages.items()))
        + ".",
        "",
        "Folders: " + ", ".join(f"`{folder}/` ({n})" for folder, n in sorted(folders.items())) + ".",
        "Passages are named `<path without extension>#<number>`, counted from 1 in each document; offsets are "
        "characters of the normalised text.",
    ]
    return "\n".join([*head, "", *parts])


def _document(document: Document, sections: list[Section]) -> str:
    lines = [f"## `{document.path}`", ""]
    facts = f"{document.title} · {document.language} · {len(document.text):,} characters"
    if document.confidential:
        return "\n".join([*lines, f"{len(document.text):,} characters, confidential: not described here.", ""])
    headings = [s for s in sections if s.level]
    lines.append(facts + f" · {len(headings)} headings" + _conventions(document, headings))
    if opening := _opening(document, headings):
        lines += ["", f"> {opening}"]
    lines.append("")
    lines += [f"{'  ' * (s.level - 1)}- {s.heading}" for s in headings[:MAX_HEADINGS]]
    if len(headings) > MAX_HEADINGS:
        lines.append(f"- … and {len(headings) - MAX_HEADINGS} more")
    return "\n".join([*lines, ""])


def _conventions(document: Document, headings: list[Section]) -> str:
    notes = []
    if document.front_matter_end:
        notes.append("front matter")
    if headings and sum(bool(_NUMBERED.match(s.heading)) for s in headings) * 2 > len(headings):
        notes.append("numbered sections")
    if "\n|" in document.text:
        notes.append("tables")
    if "\n```" in document.text:
        notes.append("code")
    return " · " + ", ".join(notes) if notes else ""


def _opening(document: Document, headings: list[Section]) -> str:
    """Return the first words of running text."""
    starts = {document.text.count("\n", 0, s.start_char) for s in headings}
    first_line = document.text.count("\n", 0, document.front_matter_end)
    for number, line in enumerate(document.text.split("\n")):
        if number < first_line or number in starts or line.startswith(("<!--", "```", "===", "---")):
            continue
        plain = " ".join(_MARKUP.sub(lambda m: m.group(1) or "", line).split())
        if len(plain) >= 20:
            return plain if len(plain) <= _OPENING_CHARS else plain[: _OPENING_CHARS - 1] + "…"
    return ""
