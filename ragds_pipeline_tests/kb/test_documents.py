"""Loading a KB: odd files are listed with a reason and stop nothing; what has not changed is taken over."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragds_pipeline.config import ConfigError, KbManifest, PassageSettings
from ragds_pipeline.kb.convert import ConversionFailed, converter_version, to_markdown
from ragds_pipeline.kb.cut import cut_documents
from ragds_pipeline.kb.documents import REASONS, DocumentReport, _title, write_documents
from ragds_pipeline.kb.revision import (
    Archive,
    FolderSource,
    UnknownRevision,
    UnrepeatableRevision,
    current_revision,
    find_revision,
)
from ragds_pipeline.kb.scan import KbMissing, scan
from ragds_pipeline.records import Document, KbIssue, Passage
from ragds_pipeline.storage.tables import TableFile


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    root = tmp_path / "kb"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_text("# Alpha\n\nSome English text about the rules of the house.\n", encoding="utf-8")
    (root / "sub" / "b.txt").write_text("Plain text about other rules of the house.\n", encoding="utf-8")
    (root / "kb.yaml").write_text("languages: [en, ja, it]\nexclude: ['drafts/**']\n", encoding="utf-8")
    return root


def read(kb: Path, out: Path, previous: bool = False) -> tuple[DocumentReport, dict[str, Document], dict[str, str]]:
    out.mkdir(exist_ok=True)
    revision = current_revision(kb, Archive(out / "archive"), 10_000, converter_version())
    earlier = (TableFile(out / "d.parquet"), TableFile(out / "i.parquet")) if previous else None
    report = write_documents(revision, FolderSource(kb), out / "d2.parquet", out / "i2.parquet", earlier)
    (out / "d2.parquet").replace(out / "d.parquet")
    (out / "i2.parquet").replace(out / "i.parquet")
    documents = {d.path: d for d in TableFile(out / "d.parquet").records(Document)}
    issues = {i.path: i.reason for i in TableFile(out / "i.parquet").records(KbIssue)}
    assert set(issues.values()) <= REASONS.keys()
    return report, documents, issues


def test_odd_files_are_listed_and_stop_nothing(kb: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.md"
    outside.write_text("secret", encoding="utf-8")
    (kb / "link.md").symlink_to(outside)
    (kb / "loop").symlink_to(kb)
    (kb / "gone.md").symlink_to(kb / "nowhere.md")
    (kb / "inside.md").symlink_to(kb / "a.md")
    (kb / "binary.md").write_bytes(b"\x00\x01\x02" * 50)
    (kb / "empty.md").write_bytes(b"")
    (kb / "blank.md").write_text(" \n\t\u3000\n", encoding="utf-8")
    (kb / "copy.md").write_bytes((kb / "a.md").read_bytes().replace(b"\n", b"\r\n"))
    (kb / "large.md").write_text("x" * 20_000, encoding="utf-8")
    (kb / "drafts").mkdir()
    (kb / "drafts" / "d.md").write_text("draft", encoding="utf-8")
    (kb / "photo.png").write_bytes(b"png")
    (kb / "slides.pdf").write_bytes(b"not a pdf")
    with socket.socket(socket.AF_UNIX) as pipe:
        os.chdir(kb)
        pipe.bind("pipe.md")
    Path(os.fsdecode(os.fsencode(str(kb)) + b"/caf\xe9.md")).write_text("latin name", encoding="utf-8")
    report, documents, issues = read(kb, tmp_path / "out")
    assert sorted(documents) == ["a.md", "sub/b.txt"]
    assert issues.pop("slides.pdf") in ("no_converter", "conversion_failed")
    assert issues.pop("caf\\udce9.md") == "name_not_utf8"
    assert issues == {
        "link.md": "symlink_outside_root",
        "loop": "symlink_to_folder",
        "gone.md": "unreadable",
        "inside.md": "duplicate_content",
        "binary.md": "binary_or_undecodable",
        "empty.md": "empty",
        "blank.md": "whitespace_only",
        "copy.md": "duplicate_content",
        "large.md": "too_large",
        "drafts/d.md": "excluded",
        "*.png": "not_included",
        "pipe.md": "not_a_file",
    }
    assert report.skipped == len(issues) + 2


def test_an_unreadable_file_is_listed(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Tests may run as root, who can read everything; so the refusal is made at the one place that opens files.
    real = FolderSource.read

    def refuse(self: FolderSource, file: object) -> bytes:
        if getattr(file, "path", "") == "a.md":
            raise PermissionError(13, "Permission denied")
        return real(self, file)  # type: ignore[arg-type]

    monkeypatch.setattr(FolderSource, "read", refuse)
    _, documents, issues = read(kb, tmp_path / "out")
    assert list(documents) == ["sub/b.txt"] and issues["a.md"] == "unreadable"


def test_what_is_stored_of_a_document(kb: Path, tmp_path: Path) -> None:
    (kb / "it.md").write_bytes("---\ntitle: Le regole\nlang: it\n---\r\nÈ vietato cafe\u0301.\r\n".encode())
    (kb / "ja.md").write_bytes("# 規程\n\n申請は３０日以内にしてください。".encode("cp932"))
    _, documents, _ = read(kb, tmp_path / "out")
    doc = documents["it.md"]
    assert (doc.title, doc.language, doc.changed_by_normalising) == ("Le regole", "it", True)
    assert doc.text.endswith("È vietato café.\n") and doc.text[: doc.front_matter_end].endswith("---\n")
    assert (documents["ja.md"].title, documents["ja.md"].language) == ("規程", "ja")
    assert not documents["a.md"].changed_by_normalising and documents["a.md"].title == "Alpha"


def test_only_what_changed_is_read_again(kb: Path, tmp_path: Path) -> None:
    for n in range(30):
        (kb / f"n{n:02d}.md").write_text(f"# N{n}\n\nText number {n} about things.\n", encoding="utf-8")
    out = tmp_path / "out"
    _, before, _ = read(kb, out)
    (kb / "n07.md").write_text("# New\n\nOther text.\n", encoding="utf-8")
    (kb / "n08.md").unlink()
    (kb / "m.md").write_text("# Fresh\n\nFresh text.\n", encoding="utf-8")
    report, after, _ = read(kb, out, previous=True)
    assert report.reused == 30 and report.documents == 32
    fresh = tmp_path / "fresh"
    _, expected, _ = read(kb, fresh)
    assert after == expected
    assert (out / "d.parquet").read_bytes() == (fresh / "d.parquet").read_bytes()
    assert after["n01.md"].source_version != before["n01.md"].source_version
    again, _, _ = read(kb, out, previous=True)
    assert again.reused == 32


def test_passages_are_reused_where_the_text_stands(kb: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    read(kb, out)

    def cut(name: str, earlier: str | None) -> list[Passage]:
        previous = (TableFile(out / f"s-{earlier}"), TableFile(out / f"p-{earlier}")) if earlier else None
        report = cut_documents(
            TableFile(out / "d.parquet"), PassageSettings(target_chars=100, max_chars=200),
            out / f"s-{name}", out / f"p-{name}", previous,
        )  # fmt: skip
        reused.append(report.reused)
        return list(TableFile(out / f"p-{name}").records(Passage))

    reused: list[int] = []
    cut("1", None)
    (kb / "a.md").write_text("# Alpha\n\nAnother text altogether.\n", encoding="utf-8")
    read(kb, out, previous=True)
    incremental, fresh = cut("2", "1"), cut("3", None)
    assert reused == [0, 1, 0] and incremental == fresh
    assert (out / "p-2").read_bytes() == (out / "p-3").read_bytes()


def test_a_missing_or_empty_kb_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KbMissing, match="not a folder"):
        scan(tmp_path / "nowhere", KbManifest(), 100)
    (tmp_path / "empty").mkdir()
    with pytest.raises(KbMissing, match="no document"):
        scan(tmp_path / "empty", KbManifest(), 100)


def test_the_stat_cache_sees_every_change(kb: Path, tmp_path: Path) -> None:
    cache = tmp_path / "stat.json"
    one = scan(kb, KbManifest(), 10_000, cache)
    assert scan(kb, KbManifest(), 10_000, cache) == one
    (kb / "a.md").write_text("changed", encoding="utf-8")
    two = scan(kb, KbManifest(), 10_000, cache)
    assert two != one and two == scan(kb, KbManifest(), 10_000)
    cache.write_text("not json", encoding="utf-8")
    assert scan(kb, KbManifest(), 10_000, cache) == two


def test_versions_and_the_archive(kb: Path, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")

    def current(declared: str = "") -> str:
        text = f"source_version: {declared}\n" if declared else ""
        (kb / "kb.yaml").write_text(text + "languages: [en]\n", encoding="utf-8")
        revision = current_revision(kb, archive, 10_000, "none")
        archive.store(revision, FolderSource(kb))
        return revision.source_version

    derived = current()
    assert derived.startswith("rev-") and len(derived) == 16
    assert current("2026-10-01") == "2026-10-01"
    old = (kb / "a.md").read_bytes()
    (kb / "a.md").write_text("changed", encoding="utf-8")
    changed = current("2026-10-01")
    assert changed.startswith("2026-10-01+") and len(changed) == len("2026-10-01+") + 8
    (kb / "a.md").write_bytes(old)
    assert current("2026-10-01") == "2026-10-01", "a KB can go back"
    now = current_revision(kb, archive, 10_000, "none")
    revision, in_folder = find_revision(changed, now, archive, "none")
    assert not in_folder
    (file,) = [f for f in revision.scan.files if f.path == "a.md"]
    assert archive.read(file) == b"changed"
    with pytest.raises(UnknownRevision, match="now holds 2026-10-01"):
        find_revision("2020-01-01", now, archive, "none")


def test_a_read_error_in_passing_leaves_no_trace(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, archive = tmp_path / "out", Archive(tmp_path / "out" / "archive")
    real = FolderSource.read

    def fail(self: FolderSource, file: object) -> bytes:
        if getattr(file, "path", "") == "a.md":
            raise OSError(5, "Input/output error")
        return real(self, file)  # type: ignore[arg-type]

    def store() -> None:
        archive.store(current_revision(kb, archive, 10_000, converter_version()), FolderSource(kb))

    with monkeypatch.context() as patch:
        patch.setattr(FolderSource, "read", fail)
        store()
        broken, documents, issues = read(kb, out)
        assert list(documents) == ["sub/b.txt"] and issues["a.md"] == "unreadable"
        again, _, _ = read(kb, out, previous=True)
        assert again.documents_version == broken.documents_version
        incomplete = TableFile(out / "d.parquet").fingerprint
    version = current_revision(kb, archive, 10_000, converter_version()).source_version
    (lost,) = [file for file in archive.load(version).scan.files if file.path == "a.md"]
    with pytest.raises(OSError, match="not in the archive"):
        archive.read(lost)
    store()
    assert archive.read(lost) == (kb / "a.md").read_bytes()
    report, documents, issues = read(kb, out, previous=True)
    assert sorted(documents) == ["a.md", "sub/b.txt"] and "a.md" not in issues
    assert report.reused == 1 and report.documents_version != broken.documents_version
    assert TableFile(out / "d.parquet").fingerprint != incomplete, "what is cut from it must be cut anew"
    _, expected, _ = read(kb, tmp_path / "fresh")
    assert documents == expected


def test_archiving_beside_others_loses_nothing(kb: Path, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    for n in range(40):
        (kb / f"n{n}.md").write_text(f"text {n}", encoding="utf-8")
    revision = current_revision(kb, archive, 10_000, "none")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: archive.store(revision, FolderSource(kb)), range(16)))
    loaded = archive.load(revision.source_version)
    assert loaded == revision
    assert all(archive.read(file) == (kb / file.path).read_bytes() for file in loaded.scan.files)
    assert not list(archive.root.rglob("*.part"))


def test_an_archived_revision_is_not_rebuilt_with_another_normaliser(
    kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive(tmp_path / "archive")
    (kb / "kb.yaml").write_text("source_version: v1\n", encoding="utf-8")
    archive.store(current_revision(kb, archive, 10_000, "none"), FolderSource(kb))
    monkeypatch.setattr("ragds_pipeline.kb.revision.NORMALISER_VERSION", "1000")
    now = current_revision(kb, archive, 10_000, "none")
    assert now.source_version.startswith("v1+")
    with pytest.raises(UnrepeatableRevision, match=r"v1 was made with normaliser 1, .*; here is normaliser 1000"):
        find_revision("v1", now, archive, "none")


def test_new_rules_for_title_and_language_are_applied_to_old_rows(
    kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    read(kb, out)
    monkeypatch.setattr("ragds_pipeline.kb.documents.DOCUMENT_RULES_VERSION", "1000")
    monkeypatch.setattr("ragds_pipeline.kb.documents.detect_language", lambda text, languages: "it")
    report, documents, _ = read(kb, out, previous=True)
    assert report.reused == 0 and {d.language for d in documents.values()} == {"it"}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Alpha\n", "Alpha"),
        ("```bash\n# install the tools\n```\n\n# Alpha\n", "Alpha"),
        ("~~~\n```\n# install the tools\n~~~\n", "x"),
        ("<!--\n# old title\n-->\n\nAlpha\n=====\n", "Alpha"),
        ("<pre>\n# shell\n</pre>\n", "x"),
        ("- item\n\n  ```\n# code\n", "code"),
        ("    # indented code\n\n## Second\n\n# Alpha #\n", "Alpha"),
        ("---\nauthor: x\n---\n# Alpha\n", "Alpha"),
        ("---\ntitle: Beta\n---\n# Alpha\n", "Beta"),
        ("#\n\n# Alpha\n", "Alpha"),
        ("Some text.\n", "x"),
    ],
)
def test_titles(kb: Path, tmp_path: Path, text: str, title: str) -> None:
    (kb / "x.md").write_text(text, encoding="utf-8")
    assert read(kb, tmp_path / "out")[1]["x.md"].title == title


@pytest.mark.parametrize("line", ["# a" + " " * 100_000 + "x", "=" * 100_000 + "x", "# a" + " #" * 50_000 + "x"])
def test_no_line_makes_looking_for_a_title_slow(line: str) -> None:
    began = time.process_time()
    _title("x.md", f"```\n{line}\n```\n{line}\n", {})
    assert time.process_time() - began < 1.0


def test_folders_of_tools_and_the_data_folder_are_not_entered(kb: Path, tmp_path: Path) -> None:
    data = kb / "our" / "data"
    for folder in (
        ".git",
        "sub/__pycache__",
        ".venv/lib",
        "env/lib",
        "cache",
        "our/data/tables",
        ".github",
        "our/notes",
    ):
        (kb / folder).mkdir(parents=True)
        (kb / folder / "note.md").write_text(f"# Note\n\nIn {folder}.\n", encoding="utf-8")
    (kb / "env" / "pyvenv.cfg").write_text("", encoding="utf-8")
    (kb / "cache" / "CACHEDIR.TAG").write_text("", encoding="utf-8")
    (kb / "link.md").symlink_to(data / "tables" / "note.md")
    (kb / "hook.md").symlink_to(kb / ".git" / "note.md")
    state = scan(kb, KbManifest(), 10_000, data_dir=data)
    assert [f.path for f in state.files] == [".github/note.md", "a.md", "our/notes/note.md", "sub/b.txt"]
    left_out = [".git", ".venv", "cache", "env", "hook.md", "link.md", "our/data", "sub/__pycache__"]
    assert [(i.path, i.reason) for i in state.issues] == [(path, "not_included") for path in left_out]
    with pytest.raises(ConfigError, match="same folder"):
        scan(kb, KbManifest(), 10_000, data_dir=kb)


def test_a_kb_inside_the_data_folder_is_read(kb: Path, tmp_path: Path) -> None:
    assert len(scan(kb, KbManifest(), 10_000, data_dir=tmp_path).files) == 2


@pytest.mark.skipif(converter_version() == "none", reason="the extra 'convert' is not installed")
def test_html_becomes_markdown_without_its_metadata() -> None:
    head = b"<html><head><title>T</title><meta name='author' content='x'></head>"
    html = head + b"<body><h1>Rules</h1><p>Pay 5 &amp; go.</p></body></html>"
    assert to_markdown("a.html", html) == "# Rules\n\nPay 5 & go.\n"
    assert to_markdown("a.html", b"<h1>Rules</h1><p>x</p>").startswith("# Rules")
    with pytest.raises(ConversionFailed):
        to_markdown("a.docx", b"junk")
    with pytest.raises(ConversionFailed, match="no text"):
        to_markdown("a.html", b"<html></html>")
