"""Whether a run is due: quietness, one run a revision, retries, folders that emptied, and the pointer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ragds_pipeline.config import ConfigError, WatchSettings
from ragds_pipeline.kb.current import POINTER, current, move_to
from ragds_pipeline.kb.revision import Archive, Revision, current_revision
from ragds_pipeline.kb.scan import KbMissing, ScannedFile
from ragds_pipeline.kb.watch import Attempt, History, Seen, gone, look, next_step, quiet_for, state_of

NEW = History(done=False)
SETTINGS = WatchSettings(quiet_s=60, max_attempts=3, retry_after_s=100, gone_quiet_s=1000)

Looker = Callable[[], Revision]


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    folder = tmp_path / "kb"
    (folder / "sub").mkdir(parents=True)
    for number in range(6):
        (folder / "sub" / f"d{number}.md").write_text(f"# Document {number}\n\nText {number}.\n", encoding="utf-8")
    return folder


@pytest.fixture
def scan(kb: Path, tmp_path: Path) -> Looker:
    return lambda: current_revision(kb, Archive(tmp_path / "archive"), 10**6, "none", tmp_path / "stat.json")


def test_a_half_finished_sync_is_no_revision(kb: Path, scan: Looker) -> None:
    revision = scan()
    now = time.time()
    seen = look(revision, None, now)
    assert next_step(revision, quiet_for(revision, seen, now), NEW, (), now, SETTINGS).kind == "wait"
    assert next_step(revision, quiet_for(revision, seen, now + 61), NEW, (), now + 61, SETTINGS).kind == "run"
    (kb / "sub" / "d6.md").write_text("# More\n\nIt goes on.\n", encoding="utf-8")
    revision = scan()
    seen = look(revision, seen, now + 61)
    step = next_step(revision, quiet_for(revision, seen, now + 100), NEW, (), now + 100, SETTINGS)
    assert step.kind == "wait" and "changed 39 s ago" in step.reason, "another state was seen at 61, so it begins anew"


def test_old_time_stamps_do_not_make_a_sync_look_finished(kb: Path, scan: Looker) -> None:
    for path in (*kb.rglob("*"), kb):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    revision, now = scan(), time.time()
    assert revision.scan.changed_at > now - 60, "the change time tells, as with rsync -a"
    assert quiet_for(revision, None, now) < 60


def test_a_time_stamp_in_the_future_does_not_block_for_ever(kb: Path, scan: Looker) -> None:
    os.utime(kb / "sub" / "d1.md", (4_000_000_000, 4_000_000_000))
    revision = scan()
    assert quiet_for(revision, None, time.time() + 100) > 90


def test_a_deletion_is_a_change_although_no_document_has_a_new_time_stamp(kb: Path, scan: Looker) -> None:
    before = scan()
    time.sleep(0.02)
    (kb / "sub" / "d1.md").unlink()
    after = scan()
    assert after.scan.changed_at > before.scan.changed_at and state_of(after) != state_of(before)


def test_files_that_are_no_documents_do_not_keep_the_folder_busy(kb: Path, scan: Looker) -> None:
    (kb / "sub" / "sync.log").write_text("", encoding="utf-8")
    before = scan()
    time.sleep(0.02)
    with (kb / "sub" / "sync.log").open("a", encoding="utf-8") as file:
        file.write("still alive\n")
    assert scan().scan.changed_at == before.scan.changed_at


def test_what_kb_yaml_says_is_part_of_the_state_though_not_of_the_revision(kb: Path, scan: Looker) -> None:
    before = scan()
    (kb / "kb.yaml").write_text("confidential: ['sub/d1.md']\n", encoding="utf-8")
    after = scan()
    assert before.source_version == after.source_version and state_of(before) != state_of(after)


def test_an_empty_or_missing_folder_is_an_error_and_no_deletion(kb: Path, scan: Looker) -> None:
    for path in (kb / "sub").glob("*"):
        path.unlink()
    with pytest.raises(KbMissing, match="holds no document"):
        scan()
    (kb / "sub").rmdir()
    kb.rmdir()
    with pytest.raises(KbMissing, match="is not a folder"):
        scan()
    kb.mkdir()
    (kb / "kb.yml").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="rename it"):
        scan()


def test_done_or_in_progress_starts_nothing(scan: Looker) -> None:
    revision = scan()
    assert next_step(revision, 61, History(done=True), (), 0, SETTINGS).kind == "done"
    step = next_step(revision, 61, History(done=False, active="abc"), (), 0, SETTINGS)
    assert step.kind == "wait" and "in progress in run abc" in step.reason


def attempts(*statuses: str) -> History:
    ended = [Attempt(f"run-{n}", n, status, 1000.0 * n, "the disk is full") for n, status in enumerate(statuses, 1)]  # type: ignore[arg-type]
    return History(done=False, attempts=ended)


def test_failed_runs_are_tried_again_up_to_a_number_and_later(scan: Looker) -> None:
    revision = scan()
    soon = next_step(revision, 61, attempts("failed"), (), 1050, SETTINGS)
    assert soon.kind == "wait" and "due in 50 s" in soon.reason
    later = next_step(revision, 61, attempts("failed"), (), 1101, SETTINGS)
    assert (later.kind, later.attempt) == ("run", 2) and "run-1 failed" in later.reason
    assert next_step(revision, 61, attempts("failed", "failed"), (), 9999, SETTINGS).attempt == 3
    spent = next_step(revision, 61, attempts("failed", "failed", "failed"), (), 9999, SETTINGS)
    assert spent.kind == "wait"
    assert "given up after 3 attempts" in spent.reason and "run-3: the disk is full" in spent.reason


def test_a_cancelled_run_is_not_started_again(scan: Looker) -> None:
    step = next_step(scan(), 61, attempts("cancelled"), (), 9999, SETTINGS)
    assert step.kind == "wait" and "was cancelled" in step.reason


def test_what_was_done_and_taken_away_is_run_again_under_a_new_number(scan: Looker) -> None:
    step = next_step(scan(), 61, attempts("failed", "failed", "done"), (), 9999, SETTINGS)
    assert (step.kind, step.attempt) == ("run", 4)


def test_many_documents_gone_are_held_until_it_was_quiet_for_longer(kb: Path, scan: Looker) -> None:
    before = scan().scan.files
    for number in range(3):
        (kb / "sub" / f"d{number}.md").unlink()
    assert next_step(scan(), 61, NEW, before, 0, SETTINGS).kind == "run", "half of them is not more than half"
    (kb / "sub" / "d3.md").unlink()
    step = next_step(scan(), 61, NEW, before, 0, SETTINGS)
    assert step.kind == "wait" and step.reason.startswith("held: 4 of 6 documents are gone (sub/d0.md, ")
    assert "ragds run" in step.reason
    assert next_step(scan(), 1001, NEW, before, 0, SETTINGS).kind == "run"
    assert next_step(scan(), 61, History(done=True), before, 0, SETTINGS).kind == "done", "it was run by hand"


def test_documents_that_only_moved_are_not_gone(kb: Path, scan: Looker) -> None:
    before = scan().scan.files
    (kb / "sub").rename(kb / "elsewhere")
    (kb / "elsewhere" / "d0.md").write_text("edited\n", encoding="utf-8")
    assert gone(before, scan().scan.files) == ["sub/d0.md"]
    assert not gone([ScannedFile("a.md", 1, "x")], [ScannedFile("a.md", 1, "y")]), "edited in its place"


def test_a_cursor_that_is_not_ours_only_starts_the_wait_anew(scan: Looker) -> None:
    seen = Seen("abc", 5.0)
    assert Seen.from_text(seen.to_text()) == seen
    for text in (None, "", "17", "{}", "[]", '{"state": 1}', '{"state": "a", "since": "x"}', "null"):
        assert Seen.from_text(text) is None
    assert look(scan(), Seen(state_of(scan()), 99.0), 50.0).since == 50.0, "a clock that was set back"


def test_the_stat_cache_trusts_files_once_they_are_old_enough(kb: Path, scan: Looker, tmp_path: Path) -> None:
    scan()
    long_ago = time.time_ns() - 10 * 10**9
    for path in kb.rglob("*.md"):
        os.utime(path, ns=(long_ago, long_ago))
    scan()  # hashes again, because the time stamps changed; the cache is written now
    first = (tmp_path / "stat.json").read_bytes()
    scan()
    assert (tmp_path / "stat.json").read_bytes() == first, "nothing was computed, so nothing was written"


def test_files_that_were_too_young_are_not_read_for_ever(kb: Path, scan: Looker, tmp_path: Path) -> None:
    scan()
    young = (tmp_path / "stat.json").read_bytes()
    scan()
    assert (tmp_path / "stat.json").read_bytes() != young, "their hashes were computed again; the later time counts"


def test_the_pointer_goes_back_with_the_kb(tmp_path: Path) -> None:
    assert current(tmp_path) is None
    assert move_to(tmp_path, "a", "1") and not move_to(tmp_path, "a", "1")
    assert move_to(tmp_path, "b", "2") and move_to(tmp_path, "a", "1")
    now = current(tmp_path)
    assert now is not None and (now.source_version, now.before) == ("a", "b") and now.since.endswith("+00:00")
    (tmp_path / POINTER).write_text("{", encoding="utf-8")
    assert current(tmp_path) is None and move_to(tmp_path, "a", "1")


@pytest.mark.parametrize("given", [{"cron": "daily"}, {"timezone": "Mars/Olympus"}, {"every_s": 1}, {"gone_share": 0}])
def test_settings_that_cannot_be_used_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        WatchSettings.model_validate(given)
