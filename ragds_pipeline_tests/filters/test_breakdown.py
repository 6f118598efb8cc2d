"""The funnel in parts: they add up to the whole whatever was kept and dropped, and say so where they do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ragds_pipeline.filters.breakdown import KEPT, By, Kind, Stage, by_reason, cells, faults, parts
from ragds_pipeline.filters.funnel import step
from ragds_pipeline.filters.funnel_report import examples_table, parts_table, picture, reasons_table, why_table
from ragds_pipeline.records import Drop, FunnelStep, ReasonCount
from ragds_pipeline.storage import svg

KINDS = st.builds(Kind, st.sampled_from(["a.md", "b.md"]), st.sampled_from(["fact", ""]), st.sampled_from(["en", "ja"]))
FATES = st.sampled_from([KEPT, "bad", "worse"])


def drop(kind: Kind, reason: str, stage: str, number: int) -> Drop:
    path, type_, language = kind.document_path, kind.type, kind.language
    return Drop(stage, reason, f"detail {number}", path, f"c-{number}", f"q {number}|", type_, language, 0, "")


def stages_of(items: list[tuple[Kind, list[str]]]) -> list[Stage]:
    """Send items through stages; each has a fate in every stage that it reaches."""
    stages = []
    for at in range(3):
        here = [(n, kind, fates[at]) for n, (kind, fates) in enumerate(items) if all(f == KEPT for f in fates[:at])]
        drops = [drop(kind, fate, f"s{at}", n) for n, kind, fate in here if fate != KEPT]
        kept = Counter(kind for _, kind, fate in here if fate == KEPT)
        stages.append(Stage(step(f"s{at}", len(here), sum(kept.values()), drops), kept, drops))
    return stages


@given(st.lists(st.tuples(KINDS, st.lists(FATES, min_size=3, max_size=3)), max_size=40))
def test_all_parts_add_up_to_the_whole(items: list[tuple[Kind, list[str]]]) -> None:
    stages = stages_of(items)
    steps, found = [stage.step for stage in stages], cells(stages)
    assert not faults(steps, found)
    names = [each.stage for each in steps]
    ways: tuple[By, ...] = ("document", "type", "language")
    for by in ways:
        split = parts(found, names, by)
        assert sum(part.came_in for part in split) == len(items)
        assert [sum(part.kept[at] for part in split) for at in range(3)] == [each.kept for each in steps]
        assert sum(n for part in split for _, n in part.reasons) == sum(each.dropped for each in steps)
        for part in split:
            assert part.came_in == part.kept[-1] + sum(n for _, n in part.reasons), "of one kind as of all"
    counted = sum(each.count for each in by_reason(stages))
    assert counted == sum(each.dropped for each in steps)


@given(st.lists(st.tuples(KINDS, st.lists(FATES, min_size=3, max_size=3)), min_size=1, max_size=20), st.data())
def test_a_part_that_is_changed_is_found(items: list[tuple[Kind, list[str]]], data: st.DataObject) -> None:
    stages = stages_of(items)
    steps, found = [stage.step for stage in stages], cells(stages)
    at = data.draw(st.integers(0, len(found) - 1))
    change = data.draw(st.sampled_from([1, -1]))
    changed = [replace(c, count=c.count + change) if n == at else c for n, c in enumerate(found)]
    assert faults(steps, changed)
    assert faults(steps, [c for n, c in enumerate(found) if n != at])
    assert faults(steps, [*found, replace(found[at], stage="elsewhere")])


def test_examples_are_few_and_lead_to_the_story() -> None:
    kind = Kind("a.md", "fact", "en")
    drops = [drop(kind, "bad", "s", n) for n in range(5)] + [replace(drop(kind, "bad", "s", 9), item_id="")]
    stages = [Stage(step("s", 6, 0, drops), {}, drops)]
    (reason,) = by_reason(stages)
    assert reason.count == 6 and [d.item_id for d in reason.examples] == ["c-0", "c-1", "c-2"]
    table = examples_table([reason])
    assert table.count("`ragds why c-") == 3 and "q 0\\|" in table


def test_the_tables_say_what_they_know() -> None:
    stages = stages_of([(Kind("a|b.md", "fact", "en"), [KEPT, "bad", KEPT]), (Kind("c.md", "", "ja"), [KEPT] * 3)])
    names, found = ["s0", "s1", "s2"], cells(stages)
    table = parts_table(parts(found, names, "document"), names, "document")
    assert "| a\\|b.md | 1 | 1 | 0 | 0 |" in table and "| **all** | **2** | **2** | **1** | **1** |" in table
    assert "(not known)" in parts_table(parts(found, names, "type"), names, "type")
    assert "bad 1" in why_table(parts(found, names, "language"), "language")
    assert "| bad | 1 | it is bad |" in reasons_table(by_reason(stages), {"bad": "it is bad"})
    assert why_table([], "x") == reasons_table([]) == examples_table([]) == "Nothing was dropped."


def test_the_picture_of_the_usual_funnel_is_shown_at_once() -> None:
    names = ("generate", "code", "ambiguity", "closed_book", "support", "class", "review", "freeze")
    counts = [(99_999 - at * 1111, 99_999 - (at + 1) * 1111) for at in range(8)]
    steps = [
        FunnelStep(name, came, kept, came - kept, (ReasonCount("r", came - kept),))
        for name, (came, kept) in zip(names, counts, strict=True)
    ]
    assert len(svg.as_markdown(picture(steps), "in and kept, by stage")) < svg.SHOWN_AT_ONCE
    assert picture([]).startswith("<svg")


def test_no_name_breaks_out_of_a_picture() -> None:
    drawn = picture([FunnelStep('<script>alert("x")</script>\x00', 1, 1, 0, ())])
    assert "<script" not in drawn and "\x00" not in drawn
