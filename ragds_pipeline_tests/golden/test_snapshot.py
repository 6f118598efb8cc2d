"""Snapshots: whole, immutable, the same bytes for the same content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ragds_pipeline.config import FilterSettings, GoldenSettings
from ragds_pipeline.filters.code_filter import code_filter
from ragds_pipeline.golden import verify as checks
from ragds_pipeline.golden.items import prepare
from ragds_pipeline.golden.registry import Known, Registered, Registry
from ragds_pipeline.golden.snapshot import (
    Contents,
    RegistryMoved,
    SnapshotDamaged,
    freeze,
    read_items,
    record_schema,
    register,
    snapshots,
    verify,
)
from ragds_pipeline.records import Candidate, Decision, GivenId, GoldenItem, ReasonCount
from ragds_pipeline.storage.files import UnsafePath
from ragds_pipeline_tests.documents import draft, outline

TEXT = "# Leave\n\n" + "".join(f"Team {n} gets {n + 20} days — 休暇 🏖 ‘n’.\n\n" for n in range(9))


def decision(candidate: Candidate) -> Decision:
    return Decision(candidate.id, "keep", "", "Rei", "2026-01-01T00:00:00Z", "s.csv:2", "{}", "")


def candidates(*numbers: int) -> list[Candidate]:
    drafts = [
        draft(f"How much has team {n}?", f"{n + 20}", f"Team {n} gets {n + 20} days — 休暇 🏖 ‘n’.") for n in numbers
    ]
    found = code_filter(drafts, {"rules.md": outline(TEXT)}, lambda: [("rules.md", TEXT)], FilterSettings())
    assert not found.drops
    return found.candidates


def contents(items: list[GoldenItem]) -> Contents:
    return Contents("2026-10-01", items, (), {"rules.md": TEXT}, (), (), {"ragds": "0"})


def items(*numbers: int, known: list[Registered] | None = None) -> list[GoldenItem]:
    accepted = [(c, decision(c)) for c in candidates(*numbers)]
    return prepare(accepted, known or [], "2026-10-01", GoldenSettings()).items


def bytes_of(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_the_same_again_is_the_same_bytes_and_no_new_snapshot(tmp_path: Path) -> None:
    one = freeze(contents(items(1, 2, 3)), tmp_path / "a")
    again = freeze(contents(items(1, 2, 3)), tmp_path / "a")
    elsewhere = freeze(contents(items(1, 2, 3)), tmp_path / "b")
    assert (one.number, one.created, again.number, again.created) == (1, True, 1, False)
    assert bytes_of(one.path) == bytes_of(elsewhere.path)
    assert [p.name for p in one.path.parent.glob("*") if p.is_dir()] == ["snapshot-0001"]


def test_other_content_is_a_new_snapshot_and_the_old_one_is_untouched(tmp_path: Path) -> None:
    one = freeze(contents(items(1, 2)), tmp_path)
    before = bytes_of(one.path)
    two = freeze(contents(items(1, 2, 3)), tmp_path)
    assert two.number == 2 and bytes_of(one.path) == before
    back = freeze(contents(items(1, 2)), tmp_path)
    assert back.number == 3, "going back is a new snapshot; the latest one differs"


def test_a_line_has_the_fields_in_the_order_of_the_record(tmp_path: Path) -> None:
    frozen = freeze(contents(items(1)), tmp_path)
    (line,) = (frozen.path / "golden_set.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(line)
    assert list(record) == [
        "id",
        "question",
        "answer",
        "type",
        "difficulty",
        "hops",
        "language",
        "split",
        "source_version",
        "passages",
        "chunk_id",
        "evidence",
        "provenance",
    ]
    assert list(record["passages"][0]) == [
        "document_path",
        "start_char",
        "end_char",
        "content",
        "required",
        "alternatives",
        "prefix",
        "suffix",
        "chunk_id",
    ]
    passage = record["passages"][0]
    text = (frozen.path / "texts" / "rules.md").read_text(encoding="utf-8")
    assert text[passage["start_char"] : passage["end_char"]] == passage["content"] == record["evidence"]
    assert record["id"] == "g-0001" and record["chunk_id"] == passage["chunk_id"]


def test_parquet_jsonl_and_manifest_agree(tmp_path: Path) -> None:
    found = items(1, 2, 3)
    frozen = freeze(contents(found), tmp_path)
    assert read_items(frozen.path) == found
    assert pq.read_table(frozen.path / "golden_set.parquet").column("id").to_pylist() == [i.id for i in found]
    assert (frozen.path / "no_answer.jsonl").read_text(encoding="utf-8") == ""
    manifest = verify(frozen.path)
    assert manifest["counts"]["items"] == 3
    for name, sha in manifest["files"].items():
        assert hashlib.sha256((frozen.path / name).read_bytes()).hexdigest() == sha
    (document,) = manifest["documents"]
    assert document["text_sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()


def test_the_schema_shipped_is_made_from_the_record() -> None:
    schema = record_schema()
    assert schema["required"][:3] == ["id", "question", "answer"]
    assert "passages" in schema["properties"]


def test_a_changed_file_is_noticed_and_never_built_upon(tmp_path: Path) -> None:
    frozen = freeze(contents(items(1)), tmp_path)
    (frozen.path / "golden_set.jsonl").write_text("{}", encoding="utf-8")
    with pytest.raises(SnapshotDamaged, match=r"golden_set\.jsonl was changed"):
        verify(frozen.path)
    with pytest.raises(SnapshotDamaged):
        freeze(contents(items(1, 2)), tmp_path)


@pytest.mark.parametrize("version", ["../x", "a/../../b", "/etc", "."])
def test_a_version_stays_in_its_folder(tmp_path: Path, version: str) -> None:
    with pytest.raises(UnsafePath):
        freeze(replace(contents(items(1)), source_version=version), tmp_path / "golden")


def test_a_document_path_stays_in_the_snapshot(tmp_path: Path) -> None:
    (item,) = items(1)
    outside = replace(item, passages=(replace(item.passages[0], document_path="../../evil.md"),))
    bad = Contents("v1", [outside], (), {"../../evil.md": TEXT}, (), (), {})
    with pytest.raises(UnsafePath):
        freeze(bad, tmp_path / "golden")
    assert not list(tmp_path.rglob("evil.md")) and not list((tmp_path / "golden" / "v1").glob("snapshot*"))


def test_ids_are_given_once_and_stay(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry.jsonl")

    def release(*numbers: int) -> dict[str, str]:
        accepted = [(c, decision(c)) for c in candidates(*numbers)]
        ready = prepare(accepted, registry.entries(), "v", GoldenSettings())
        register(registry, ready.given)
        register(registry, ready.given)
        return {item.question: item.id for item in ready.items}

    first = release(1, 2, 3)
    assert sorted(first.values()) == ["g-0001", "g-0002", "g-0003"]
    second = release(3, 5)
    assert second["How much has team 3?"] == first["How much has team 3?"]
    assert second["How much has team 5?"] == "g-0004"
    third = release(1, 2, 3, 4, 5)
    assert third == {**first, **second, "How much has team 4?": "g-0005"}
    assert len(registry.entries()) == 5


def test_a_corrected_item_keeps_the_id_of_the_one_it_corrects(tmp_path: Path) -> None:
    (original,) = candidates(1)
    ready = prepare([(original, decision(original))], [], "v", GoldenSettings())
    register(registry := Registry(tmp_path / "r.jsonl"), ready.given)
    corrected = replace(original, id="c-corrected", answer="21 days", parent_id=original.id)
    again = prepare([(corrected, decision(original))], registry.entries(), "v2", GoldenSettings())
    assert (again.items[0].id, again.items[0].split) == (ready.items[0].id, ready.items[0].split)
    assert again.items[0].provenance.first_frozen_in == "v"


def test_ids_prepared_before_another_release_are_refused(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "r.jsonl")
    register(registry, [GivenId("g-0001", "c-1", "tuning", "v", 0)])
    with pytest.raises(RegistryMoved):
        register(registry, [GivenId("g-0001", "c-2", "tuning", "v", 0)])


def test_the_checks_find_what_is_wrong() -> None:
    good = items(1, 2, 3)
    texts = {"rules.md": TEXT}
    assert checks.spans_resolve(good, texts) == []
    moved = replace(good[0], passages=(replace(good[0].passages[0], start_char=8, end_char=8 + 27),))
    assert checks.spans_resolve([moved], texts)
    assert checks.spans_resolve(good, {})
    assert checks.ids_stable([good[0], replace(good[1], id=good[0].id)], [], Known([]))
    entry = Registered("g-0009", good[0].provenance.candidate_id, "tuning", "v")
    assert checks.ids_stable(good, [], Known([entry]))
    sides = [replace(good[0], split="tuning"), replace(good[0], id="g-0100", split="held_out", question="Other?")]
    assert checks.split_leak_free(sides, 80) == ["g-0001 and g-0100 share evidence"]
    assert checks.split_leak_free([replace(i, split="tuning") for i in sides], 80) == []
    from ragds_pipeline.filters.funnel import step

    fine = [step("a", 3, 2, []), step("b", 2, 2, [])]
    assert checks.funnel_reconciles(fine, good[:2])
    right = [replace(fine[0], dropped=1, reasons=(ReasonCount("x", 1),)), fine[1]]
    assert checks.funnel_reconciles(right, good[:2]) == []
    assert checks.funnel_reconciles(right, good)


def test_texts_never_share_a_name(tmp_path: Path) -> None:
    (item,) = items(1)
    long = f"{'長' * 84}.docx"
    paths = ["a.docx", "a.docx.md", "A.md", "a.md", "b.pdf", "b.pdf.md/c.md", long, "caf\u00e9.md", "cafe\u0301.md"]
    passages = tuple(replace(item.passages[0], document_path=path) for path in paths)
    texts = {path: f"{path}\n{TEXT}" for path in paths}
    made = [
        freeze(Contents("v", [replace(item, passages=order)], (), texts, (), (), {}), tmp_path / name)
        for name, order in (("one", passages), ("other", passages[::-1]))
    ]
    files = [{d["document_path"]: d["file"] for d in verify(frozen.path)["documents"]} for frozen in made]
    assert files[0] == files[1] and len(set(files[0].values())) == len(paths)
    assert files[0]["a.docx.md"] == "texts/a.docx.md" and files[0]["b.pdf.md/c.md"] == "texts/b.pdf.md/c.md"
    for path, name in files[0].items():
        assert (made[0].path / name).read_text(encoding="utf-8") == texts[path]


@pytest.mark.parametrize("name", ["snapshot-0001.bak", "snapshot-0001 (copy)", "snapshot-x"])
def test_a_copy_beside_the_snapshots_is_none(tmp_path: Path, name: str) -> None:
    one = freeze(contents(items(1)), tmp_path)
    (one.path.parent / name).mkdir()
    (one.path.parent / "snapshot-0009").write_text("", encoding="utf-8")
    assert freeze(contents(items(1)), tmp_path).number == 1
    assert freeze(contents(items(1, 2)), tmp_path).number == 2
    assert [path.name for path in snapshots(one.path.parent)] == ["snapshot-0001", "snapshot-0002"]


def test_a_version_may_be_called_as_a_file_of_ours(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry.jsonl")
    register(registry, [GivenId("g-0001", "c-1", "tuning", "v", 0)])
    versions = ["registry.jsonl", "registry.jsonl_", "registry.lock", "Registry.JSONL", "v1"]
    made = {freeze(replace(contents(items(1)), source_version=v), tmp_path).path for v in versions}
    assert len(made) == len(versions) and len(registry.entries()) == 1


def test_no_id_is_registered_for_a_snapshot_that_cannot_be_made(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry.jsonl")

    def release(*numbers: int) -> None:
        accepted = [(c, decision(c)) for c in candidates(*numbers)]
        ready = prepare(accepted, registry.entries(), "v", GoldenSettings())
        freeze(contents(ready.items), tmp_path, lambda: register(registry, ready.given))

    release(1)
    (line,) = tmp_path.glob("*/snapshot-0001/golden_set.jsonl")
    before = line.read_bytes()
    line.write_bytes(b"")
    with pytest.raises(SnapshotDamaged):
        release(1, 2)
    assert len(registry.entries()) == 1
    line.write_bytes(before)
    release(1, 2)
    assert len(registry.entries()) == 2


def test_a_kill_between_register_and_snapshot_leaves_the_ids_to_their_items(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry.jsonl")
    accepted = [(c, decision(c)) for c in candidates(1, 2)]
    ready = prepare(accepted, [], "v", GoldenSettings())

    def killed() -> None:
        register(registry, ready.given)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        freeze(contents(ready.items), tmp_path, killed)
    assert not list(tmp_path.glob("*/snapshot-*")) and not list(tmp_path.glob("*/.staged*"))
    again = prepare([*accepted, *((c, decision(c)) for c in candidates(3))], registry.entries(), "v", GoldenSettings())
    ids = {item.question: item.id for item in ready.items}
    assert {i.question: i.id for i in again.items} == {**ids, "How much has team 3?": "g-0003"}


def test_an_edited_manifest_and_an_extra_file_are_noticed(tmp_path: Path) -> None:
    frozen = freeze(contents(items(1)), tmp_path)
    extra = frozen.path / "texts" / "extra.md"
    extra.write_text("x", encoding="utf-8")
    with pytest.raises(SnapshotDamaged, match=r"extra\.md is no part of the snapshot"):
        verify(frozen.path)
    extra.unlink()
    manifest = json.loads((frozen.path / "manifest.json").read_text(encoding="utf-8"))
    del manifest["files"]["golden_set.jsonl"]
    (frozen.path / "golden_set.jsonl").unlink()
    (frozen.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(SnapshotDamaged, match=r"manifest\.json was changed"):
        verify(frozen.path)


def test_snapshots_of_before_the_record_are_verified_and_put_on_record(tmp_path: Path) -> None:
    frozen = freeze(contents(items(1)), tmp_path)
    record = frozen.path.parent / "snapshots.jsonl"
    before = record.read_bytes()
    record.unlink()
    assert verify(frozen.path)["counts"]["items"] == 1
    assert not freeze(contents(items(1)), tmp_path).created and record.read_bytes() == before
