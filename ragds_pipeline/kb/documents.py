"""From a revision's files to the table of documents: read, convert, normalise, tell language and title.

One bad file never stops the rest: it is listed in the issues with a reason. Rows of documents that have not changed
are taken from an earlier table, so that a revision costs what changed.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pathspec
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
from ragds_pipeline.kb.revision import KbSource, Revision, is_native
from ragds_pipeline.kb.scan import ScannedFile
from ragds_pipeline.records import Document, KbIssue, canonical_json, sha256_text
from ragds_pipeline.storage.schemas import to_table
from ragds_pipeline.storage.tables import TableFile, TableWriter, write_table

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
    "not_included": "files of other kinds, counted per extension",
    "symlink_outside_root": "a link that leads out of the KB folder",
    "symlink_to_folder": "links to folders are not followed",
    "too_large": "above kb.max_file_bytes",
    "unknown_language": "its language is none of those in kb.yaml; kept, with the language 'und'",
    "unreadable": "the operating system refused to read it",
    "whitespace_only": "nothing but white space",
}
"""Every reason that ``kb_issues`` can give."""

_FIRST_HEADING = re.compile(r"^(?:#[ \t]+(.+?)[ \t]*#*|(\S.*)\n=+[ \t]*)$", re.MULTILINE)


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


class _Patterns:
    """First match among the patterns of a mapping."""

    def __init__(self, values: dict[str, str]) -> None:
        self._specs = [(pathspec.GitIgnoreSpec.from_lines([p]), value) for p, value in values.items()]

    def get(self, path: str) -> str | None:
        return next((value for spec, value in self._specs if spec.match_file(path)), None)


class DocumentReader:
    """Turns the bytes of a file into a document, as ``kb.yaml`` says."""

    def __init__(self, manifest: KbManifest, source_version: str) -> None:
        self._manifest = manifest
        self._version = source_version
        self._confidential = pathspec.GitIgnoreSpec.from_lines(manifest.confidential)
        self._encodings = _Patterns(manifest.encodings)
        self._languages = _Patterns(manifest.document_languages)

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
            confidential=self._confidential.match_file(file.path),
        )

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
    if match := _FIRST_HEADING.search(text, front_matter_end(text)):
        return (match.group(1) or match.group(2)).strip()
    return PurePosixPath(path).stem


def fingerprint(manifest: KbManifest) -> str:
    """Return a hash of all that a document's row depends on besides its bytes."""
    said = manifest.model_dump(mode="json", exclude={"source_version", "name", "include", "exclude"})
    parts = [said, NORMALISER_VERSION, converter_version()]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:16]


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
    whole = f"{base}:{revision.source_version}:{revision.scan.listing_sha256()}"
    skipped_by_scan = sha256_text(canonical_json([[i.path, i.reason, i.detail] for i in revision.scan.issues]))
    whole = f"{whole}:{skipped_by_scan[:16]}"
    if previous is not None and previous[0].fingerprint == whole and previous[1].path.exists():
        shutil.copyfile(previous[0].path, documents_out)
        shutil.copyfile(previous[1].path, issues_out)
        return _report(TableFile(documents_out), TableFile(issues_out), reused=previous[0].num_rows)
    reader = DocumentReader(revision.manifest, revision.source_version)
    reusable = _Reusable(previous[0] if previous else None, base)
    issues = list(revision.scan.issues)
    seen: dict[str, str] = {}
    reused = 0
    with TableWriter(documents_out, Document, whole) as writer:
        for file in revision.scan.files:
            known = reusable.take(file)
            try:
                document = replace(known, source_version=revision.source_version) if known else None
                reused += document is not None
                document = document or reader.read(file, _bytes(source, file))
                if first := seen.get(document.text_sha256):
                    raise Unreadable("duplicate_content", f"same text as {first}")
            except Unreadable as error:
                issues.append(KbIssue(file.path, error.reason, error.detail, skipped=True))
                continue
            seen[document.text_sha256] = file.path
            if document.language == "und":
                detail = f"none of {', '.join(revision.manifest.languages)}; set lang in its front matter"
                issues.append(KbIssue(file.path, "unknown_language", detail, skipped=False))
            writer.add(document, len(document.text) * 2)
    issues.sort(key=lambda issue: (issue.path, issue.reason))
    write_table(to_table(KbIssue, issues), issues_out)
    return _report(TableFile(documents_out), TableFile(issues_out), reused)


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
    return DocumentReport(count, reused, characters, changed, issues.num_rows, skipped)


def texts(documents: TableFile, paths: set[str]) -> dict[str, str]:
    """Return the normalised text of the documents at ``paths``."""
    table = documents.where("path", paths, ["path", "text"])
    return dict(zip(table.column("path").to_pylist(), table.column("text").to_pylist(), strict=True))
