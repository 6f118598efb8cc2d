"""Which SDK client speaks to which provider. Credentials come from the environment and from nowhere else."""

from __future__ import annotations

import importlib.util
import os
import ssl
from functools import cache
from typing import TYPE_CHECKING, Any

from ragds_pipeline.config import ClaudeSettings, ConfigError

# The SDK takes seconds to load, and most processes (a UI, a status, a replay) never send anything.
if TYPE_CHECKING:
    import anthropic

    Client = anthropic.AsyncAnthropic | anthropic.AsyncAnthropicBedrock | anthropic.AsyncAnthropicVertex

API_KEY = "ANTHROPIC_API_KEY"


_NEEDS = {"bedrock": "boto3", "vertex": "google.auth"}


def open_client(settings: ClaudeSettings, api_key: str) -> Client:
    """Return the client of the configured provider, with the SDK's own retries off.

    Raises:
        ConfigError: If the provider's extra is not installed, or its region or project is not set.
    """
    import anthropic

    if settings.provider != "anthropic":
        _check_extra(settings.provider)
    http = anthropic.DefaultAsyncHttpxClient(verify=_tls(), timeout=settings.timeout_s)
    common: dict[str, Any] = {
        "base_url": settings.base_url, "max_retries": 0, "timeout": settings.timeout_s, "http_client": http,
    }  # fmt: skip
    if settings.provider == "anthropic":
        return anthropic.AsyncAnthropic(api_key=api_key, **common)
    try:
        if settings.provider == "bedrock":
            return anthropic.AsyncAnthropicBedrock(**common)
        return anthropic.AsyncAnthropicVertex(**common)
    except ValueError as error:
        raise ConfigError(f"claude.provider: {settings.provider}: {error}") from error


@cache
def _tls() -> ssl.SSLContext:
    import httpx2

    # Reading the certificates takes longer than ten calls, and every client of a run would do it again.
    return httpx2.create_ssl_context()


def credentials(settings: ClaudeSettings) -> str | None:
    """Return the API key; "" for a provider that has credentials of its own; None where a key is missing."""
    if settings.provider != "anthropic":
        return ""
    return os.environ.get(API_KEY) or None


def _check_extra(provider: str) -> None:
    try:
        present = importlib.util.find_spec(_NEEDS[provider]) is not None
    except ModuleNotFoundError:  # the parent package of a dotted name
        present = False
    if not present:
        raise ConfigError(
            f"claude.provider: {provider} needs {_NEEDS[provider]}; install it with: pip install 'ragds[{provider}]'"
        )
