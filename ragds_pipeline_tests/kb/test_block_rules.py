from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from ragds_pipeline.kb.block_rules import with_fast_rules
from ragds_pipeline_tests.kb.markdown_texts import texts
from ragds_pipeline_tests.shared_data import shared_data


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")


_STOCK, _FAST = _parser(), with_fast_rules(_parser())


def _read(parser: MarkdownIt, text: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return all tokens but those inside tables, and the link targets."""
    tokens: list[Any] = []
    env: dict[str, Any] = {}
    parser.block.parse(text, parser, env, tokens)
    kept: list[dict[str, Any]] = []
    for token in tokens:
        if token.type == "table_close" or not (kept and kept[-1]["type"] == "table_open"):
            kept.append(token.as_dict())
    return kept, env


@settings(max_examples=500)
@given(texts)
def test_same_blocks_as_the_unchanged_parser(text: str) -> None:
    for candidate in (text, f"|a|b|\n|-|-|\n{text}"):
        assert _read(_FAST, candidate) == _read(_STOCK, candidate)


@pytest.mark.parametrize(
    "text",
    [
        "a\n===\nb\n---\nc\n= =\n",
        "> a\nlazy\n===\n> b\n    c\n",
        "- a\n  b\n---\n- c\n ===\n",
        "a\n| b | c |\n|---|---|\n| d | e |\n",
        "a | b\n--- | ---\nc | d\n",
        "a\n    b\n\tc\n# d\ne\n```\nf",
        "|a|\n|-|\n|b\n    c\n",
        "|a|\n|-|\n|b|\n- c\n",
        "|a|\n|-|\n\u00a0\n1\n2. d\n",
        "> |a|\n> |-|\n> |b|\nlazy\n",
        "- |a|\n  |-|\n  |b|\nc\n",
        "a\u00a0\n\u00a0\nb",
    ],
)
def test_same_blocks_where_it_is_close(text: str) -> None:
    assert _read(_FAST, text) == _read(_STOCK, text)


def test_same_blocks_on_real_documents() -> None:
    for source in ("18f-handbook/rev-2023-12-01", "srd-5.2.1-datapizza/docs"):
        for path in sorted(shared_data(source).rglob("*.md")):
            text = path.read_text(encoding="utf-8")
            assert _read(_FAST, text) == _read(_STOCK, text), path
