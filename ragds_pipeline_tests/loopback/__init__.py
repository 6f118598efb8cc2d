"""A loopback Messages server that the real Anthropic SDK talks to over HTTP.

It belongs to the tests: scripted answers, honest rejections, faults on demand. It is never a backend of
the product, binds to 127.0.0.1 only, and needs nothing but the standard library.

    with LoopbackServer(responder=Script([Task.when_system("judge", judge)])) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="test", max_retries=0)
"""

from ragds_pipeline_tests.loopback.answers import (
    Answer,
    Cite,
    Part,
    Responder,
    Script,
    Task,
    ToolUse,
    echo_responder,
    sample_of_schema,
)
from ragds_pipeline_tests.loopback.batches import BatchPlan, ItemOutcome
from ragds_pipeline_tests.loopback.books import ModelUsage, RecordedRequest, body_hash
from ragds_pipeline_tests.loopback.faults import Fault, FaultKind, FaultPlan
from ragds_pipeline_tests.loopback.malformed import MALFORMED_SHAPES, MalformedShape, malform
from ragds_pipeline_tests.loopback.server import LoopbackServer
from ragds_pipeline_tests.loopback.tokens import tokens_of

__all__ = [
    "MALFORMED_SHAPES",
    "Answer",
    "BatchPlan",
    "Cite",
    "Fault",
    "FaultKind",
    "FaultPlan",
    "ItemOutcome",
    "LoopbackServer",
    "MalformedShape",
    "ModelUsage",
    "Part",
    "RecordedRequest",
    "Responder",
    "Script",
    "Task",
    "ToolUse",
    "body_hash",
    "echo_responder",
    "malform",
    "sample_of_schema",
    "tokens_of",
]
