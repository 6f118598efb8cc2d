"""Finding what a citation points at: the request's documents and search results, and a quote's wire
location."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ragds_pipeline_tests.loopback.answers import Body, Cite
from ragds_pipeline_tests.loopback.jsonkinds import is_array, is_object, object_at


def content_blocks(body: Body) -> Iterator[dict[str, Any]]:
    """Every content block of the messages in order, those inside tool results included."""

    def walk(content: Any) -> Iterator[dict[str, Any]]:
        if is_array(content):
            for block in content:
                if is_object(block):
                    yield block
                    if block.get("type") == "tool_result":
                        yield from walk(block.get("content"))

    for message in body.get("messages", []):
        yield from walk(message.get("content"))


def citable(body: Body, kind: str) -> list[dict[str, Any]]:
    """The `document` or `search_result` blocks, in the order the API counts them."""
    return [block for block in content_blocks(body) if block.get("type") == kind]


def citations_on(block: dict[str, Any]) -> bool:
    """Whether a document or search result asks to be cited."""
    return bool(object_at(block, "citations").get("enabled"))


def wire_citation(cite: Cite | dict[str, Any], body: Body) -> dict[str, Any]:
    """The citation as the API writes it. A raw dict passes untouched; a quote that is not there raises,
    because a script that cites what the source lacks is a mistake of the test."""
    if not isinstance(cite, Cite):
        return cite
    kind, index = ("document", cite.document) if cite.search_result is None else ("search_result", cite.search_result)
    sources = citable(body, kind)
    if index >= len(sources):
        raise LookupError(f"the script cites {kind} {index}, but the request has {len(sources)}")
    source = sources[index]
    if not citations_on(source):
        raise LookupError(f"the script cites {kind} {index}, but the request does not enable citations on it")
    if kind == "search_result":
        block, text = _block_with(source["content"], cite.quote)
        return {
            "type": "search_result_location",
            "cited_text": text,
            "source": source["source"],
            "title": source.get("title"),
            "search_result_index": index,
            "start_block_index": block,
            "end_block_index": block + 1,
        }
    common = {"document_index": index, "document_title": source.get("title"), "file_id": None}
    origin = source["source"]
    if origin["type"] == "content":
        inner = origin["content"]
        block, text = _block_with([{"text": inner}] if isinstance(inner, str) else inner, cite.quote)
        span = {"start_block_index": block, "end_block_index": block + 1}
        return {"type": "content_block_location", "cited_text": text, **common, **span}
    if origin["type"] == "text":
        start = origin["data"].find(cite.quote)
        if start < 0:
            raise LookupError(f"document {index} does not contain the quote {cite.quote!r}")
        span = {"start_char_index": start, "end_char_index": start + len(cite.quote)}
        return {"type": "char_location", "cited_text": cite.quote, **common, **span}
    raise LookupError(f"document {index} has source type {origin['type']!r}; script its citation as a wire dict")


def _block_with(blocks: list[dict[str, Any]], quote: str) -> tuple[int, str]:
    for position, block in enumerate(blocks):
        if quote in block.get("text", ""):
            return position, block["text"]
    raise LookupError(f"no block contains the quote {quote!r}")
