"""What is confidential stays so: under another name, in another spelling, in an old revision."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragds_pipeline.config import ConfigError, PlanSettings, load_kb_manifest
from ragds_pipeline.kb.revision import Archive, FolderSource, archived_revision, find_revision
from ragds_pipeline_tests.kb.reading import CONVERTER, folder, read
from ragds_pipeline_tests.projects import REPOSITORY

SECRET = "# Salaries\n\nThe captain earns 5,000 a month.\n"


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    root = tmp_path / "kb"
    (root / "confidential").mkdir(parents=True)
    (root / "open.md").write_text("# Open\n\nAnybody may read this text.\n", encoding="utf-8")
    (root / "confidential" / "salaries.md").write_text(SECRET, encoding="utf-8")
    manifest(root, confidential=["confidential/**"])
    return root


def manifest(kb: Path, **fields: object) -> None:
    text = "".join(f"{name}: {value!r}\n" for name, value in fields.items())
    (kb / "kb.yaml").write_text(text, encoding="utf-8")


def link(kb: Path) -> None:
    (kb / "all.md").symlink_to(kb / "confidential" / "salaries.md")


def link_to_link(kb: Path) -> None:
    (kb / "confidential" / "again.md").symlink_to(kb / "zz.md")
    (kb / "confidential" / "salaries.md").rename(kb / "zz.md")
    (kb / "all.md").symlink_to(kb / "confidential" / "again.md")


def copy(kb: Path) -> None:
    (kb / "all.md").write_text(SECRET, encoding="utf-8")


def copy_with_other_line_ends(kb: Path) -> None:
    (kb / "all.md").write_bytes(SECRET.replace("\n", "\r\n").encode())


def tidied_copy(kb: Path) -> None:
    copy(kb)
    (kb / "confidential" / "salaries.md").write_bytes(SECRET.replace("\n", "\r\n").encode())


@pytest.mark.parametrize("disguise", [link, link_to_link, copy, copy_with_other_line_ends, tidied_copy])
@pytest.mark.parametrize("excluded", [False, True])
def test_a_text_that_stands_in_a_confidential_file_is_confidential(
    kb: Path, tmp_path: Path, disguise: object, excluded: bool
) -> None:
    if excluded:
        manifest(kb, confidential=["confidential/**"], exclude=["confidential/**"])
    disguise(kb)  # type: ignore[operator]
    for _ in range(2):  # from nothing, and with every row taken over
        _, documents, _ = read(kb, tmp_path / "out")
        assert all(d.confidential for d in documents.values() if d.text == SECRET)
        assert not documents["open.md"].confidential
    (kb / "new.md").write_text("# New\n\nMore.\n", encoding="utf-8")
    report, documents, _ = read(kb, tmp_path / "out")
    assert report.reused and all(d.confidential for d in documents.values() if d.text == SECRET)


def test_a_copy_that_appears_or_goes_changes_its_twin(kb: Path, tmp_path: Path) -> None:
    tidied_copy(kb)
    (kb / "confidential" / "salaries.md").rename(kb / "plain.md")
    (kb / "confidential" / "x.md").write_text("other", encoding="utf-8")
    _, documents, _ = read(kb, tmp_path / "out")
    assert not documents["all.md"].confidential
    (kb / "plain.md").rename(kb / "confidential" / "salaries.md")
    report, documents, _ = read(kb, tmp_path / "out")
    assert report.reused and documents["all.md"].confidential


def test_a_link_to_an_excluded_file_is_excluded(kb: Path, tmp_path: Path) -> None:
    manifest(kb, exclude=["confidential/**"])
    link(kb)
    _, documents, issues = read(kb, tmp_path / "out")
    assert list(documents) == ["open.md"] and issues["all.md"] == "excluded"


def test_patterns_match_whatever_the_normal_form(kb: Path, tmp_path: Path) -> None:
    for n in range(2):
        composed, decomposed = f"caf\u00e9{n}.md", f"cafe\u0301{n}.md"
        pattern, name = (composed, decomposed) if n else (decomposed, composed)
        (kb / name).write_text(f"text {n}", encoding="utf-8")
        manifest(kb, confidential=[pattern])
        _, documents, _ = read(kb, tmp_path / "out")
        assert documents[name].confidential


@pytest.mark.parametrize("pattern", ["confidental/**", "./confidential/**", "Confidential/**", "secret.md"])
def test_a_confidential_pattern_that_matches_nothing_stops(kb: Path, tmp_path: Path, pattern: str) -> None:
    manifest(kb, confidential=["open.md", pattern])
    with pytest.raises(ConfigError) as stopped:
        read(kb, tmp_path / "out")
    assert repr(pattern) in str(stopped.value) and "'open.md'" not in str(stopped.value)


@pytest.mark.parametrize("pattern", ["*.png", "confidential/*", "hr/**", "shared/**", "!open.md"])
def test_a_confidential_pattern_may_mean_files_that_are_no_documents(kb: Path, tmp_path: Path, pattern: str) -> None:
    (kb / "photo.png").write_bytes(b"\x00png")
    (kb / "hr").symlink_to(tmp_path)
    (kb / "shared").symlink_to(kb / "confidential")
    manifest(kb, confidential=[pattern], exclude=["confidential/**"])
    read(kb, tmp_path / "out")


def test_other_patterns_that_match_nothing_are_listed(kb: Path, tmp_path: Path) -> None:
    manifest(kb, exclude=["draft/**"], encodings={"legacy/**": "cp932"}, document_languages={"open.md": "en"})
    report, _, issues = read(kb, tmp_path / "out")
    assert issues == {"draft/**": "pattern_matches_nothing", "legacy/**": "pattern_matches_nothing"}
    assert report.skipped == 0


@pytest.mark.parametrize("field", ["include", "exclude", "confidential", "encodings", "document_languages"])
@pytest.mark.parametrize("pattern", ["!", "#secret.md", " ", ""])
def test_a_pattern_that_is_none_stops(kb: Path, field: str, pattern: str) -> None:
    manifest(kb, **{field: [pattern] if field in ("include", "exclude", "confidential") else {pattern: "en"}})
    with pytest.raises(ConfigError, match=rf"kb\.yaml[\s\S]*{field}"):
        load_kb_manifest(kb)


def test_a_pattern_that_is_none_in_the_plan_stops() -> None:
    with pytest.raises(ValueError, match="no pattern"):
        PlanSettings.model_validate({"documents": {"!": 2}})


@pytest.mark.parametrize("name", ["kb", "examples/kb-next"])
def test_the_sample_can_be_read(name: str, tmp_path: Path) -> None:
    _, documents, issues = read(REPOSITORY / name, tmp_path / "out")
    assert [d.path for d in documents.values() if d.confidential] == ["confidential/salary-bands.md"]
    assert set(issues.values()) <= {"pattern_matches_nothing"}


def confidential_in_v1(kb: Path, out: Path, folder_there: bool = True) -> set[str]:
    archive = Archive(out / "archive")
    if folder_there:
        revision, in_folder = find_revision("v1", folder(kb, out), archive, CONVERTER)
    else:
        revision, in_folder = archived_revision("v1", archive, CONVERTER, None), False
    assert not in_folder
    _, documents, _ = read(kb, out, revision, archive)
    return {d.path for d in documents.values() if d.confidential}


def test_what_became_confidential_is_so_in_old_revisions(kb: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (kb / "secret.md").write_text("# Secret\n\nNobody may know.\n", encoding="utf-8")
    manifest(kb, source_version="v1")
    read(kb, out)
    manifest(kb, source_version="v2", confidential=["secret.md"])
    (kb / "open.md").write_text("# Open\n\nNew text.\n", encoding="utf-8")
    assert confidential_in_v1(kb, out) == {"secret.md"}, "by today's list, although v2 was never run"
    read(kb, out)
    manifest(kb, source_version="v3")
    (kb / "secret.md").unlink()
    assert confidential_in_v1(kb, out) == {"secret.md"}, "by the list of v2: the file is gone, and so is its pattern"
    assert confidential_in_v1(kb, out, folder_there=False) == {"secret.md"}


def test_the_archive_follows_kb_yaml(kb: Path, tmp_path: Path) -> None:
    out, archive = tmp_path / "out", Archive(tmp_path / "out" / "archive")
    manifest(kb, source_version="v1", name="Old")
    read(kb, out)
    manifest(kb, source_version="v1", name="New", confidential=["open.md"])
    read(kb, out)
    assert archive.load("v1").manifest == load_kb_manifest(kb)
    (path,) = (out / "archive" / "revisions").iterdir()
    before = path.stat()
    archive.store(folder(kb, out), FolderSource(kb))
    assert path.stat().st_ino == before.st_ino, "nothing changed, nothing written"


def test_the_version_of_the_data_moves_with_the_rows_only(kb: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    one, _, _ = read(kb, out)
    (kb / "photo.png").write_bytes(b"png")
    two, _, _ = read(kb, out)
    assert two.documents_version == one.documents_version and two.issues_version != one.issues_version
    manifest(kb, confidential=["confidential/**", "open.md"])
    three, _, _ = read(kb, out)
    assert three.documents_version != one.documents_version
    manifest(kb, confidential=["confidential/**"], document_languages={"open.md": "it"})
    four, documents, _ = read(kb, out)
    assert documents["open.md"].language == "it" and four.documents_version != one.documents_version
