"""The ladder, rung by rung, and attacks on it: what must never carry over by itself does not."""

from __future__ import annotations

import pytest

from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.anchors.reasons import REASONS
from ragds_pipeline.records import AnchorEvent, Place, Rung, SpanMismatch
from ragds_pipeline_tests.anchors.revisions import PATH, revision, span, step

RULE = "Employees submit the expense form within 90 days of the trip."
FAR = "Nothing in this paragraph has to do with it; it only stands between. " * 4
DOC = (
    f"# Travel\n\nTravel is booked by the office. {FAR}\n\n## Expenses\n\n{RULE} Receipts are attached to it.\n\n"
    f"## Leave\n\n{FAR}Leave is asked for early.\n"
)


def carried(event: AnchorEvent, rung: str) -> bool:
    return (event.rung, event.carries, event.reason) == (rung, True, "ok")


def test_an_unchanged_document_needs_no_text() -> None:
    [event] = reanchor([span({PATH: DOC}, RULE)], revision("v1", {PATH: DOC}), revision("v2", {PATH: DOC}))
    assert carried(event, Rung.UNCHANGED) and event.new_content == RULE and not event.section_changed
    assert (event.from_version, event.to_version, event.score, event.context_score) == ("v1", "v2", 1.0, 1.0)

    def refuse(path: str) -> str:
        raise AssertionError(f"{path} was loaded")

    old = revision("v1", {PATH: DOC})
    lazy = type(old)("v1", old.documents, refuse)
    [event] = reanchor([span({PATH: DOC}, RULE)], lazy, lazy)
    assert event.carries


def test_the_same_place_in_a_changed_document() -> None:
    event = step(DOC, DOC.replace("asked for early", "asked for late"), RULE)
    assert carried(event, Rung.SAME_PLACE) and not event.section_changed


def test_moved_down_by_a_new_section() -> None:
    event = step(DOC, "## New 𠮷 section\n\nText.\n\n" + DOC, RULE)
    assert carried(event, Rung.MOVED) and not event.section_changed and event.new_start_char > event.start_char


@pytest.mark.parametrize(
    "reformatted",
    [
        RULE.replace("expense form", "expense\nform"),
        RULE.replace("expense form", "**expense form**"),
        RULE.replace("expense form", "[expense form](../forms/expense.md)"),
        RULE.replace("90 days", "９０ days"),
        RULE.replace("expense form", "`expense` form"),
    ],
)
def test_reformatted(reformatted: str) -> None:
    event = step(DOC, DOC.replace(RULE, reformatted), RULE)
    assert carried(event, Rung.REFORMATTED)
    assert event.new_content == reformatted and event.word_diff


@pytest.mark.parametrize(
    ("old", "new", "reason", "change"),
    [
        ("within 90 days", "within 30 days", "meaning_changed", "changed number 90 -> 30"),
        ("within 90 days", "within ninety days", "meaning_changed", "changed number 90 -> ninety"),
        ("submit the", "do not submit the", "meaning_changed", "added negation not"),
        ("submit the", "may submit the", "meaning_changed", "added modal may"),
        ("submit the", "~~submit~~ the", "meaning_changed", "added strike-through ~~ ~~"),
        ("expense form", "Expense form", "meaning_changed", "added name Expense"),
        ("the trip", "the journey", "edited", ""),
    ],
)
def test_edits_go_to_people_however_small(old: str, new: str, reason: str, change: str) -> None:
    edited = RULE.replace(old, new)
    event = step(DOC, DOC.replace(RULE, edited), RULE)
    assert not event.carries and event.reason == reason
    assert event.new_content == edited and event.score > 0.75
    assert (change in event.meaning_changes) if change else not event.meaning_changes
    assert "[-" in event.word_diff or "{+" in event.word_diff


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("the room measures 20 m² and costs little", "the room measures 20 m2 and costs little", "meaning_changed"),
        ("a notebook takes ½ of the table here", "a notebook takes 1⁄2 of the table here", "meaning_changed"),
        ("they come some times to the office", "they come sometimes to the office", "reading_changed"),
        ("the form must be signed by the office", "the form MUST be signed by the office", "meaning_changed"),
        ("a link [to the form](https://a.org) is sent", "a link [to the form](https://b.org) is sent", "link_changed"),
        ("write [to the office](mailto:a@b.org) today", "write [to the office](mailto:c@b.org) today", "link_changed"),
    ],
)  # fmt: skip
def test_a_match_by_key_that_may_change_the_meaning_goes_to_people(old: str, new: str, reason: str) -> None:
    event = step(f"# A\n\n{old}\n", f"# A\n\n{new}\n", old)
    assert (event.carries, event.reason) == (False, reason), event
    assert event.new_content == new


def test_indentation_is_meaning_in_code() -> None:
    code = "if ready:\n    start()\n    report_to_all()"
    old, new = f"```\n{code}\n```\n", "```\nif ready:\n    start()\nreport_to_all()\n```\n"
    assert step(old, new, code).reason == "layout_changed"
    indented = "\n".join("  " + line for line in code.split("\n"))
    assert carried(step(old, f"```\n{indented}\n```\n", code), Rung.REFORMATTED)


@pytest.mark.parametrize(
    ("old", "new", "quote", "reason"),
    [
        ("We say: smoke in the garden only, please.", "We say: do not smoke in the garden only, please.",
         "smoke in the garden only", "sentence_changed"),
        ("You may:\n\n- share your password\n- go home", "You may not:\n\n- share your password\n- go home",
         "share your password", "lead_in_changed"),
        ("This is allowed.\n\n- share your password\n- go", "This is forbidden.\n\n- share your password\n- go",
         "share your password", "lead_in_changed"),
        ("- Allowed:\n  - share your password", "- Forbidden:\n  - share your password", "share your password",
         "lead_in_changed"),
        ("| Thing | Allowed |\n|---|---|\n| password sharing | yes |\n",
         "| Thing | Forbidden |\n|---|---|\n| password sharing | yes |\n",
         "| password sharing | yes |", "lead_in_changed"),
        ("| password sharing | yes |\n|---|---|\n| a | b |", "| password sharing | no |\n|---|---|\n| a | b |",
         "| password sharing |", "sentence_changed"),
        ("# Rules\n\nUse the side door always.\n", "# Rules no longer in force\n\nUse the side door always.\n",
         "Use the side door always.", "heading_changed"),
        ("# Rates 2025\n\nUse the side door always.\n", "# Rates 2026\n\nUse the side door always.\n",
         "Use the side door always.", "heading_changed"),
        ("---\nstatus: current\n---\n# A\n\nUse the side door always.\n",
         "---\nstatus: deprecated\n---\n# A\n\nUse the side door always.\n", "Use the side door always.",
         "heading_changed"),
        ("# A\n\nUse the side door always.\n", "# A\n\n<!-- Use the side door always. -->\n",
         "Use the side door always.", "state_changed"),
        ("# A\n\nUse the side door always.\n", "# A\n\n~~Use the side door always.~~\n",
         "Use the side door always.", "state_changed"),
        ("# A\n\nUse the side door always.\n", "# A\n\n```\nUse the side door always.\n```\n",
         "Use the side door always.", "state_changed"),
        ("# A\n\nUse the side door always.\n", "# A\n\n> Use the side door always.\n",
         "Use the side door always.", "state_changed"),
        ("喫煙は庭で行うことができる。", "喫煙は庭で行うことができるわけではない。", "喫煙は庭で行うことができる",
         "sentence_changed"),
    ],
)  # fmt: skip
def test_what_stands_around_can_turn_the_meaning(old: str, new: str, quote: str, reason: str) -> None:
    event = step(old, new, quote)
    assert (event.carries, event.reason) == (False, reason), event
    assert event.new_content == quote and event.section_changed and event.detail


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Receipts are attached to it.", "Receipts are thrown away."),
        ("## Leave", "## Absence"),
        (f"{FAR}\n\n## Expenses", f"{FAR}It is never read.\n\n## Expenses"),
    ],
)
def test_edits_nearby_mark_the_span_and_let_it_carry(old: str, new: str) -> None:
    event = step(DOC, DOC.replace(old, new), RULE)
    assert event.carries and event.section_changed


def test_moved_under_another_heading_is_marked() -> None:
    new = DOC.replace(RULE + " ", "").replace("## Leave\n\n", f"## Leave\n\n{RULE}\n\n")
    event = step(DOC, new, RULE)
    assert carried(event, Rung.MOVED) and event.section_changed


BOILER = "This object may be extended with extensions of its own."


def boiler(*names: str) -> str:
    return "".join(f"## The {name} thing\n\nAbout {name} only.\n\n{BOILER}\n\nEnd of {name}.\n\n" for name in names)


def test_repeated_boilerplate_is_told_apart_by_its_surroundings() -> None:
    old, new = boiler("red", "green", "blue"), "Intro.\n\n" + boiler("white", "green", "blue", "red")
    for nth, name in enumerate(["red", "green", "blue"]):
        event = step(old, new, BOILER, nth)
        assert event.carries and new[: event.new_start_char].endswith(f"About {name} only.\n\n")
        assert len(event.alternatives) == 3


def test_equal_quotes_whose_surroundings_swapped_follow_them() -> None:
    # Both texts have the same length: by offsets alone, each quote would stay where it was.
    event = step(boiler("red", "tan"), boiler("tan", "red"), BOILER, 0)
    assert event.carries and boiler("tan", "red")[: event.new_start_char].endswith("About red only.\n\n")


def test_a_deleted_copy_is_not_taken_over_by_its_twin() -> None:
    event = step(boiler("red", "green", "blue"), boiler("red", "blue"), BOILER, 1)
    assert (event.carries, event.reason) == (False, "copy_gone")
    assert len({event.new_start_char, *(place.start_char for place in event.alternatives)}) == 2


def test_copies_that_nothing_tells_apart_go_to_people_with_all_places() -> None:
    old = "\n\n".join([BOILER] * 3)
    event = step(old, old + "\n\n" + BOILER, BOILER, 1)
    assert (event.carries, event.reason) == (False, "ambiguous")
    assert len(event.alternatives) == 3


def test_rows_of_a_table_are_told_apart() -> None:
    rows = "".join(f"| {plan} | monthly payment |\n" for plan in ("Basic", "Plus", "Pro"))
    table = f"| Plan | Price |\n|---|---|\n{rows}"
    event = step(table, table.replace("| Basic | monthly payment |\n", ""), "monthly payment", 1)
    assert event.carries and event.new_start_char == table.replace("| Basic | monthly payment |\n", "").index("monthly")
    gone = step(table, table.replace("| Plus | monthly payment |\n", ""), "monthly payment", 1)
    assert not gone.carries


def test_a_renamed_file_is_followed() -> None:
    event = step({PATH: DOC}, {"guides/travel.md": DOC}, RULE)
    assert carried(event, Rung.RELOCATED) and event.new_document_path == "guides/travel.md"
    event = step({PATH: DOC}, {"guides/travel.md": DOC.replace("early", "late")}, RULE)
    assert carried(event, Rung.RELOCATED)
    edited = DOC.replace("early", "late").replace("90", "30")
    event = step({PATH: DOC}, {"guides/travel.md": edited}, RULE)
    assert (event.rung, event.carries) == (Rung.RELOCATED_EDITED, False)
    assert event.meaning_changes == ("changed number 90 -> 30",)


def test_a_split_file_is_followed() -> None:
    first, second = DOC.split("## Leave")
    event = step(
        {PATH: DOC}, {PATH: "# Travel\n\nSee the other pages.\n", "a.md": first, "b.md": "## Leave" + second}, RULE
    )
    assert carried(event, Rung.RELOCATED) and event.new_document_path == "a.md"


def test_a_file_merged_into_another_is_followed() -> None:
    other = "# Handbook\n\nWelcome to all of us.\n\n"
    event = step({PATH: DOC, "all.md": other}, {"all.md": other + DOC}, RULE)
    assert carried(event, Rung.RELOCATED) and event.new_start_char == len(other) + DOC.index(RULE)


def test_moved_to_another_file_and_edited_is_proposed_to_people() -> None:
    edited = RULE.replace("90", "30").replace("the trip", "your trip")
    event = step({PATH: DOC}, {PATH: DOC.replace(RULE, ""), "new.md": f"# Other\n\nSome words.\n\n{edited}\n"}, RULE)
    assert (event.rung, event.carries, event.new_content) == (Rung.RELOCATED_EDITED, False, edited)


def test_the_original_deleted_and_an_old_copy_elsewhere_goes_to_people() -> None:
    texts = {PATH: DOC, "copy.md": f"# Copy\n\n{RULE}\n"}
    event = step(texts, {**texts, PATH: DOC.replace(RULE, "")}, RULE)
    assert (event.rung, event.reason, event.new_document_path) == (Rung.RELOCATED, "copy_gone", "copy.md")
    changed_too = {PATH: DOC.replace(RULE, ""), "copy.md": f"# Copy\n\nHello.\n\n{RULE}\n"}
    assert step(texts, changed_too, RULE).reason == "copy_gone"


def test_an_edited_original_is_not_replaced_by_a_stale_copy() -> None:
    texts = {PATH: DOC, "copy.md": f"# Copy\n\n{RULE}\n"}
    event = step(texts, {**texts, PATH: DOC.replace("90", "30")}, RULE)
    assert (event.rung, event.new_document_path, event.carries) == (Rung.EDITED, PATH, False)
    assert [place.document_path for place in event.alternatives] == ["copy.md"]


def test_a_few_words_in_other_surroundings_may_be_chance() -> None:
    old = "# Colours\n\nThe wall of the room is light grey today, they say.\n"
    new = "# Sound\n\nNothing to see in this place any more.\n\nlight grey today\n"
    event = step(old, new, "light grey today")
    assert not event.carries


def test_what_is_gone_is_lost() -> None:
    event = step(DOC, "# Travel\n\nNothing at all is left of what this page once said about money.\n", RULE)
    assert (event.rung, event.carries, event.reason, event.new_start_char) == (Rung.LOST, False, "lost", -1)
    assert step({PATH: DOC}, {}, RULE).rung == Rung.LOST


def test_alternatives_are_those_of_the_new_revision() -> None:
    copies = {"one.md": f"# One\n\n{RULE}\n", "two.md": f"# Two\n\n{RULE}\n", "three.md": "# Three\n\nHello.\n"}
    old = {PATH: DOC, **copies}
    new = {
        PATH: "Intro.\n\n" + DOC,
        "one.md": copies["one.md"],
        "two.md": "# Two\n\nGone.\n",
        "three.md": f"# Three\n\n{RULE}\n",
    }
    event = step(old, new, RULE)
    assert event.alternatives == tuple(
        Place(path, (at := new[path].index(RULE)), at + len(RULE)) for path in ("one.md", "three.md")
    )
    # The document of this span did not change; its alternatives did.
    event = step(old, new, RULE, path="one.md")
    assert event.rung == Rung.UNCHANGED
    assert [place.document_path for place in event.alternatives] == [PATH, "three.md"]


def test_a_span_that_is_not_in_its_document_is_refused() -> None:
    wrong = AnchoredSpan("g-0001", 0, True, PATH, 0, 5, "wrong")
    with pytest.raises(SpanMismatch):
        reanchor([wrong], revision("v1", {PATH: DOC}), revision("v2", {PATH: DOC + "x"}))
    with pytest.raises(SpanMismatch, match="not a document of v1"):
        reanchor([wrong], revision("v1", {}), revision("v2", {PATH: DOC}))


def test_a_span_keeps_the_white_space_at_its_ends() -> None:
    event = step(DOC, "Intro.\n\n" + DOC, RULE + " ")
    assert carried(event, Rung.MOVED) and event.new_content == RULE + " "


def test_every_reason_is_explained() -> None:
    assert all(REASONS.values()) and "ok" not in REASONS
