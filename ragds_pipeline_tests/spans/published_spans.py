"""Spans that others have published, each with the text it lies in: (name, normalised text, start, end,
content)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ragds_pipeline.kb.normalise import normalise
from ragds_pipeline_tests.shared_data import shared_data

PublishedSpan = tuple[str, str, int, int, str]


@cache
def _normalised(path: Path) -> str:
    return normalise(path.read_bytes().decode("utf-8"))


def datapizza() -> Iterator[PublishedSpan]:
    """The 264 passages of the Datapizza D&D questions."""
    documents = shared_data("srd-5.2.1-datapizza/docs")
    published = shared_data("datapizza-qa-offsets/questions_offsets.json")
    for question in json.loads(published.read_text(encoding="utf-8")):
        for passage in question["passages"]:
            name = passage["document_path"]
            text = _normalised(documents / name)
            yield name, text, passage["start_char"], passage["end_char"], passage["content"]


def chroma() -> Iterator[PublishedSpan]:
    """The 790 references of Chroma's chunking evaluation."""
    corpora = shared_data("chroma-chunking-evaluation/corpora")
    published = shared_data("chroma-chunking-evaluation/questions_df.csv")
    with published.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            name = f"{row['corpus_id']}.md"
            for reference in json.loads(row["references"]):
                text = _normalised(corpora / name)
                yield name, text, reference["start_index"], reference["end_index"], reference["content"]


def jsquad() -> Iterator[PublishedSpan]:
    """The answers of JSQuAD's validation set, each once, in their paragraphs."""
    published = json.loads(shared_data("jsquad/valid-v1.3.json").read_text(encoding="utf-8"))
    for article in published["data"]:
        for paragraph in article["paragraphs"]:
            text = normalise(paragraph["context"])
            answers = {(answer["answer_start"], answer["text"]) for qa in paragraph["qas"] for answer in qa["answers"]}
            for start, content in sorted(answers):
                yield article["title"], text, start, start + len(content), content
