"""Small documents and outlines for tests."""

from __future__ import annotations

import hashlib

from ragds_pipeline.kb.normalise import NORMALISER_VERSION, front_matter_end
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.kb.passages import passages
from ragds_pipeline.kb.structure import parse
from ragds_pipeline.records import Document, Draft, Quote, draft_id


def document(text: str, path: str = "rules.md", language: str = "en", confidential: bool = False) -> Document:
    """Return a document with ``text`` as it is."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Document(
        path=path,
        title=path,
        language=language,
        text=text,
        source_sha256=digest,
        text_sha256=digest,
        source_bytes=len(text.encode()),
        source_version="v1",
        encoding="utf-8",
        changed_by_normalising=False,
        normaliser_version=NORMALISER_VERSION,
        converter="none",
        front_matter_end=front_matter_end(text),
        confidential=confidential,
    )


def outline(text: str, path: str = "rules.md", language: str = "en", confidential: bool = False) -> Outline:
    """Return the outline of a document with ``text``."""
    doc = document(text, path, language, confidential)
    found = parse(path, text, doc.text_sha256, doc.front_matter_end)
    return Outline(doc, passages(path, text, doc.text_sha256, found.sections, found.blocks, 400, 800))


def draft(
    question: str, answer: str, *quotes: str | Quote, path: str = "rules.md", type_: str = "fact", round_: int = 0
) -> Draft:
    """Return a draft; quotes that are plain texts have no known place."""
    found = tuple(q if isinstance(q, Quote) else Quote(q, -1, -1) for q in quotes)
    return Draft(
        id=draft_id(path, question, answer, [q.text for q in found]),
        document_path=path,
        question=question,
        answer=answer,
        type=type_,
        difficulty="easy",
        hops="single",
        language="en",
        source_version="v1",
        quotes=found,
        window_start=0,
        window_end=10**9,
        origin="generated",
        parent_id="",
        round=round_,
        request_key="k",
        model="m",
        prompt_version="p",
    )
