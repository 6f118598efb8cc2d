"""What became of each document, and which passages are new."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.kb.changes import _standing, by_status, compare, first_revision
from ragds_pipeline.records import DocumentChange, Passage, sha256_text

A, B, C = "The first rule grants ten days.", "The second rule costs four euros.", "A third rule, quite new."


def passages_of(texts: dict[str, str]) -> dict[str, list[Passage]]:
    """Cut every text at its blank lines."""
    found: dict[str, list[Passage]] = {}
    for path, text in texts.items():
        at, cut = 0, []
        for number, part in enumerate(text.split("\n\n"), start=1):
            end = min(len(text), at + len(part) + 2)
            cut.append(Passage(f"{path}#{number}", path, sha256_text(text), (), at, end, text[at:end]))
            at = end
        found[path] = cut
    return found


def changes(before: dict[str, str], now: dict[str, str]) -> dict[str, DocumentChange]:
    def texts(paths: Iterable[str]) -> dict[str, str]:
        return {path: before[path] for path in paths}

    cut = passages_of(now)
    found = compare(
        {path: sha256_text(text) for path, text in before.items()},
        {path: sha256_text(text) for path, text in now.items()},
        texts,
        lambda paths: [p for path in paths for p in cut[path]],
        "v1",
    )
    return {change.document_path: change for change in found}


def test_each_status_is_told() -> None:
    before = {"same.md": A, "edited.md": f"{A}\n\n{B}", "old.md": B, "gone.md": C}
    now = {
        "same.md": A,
        "edited.md": f"{A}\n\n{B.replace('four', 'five')}",
        "new-name.md": B,
        "added.md": "Never seen.",
    }
    found = changes(before, now)
    assert {path: change.status for path, change in found.items()} == {
        "same.md": "unchanged", "edited.md": "changed", "new-name.md": "renamed", "gone.md": "removed",
        "added.md": "added",
    }  # fmt: skip
    assert found["new-name.md"].was == "old.md" and "old.md" not in found
    assert found["edited.md"].fresh == (len(A) + 2,) and found["added.md"].fresh == (0,)
    assert found["edited.md"].fresh_characters == len(B)
    assert by_status(list(found.values())) == {"added": 1, "changed": 1, "renamed": 1, "removed": 1, "unchanged": 1}


def test_what_only_moved_or_was_wrapped_anew_is_not_new() -> None:
    before = {"one.md": f"{A}\n\n{B}", "two.md": C}
    now = {"one.md": f"{B}\n\n{A.replace(' rule', chr(10) + 'rule')}", "two.md": C, "three.md": f"{A}\n\n{C}"}
    found = changes(before, now)
    assert found["one.md"].status == "changed" and found["one.md"].fresh == ()
    # C stands in a document that has not changed: a copy of it is new text to ask about, unlike what moved.
    assert found["three.md"].fresh == (len(A) + 2,)


def test_a_first_revision_is_asked_about_as_a_whole() -> None:
    assert [(c.document_path, c.status) for c in first_revision(["b", "a"])] == [("a", "first"), ("b", "first")]


PARTS = st.lists(st.sampled_from([A, B, C, "x", "", "12 days", "13 days"]), min_size=1, max_size=4)
KB = st.dictionaries(st.sampled_from(["a.md", "b.md", "c.md"]), PARTS.map("\n\n".join), max_size=3)


@given(before=KB, now=KB)
def test_every_document_has_one_status_and_unchanged_ones_nothing_new(
    before: dict[str, str], now: dict[str, str]
) -> None:
    found = changes(before, now)
    told = set(found) | {change.was for change in found.values() if change.was}
    assert told == before.keys() | now.keys()
    for path, change in found.items():
        if change.status in ("unchanged", "renamed", "removed"):
            assert not change.fresh and not change.fresh_characters
        if path in now and before.get(path) == now[path]:
            assert change.status == "unchanged"


WORDS = st.text(alphabet="abé日", min_size=1, max_size=20)


@given(st.lists(WORDS, min_size=1, max_size=8), st.data())
def test_what_stands_is_what_a_plain_search_finds(keys: list[str], data: st.DataObject) -> None:
    there = st.lists(st.sampled_from(keys), max_size=3).map("".join)
    texts = data.draw(st.lists(st.one_of(there, WORDS), max_size=4))
    assert _standing(set(keys), texts) == {key for key in keys if any(key in text for text in texts)}
