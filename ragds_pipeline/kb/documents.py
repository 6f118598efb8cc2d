"""From a revision's files to the table of documents: read, convert, normalise, tell language and title.

One bad file never stops the rest: it is listed in the issues with a reason. Rows of documents that have not changed
are taken from an earlier table, so that a revision costs what changed. What is confidential is told afresh for every
row, as it depends on other files too: a text that stands in any confidential file is confidential.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath

import pyarrow.compute as pc

from ragds_pipeline.config import KbManifest
from ragds_pipeline.kb.convert import ConversionFailed, NoConverter, converter_version, to_markdown
from ragds_pipeline.kb.language import detect_language
from ragds_pipeline.kb.normalise import (
    NORMALISER_VERSION,
    Undecodable,
    decode,
    front_matter,
    front_matter_end,
    normalise,
)
from ragds_pipeline.kb.patterns import FirstMatch, Patterns
from ragds_pipeline.kb.revision import KbSource, Revision, is_native
from ragds_pipeline.kb.scan import ScannedFile
from ragds_pipeline.kb.structure import parse
from ragds_pipeline.records import Document, KbIssue, canonical_json, sha256_text
from ragds_pipeline.storage.schemas import schema_of, to_table
from ragds_pipeline.storage.tables import TableFile, TableWriter, write_table

DOCUMENT_RULES_VERSION = "2"
"""Raise it with every change to how a title or a language is told, so that rows of earlier tables are not reused."""

REASONS = {
    "binary_or_undecodable": "not text in any encoding that could be told",
    "changed_while_reading": "the file changed between scan and reading",
    "conversion_failed": "the converter could not read it, or it holds no text",
    "duplicate_content": "the same normalised text as an earlier document",
    "empty": "no bytes",
    "excluded": "matches exclude in kb.yaml",
    "name_not_utf8": "the file's name cannot be written as UTF-8",
    "no_converter": "needs the extra 'convert'",
    "not_a_file": "a socket, pipe or device",
    "not_included": "files of other kinds, counted per extension; folders of tools, and the project's data folder",
    "pattern_matches_nothing": "a pattern in kb.yaml that matches no file, perhaps mistyped",
    "symlink_outside_root": "a link that leads out of the KB folder",
    "symlink_to_folder": "links to folders are not followed",
    "too_large": "above kb.max_file_bytes",
    "unknown_language": "its language is none of those in kb.yaml; kept, with the language 'und'",
    "unreadable": "the operating system refused to read it",
    "whitespace_only": "nothing but white space",
}
"""Every reason that ``kb_issues`` can give."""

_MAYBE_TITLE = re.compile(r"^ {0,3}(?:#[ \t]|=++[ \t]*+$)[^\n]*", re.MULTILINE)
"""A line that ends a first-level heading, unless it stands in code, a comment or a list."""


_MAY_PASS = frozenset({"changed_while_reading", "unreadable"})
"""Reasons that may be gone the next time although the file is the same."""


class Unreadable(Exception):
    """A file that cannot become a document; carries the reason code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """What reading a revision came to."""

    documents: int
    reused: int
    characters: int
    changed_by_normalising: int
    issues: int
    skipped: int
    documents_version: str
    """Hash of the documents' rows: the same as long as no row changed, whatever else did."""
    issues_version: str
    """The same of the issues."""


class DocumentReader:
    """Turns the bytes of a file into a document, as ``kb.yaml`` says."""

    def __init__(self, revision: Revision) -> None:
        self._manifest = revision.manifest
        self._version = revision.source_version
        self._encodings = FirstMatch(revision.manifest.encodings)
        self._languages = FirstMatch(revision.manifest.document_languages)
        self._confidential = [Patterns(p) for p in (revision.manifest.confidential, *revision.confidential_elsewhere)]
        named = (file.sha256 for file in revision.scan.files if self._is_named_confidential(file))
        self._confidential_contents = {*revision.scan.withheld, *named}

    def read(self, file: ScannedFile, data: bytes) -> Document:
        """Return the document; raise Unreadable with a reason code if there is none in the file."""
        raw, encoding, converter = self._text(file.path, data)
        text = normalise(raw)
        if not text.strip():
            raise Unreadable("whitespace_only", f"{len(data)} bytes of white space")
        meta = front_matter(text)
        clean = converter == "none" and encoding == "utf-8" and text.encode("utf-8") == data
        return Document(
            path=file.path,
            title=_title(file.path, text, meta),
            language=self._language(file.path, text, meta),
            text=text,
            source_sha256=file.sha256,
            text_sha256=sha256_text(text),
            source_bytes=len(data),
            source_version=self._version,
            encoding=encoding,
            changed_by_normalising=not clean,
            normaliser_version=NORMALISER_VERSION,
            converter=converter,
            front_matter_end=front_matter_end(text),
            confidential=self._is_confidential(file, sha256_text(text)),
        )

    def reread(self, file: ScannedFile, known: Document) -> Document:
        """Return the row of an earlier table as it is in this revision."""
        confidential = self._is_confidential(file, known.text_sha256)
        return replace(known, source_version=self._version, confidential=confidential)

    def _is_confidential(self, file: ScannedFile, text_sha256: str) -> bool:
        contents = {file.sha256, text_sha256}
        return not contents.isdisjoint(self._confidential_contents) or self._is_named_confidential(file)

    def _is_named_confidential(self, file: ScannedFile) -> bool:
        return any(patterns.match(file.path, file.target) for patterns in self._confidential)

    def _text(self, path: str, data: bytes) -> tuple[str, str, str]:
        if not data:
            raise Unreadable("empty", "0 bytes")
        if not is_native(path):
            try:
                return to_markdown(path, data), "converted", converter_version()
            except NoConverter as error:
                raise Unreadable("no_converter", str(error)) from error
            except ConversionFailed as error:
                raise Unreadable("conversion_failed", str(error)) from error
        try:
            decoded = decode(data, self._encodings.get(path))
        except Undecodable as error:
            raise Unreadable("binary_or_undecodable", str(error)) from error
        return decoded.text, decoded.encoding, "none"

    def _language(self, path: str, text: str, meta: dict[str, str]) -> str:
        declared = (meta.get("lang") or meta.get("language") or "")[:2].lower()
        if declared in self._manifest.languages:
            return declared
        return self._languages.get(path) or detect_language(text, self._manifest.languages)


def _title(path: str, text: str, meta: dict[str, str]) -> str:
    if title := meta.get("title", "").strip():
        return title
    start = front_matter_end(text)
    if line := _MAYBE_TITLE.search(text, start):
        # Nearly every title is the first line that looks like one: reading up to there is enough. Only where that line
        # is none (a comment in a shell script) the whole document is read.
        for end in (line.end(), len(text)):
            for section in parse("", text[:end], "", start).sections:  # plain text may have a title in this form too
                if section.level == 1 and section.heading:
                    return section.heading
    return PurePosixPath(path).stem


@cache
def _language_model() -> str:
    return f"py3langid/{metadata.version('py3langid')}"


def fingerprint(manifest: KbManifest) -> str:
    """Return a hash of all that a document's row depends on besides its bytes and what is confidential."""
    said = manifest.model_dump(mode="json", include={"languages", "encodings", "document_languages"})
    parts = [said, NORMALISER_VERSION, DOCUMENT_RULES_VERSION, _language_model(), converter_version()]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:16]


def _table_fingerprint(revision: Revision, base: str, unread: list[list[str]]) -> str:
    """Return what both tables of a revision depend on, ``unread`` files (with reasons) among it.

    A table that lacks what could not be read is thus never taken for one of the same revision that lacks nothing.
    """
    state = revision.scan
    parts = [
        state.listing_sha256(),
        [[file.path, file.target] for file in state.files if file.target],
        [[i.path, i.reason, i.detail, i.skipped] for i in state.issues],
        state.withheld,
        revision.manifest.confidential,
        revision.confidential_elsewhere,
    ]
    whole = f"{base}:{revision.source_version}:{sha256_text(canonical_json(parts))}"
    return f"{whole}:unread:{sha256_text(canonical_json(unread))}" if unread else whole


class _Reusable:
    """Rows of an earlier documents table, met in the order of their paths (both sides are sorted)."""

    def __init__(self, previous: TableFile | None, base: str) -> None:
        usable = previous is not None and previous.fingerprint.startswith(base + ":")
        self._rows: Iterator[Document] = previous.records(Document) if usable and previous else iter(())
        self._next = next(self._rows, None)

    def take(self, file: ScannedFile) -> Document | None:
        while self._next is not None and self._next.path < file.path:
            self._next = next(self._rows, None)
        row = self._next
        return row if row is not None and (row.path, row.source_sha256) == (file.path, file.sha256) else None


def write_documents(
    revision: Revision,
    source: KbSource,
    documents_out: Path,
    issues_out: Path,
    previous: tuple[TableFile, TableFile] | None = None,
) -> DocumentReport:
    """Write the documents table and the issues table of a revision.

    ``previous`` are the two tables of an earlier materialisation, of whatever revision. Memory stays bounded: one
    file and one row group at a time. Tables are sorted by path.
    """
    base = fingerprint(revision.manifest)
    whole = _table_fingerprint(revision, base, [])
    if previous is not None and previous[0].fingerprint == whole and previous[1].path.exists():
        shutil.copyfile(previous[0].path, documents_out)
        shutil.copyfile(previous[1].path, issues_out)
        return _report(TableFile(documents_out), TableFile(issues_out), reused=previous[0].num_rows)
    reader = DocumentReader(revision)
    reusable = _Reusable(previous[0] if previous else None, base)
    issues = list(revision.scan.issues)
    seen: dict[str, tuple[str, bool]] = {}
    found_confidential: set[str] = set()
    unread: list[list[str]] = []
    reused = 0
    with TableWriter(documents_out, Document, whole) as writer:
        for file in revision.scan.files:
            known = reusable.take(file)
            try:
                document = reader.reread(file, known) if known else reader.read(file, _bytes(source, file))
                reused += known is not None
                if first := seen.get(document.text_sha256):
                    if document.confidential and not first[1]:
                        found_confidential.add(first[0])
                    raise Unreadable("duplicate_content", f"same text as {first[0]}")
            except Unreadable as error:
                issues.append(KbIssue(file.path, error.reason, error.detail, skipped=True))
                if error.reason in _MAY_PASS:
                    unread.append([file.path, error.reason])
                continue
            seen[document.text_sha256] = (file.path, document.confidential)
            if document.language == "und":
                detail = f"none of {', '.join(revision.manifest.languages)}; set lang in its front matter"
                issues.append(KbIssue(file.path, "unknown_language", detail, skipped=False))
            writer.add(document, len(document.text) * 2)
    if found_confidential or unread:
        _write_again(documents_out, _table_fingerprint(revision, base, unread), found_confidential)
    issues.sort(key=lambda issue: (issue.path, issue.reason))
    write_table(to_table(KbIssue, issues), issues_out)
    return _report(TableFile(documents_out), TableFile(issues_out), reused)


def _write_again(table: Path, fingerprint: str, confidential: set[str]) -> None:
    """Rewrite a documents table: another fingerprint, and documents that a later file showed to be confidential."""
    again = table.with_name(f"{table.name}.again")
    with TableWriter(again, Document, fingerprint) as writer:
        for document in TableFile(table).records(Document):
            known = document.confidential or document.path in confidential
            writer.add(replace(document, confidential=known), len(document.text) * 2)
    again.replace(table)


def _bytes(source: KbSource, file: ScannedFile) -> bytes:
    try:
        return source.read(file)
    except OSError as error:
        reason = "changed_while_reading" if error.errno == 0 else "unreadable"
        raise Unreadable(reason, error.strerror or str(error)) from error


def _report(documents: TableFile, issues: TableFile, reused: int) -> DocumentReport:
    count = characters = changed = 0
    for batch in documents.batches(["text", "changed_by_normalising"]):
        count += batch.num_rows
        characters += pc.sum(pc.utf8_length(batch.column("text"))).as_py() or 0
        changed += pc.sum(batch.column("changed_by_normalising")).as_py() or 0
    skipped = pc.sum(issues.read(["skipped"]).column("skipped")).as_py() or 0
    # The text is told by its hash, and the source version is the partition's own name.
    told = [name for name in schema_of(Document).names if name not in ("text", "source_version")]
    return DocumentReport(
        documents=count,
        reused=reused,
        characters=characters,
        changed_by_normalising=changed,
        issues=issues.num_rows,
        skipped=skipped,
        documents_version=_rows_sha256(documents, told),
        issues_version=_rows_sha256(issues, schema_of(KbIssue).names),
    )


def _rows_sha256(table: TableFile, columns: list[str]) -> str:
    digest = hashlib.sha256()
    for batch in table.batches(columns):
        for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
            digest.update(f"{canonical_json(row)}\n".encode())
    return digest.hexdigest()


def texts(documents: TableFile, paths: set[str]) -> dict[str, str]:
    """Return the normalised text of the documents at ``paths``."""
    table = documents.where("path", paths, ["path", "text"])
    return dict(zip(table.column("path").to_pylist(), table.column("text").to_pylist(), strict=True))
