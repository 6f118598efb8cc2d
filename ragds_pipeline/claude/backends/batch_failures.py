"""What an error of the API means for the requests of a batch."""

from __future__ import annotations

import json

import anthropic
import httpx2

from ragds_pipeline.claude.requests import Failure
from ragds_pipeline.claude.retry import trouble

BROKEN_OFF = (anthropic.APIConnectionError, httpx2.HTTPError, json.JSONDecodeError)
"""No answer, or half of one."""

PASSING = (*BROKEN_OFF, anthropic.AnthropicError)
"""What a call about a batch may raise without the batch itself being at fault."""


def failure_of(key: str, error: Exception) -> Failure:
    """Return the failure that an error of the SDK or the connection is to a request that is in no batch."""
    found = trouble(error)
    return Failure(key, found.reason, found.detail)
