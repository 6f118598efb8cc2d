"""Tests of ``review.sheets``: a person's work is never overwritten, and our own files are always known as ours."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from ragds_pipeline.review import sheets
from ragds_pipeline.review.sheet_out import write_csv
from ragds_pipeline.review.sheets import SheetFolder
from ragds_pipeline.storage.files import write_text
from ragds_pipeline_tests.review.sheets import row


def send(root: Path, count: int) -> None:
    for number in range(4):
        SheetFolder(root).send([row(f"c-{count}-{number}")])


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.is_file() and path.name[0] != ".")


def test_parallel_runs_write_one_sheet(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=send, args=(tmp_path, count)) for count in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert names(tmp_path) == ["review.csv", "review.xlsx"]


@pytest.mark.parametrize("step", range(6))
def test_a_kill_at_any_moment_leaves_our_files_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    folder = SheetFolder(tmp_path)
    folder.send([row("c-1")])
    left = step

    def perhaps_killed(original: object) -> object:
        def run(*args: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return original(*args, **options)  # type: ignore[operator]

        return run

    with monkeypatch.context() as patch:
        patch.setattr(sheets, "write_text", perhaps_killed(write_text))
        patch.setattr(sheets, "write_csv", perhaps_killed(write_csv))
        patch.setattr(Path, "replace", perhaps_killed(Path.replace))
        try:
            folder.send([row("c-2")])
        except KeyboardInterrupt:
            pass
        else:
            assert step == 5
    folder.send([row("c-3")])
    assert names(tmp_path) == ["review.csv", "review.xlsx"]
    assert "c-3" in (tmp_path / "review.csv").read_text(encoding="utf-8-sig")
    assert not list(tmp_path.glob(".staged*"))


def test_a_record_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    folder = SheetFolder(tmp_path)
    folder.send([row("c-1")])
    record = tmp_path / ".sent.json"
    old = {name: shas[0] for name, shas in json.loads(record.read_text(encoding="utf-8")).items()}
    record.write_text(json.dumps(old), encoding="utf-8")
    folder.send([row("c-2")])
    assert names(tmp_path) == ["review.csv", "review.xlsx"]


def test_a_folder_in_the_inbox_is_no_sheet(tmp_path: Path) -> None:
    folder = SheetFolder(tmp_path)
    folder.send([row("c-1")])
    (folder.inbox / "old.csv").mkdir()
    (folder.inbox / "new.csv").write_text("id,keep\n", encoding="utf-8")
    assert [path.name for path in folder.returned()] == ["new.csv"]
