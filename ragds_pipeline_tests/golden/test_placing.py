"""What stands around a span that was found again, against the outlines of whole documents."""

from __future__ import annotations

from pathlib import Path

from ragds_pipeline.anchors.finding import AnchoredSpan
from ragds_pipeline.anchors.reanchor import reanchor
from ragds_pipeline.anchors.revision import Revision
from ragds_pipeline.golden.placing import Placed, placed
from ragds_pipeline.records import Document, Passage, sha256_text
from ragds_pipeline.spans.locate import context
from ragds_pipeline.storage.tables import TableFile, TableWriter
from ragds_pipeline_tests.documents import outline

TEXT = "# Leave\n\n" + "".join(f"## Team {n}\n\nTeam {n} gets {n + 20} days — 休暇 🏖 a year.\n\n" for n in range(60))


def test_spans_get_the_words_around_them_and_their_passage_from_the_tables(tmp_path: Path) -> None:
    outlines = {path: outline(text, path) for path, text in {"a.md": TEXT, "b.md": f"New.\n\n{TEXT}"}.items()}
    documents, passages = TableFile(tmp_path / "d"), TableFile(tmp_path / "p")
    with TableWriter(documents.path, Document) as docs, TableWriter(passages.path, Passage) as cut:
        for each in outlines.values():
            docs.add(each.document, 5_000_000)  # a row group each
            for passage in each.passages:
                cut.add(passage, 1_000_000)
    quotes = ["Team 3 gets 23 days", "days — 休暇 🏖 a year.\n\n## Team 9", "Team 59 gets 79 days — 休暇 🏖 a year."]
    spans = [
        AnchoredSpan(path, at, True, path, TEXT.index(quote), TEXT.index(quote) + len(quote), quote)
        for path in outlines
        for at, quote in enumerate(quotes)
    ] + [AnchoredSpan("gone", 0, True, "c.md", 0, 13, "Nothing of it")]
    new = {path: each.text for path, each in outlines.items()}
    old = {"a.md": TEXT, "b.md": TEXT, "c.md": "Nothing of it stands here any more."}
    before, after = (
        Revision(name, {path: sha256_text(text) for path, text in texts.items()}, texts.__getitem__)
        for name, texts in (("v1", old), ("v2", new))
    )
    events = reanchor(spans, before, after)
    found = placed(events, documents, passages)
    assert found.keys() == {(path, at) for path in outlines for at in range(3)}
    for event in events[:-1]:
        whole = outlines[event.new_document_path]
        start, end = event.new_start_char, event.new_end_char
        chunk = whole.passage_at(start).id
        expected = Placed(event.new_content, *context(whole.text, start, end), chunk)
        assert found[event.item_id, event.span_index] == expected
    assert len({each.chunk_id for each in found.values()}) > 2
    assert placed([], documents, passages) == {}
