"""Rejects what the API rejects, so that a green test means the request would have been accepted.

Each rule raises an `ApiError` with the API's own words where they are known. Turn-by-turn rules of the
conversation are in `conversation`, those of JSON schemas in `schema_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragds_pipeline_tests.loopback.answers import Body
from ragds_pipeline_tests.loopback.citing import citable, citations_on
from ragds_pipeline_tests.loopback.conversation import check_messages, check_system
from ragds_pipeline_tests.loopback.errors import ApiError, invalid
from ragds_pipeline_tests.loopback.jsonkinds import is_array, is_object, object_at
from ragds_pipeline_tests.loopback.models import MODELS, Model
from ragds_pipeline_tests.loopback.schema_rules import check_schema
from ragds_pipeline_tests.loopback.tokens import blocks_of, input_tokens

VERSIONS = ("2023-06-01", "2026-10-21")
MAX_BYTES = 32 * 1024 * 1024
SAMPLING = ("temperature", "top_p", "top_k")
FIELDS = frozenset(
    (
        *("max_tokens", "messages", "model", "cache_control", "container", "diagnostics", "inference_geo"),
        *("metadata", "output_config", "service_tier", "speed", "stop_sequences", "stream", "system"),
        *("thinking", "tool_choice", "tools"),
    )
)
BETA_FIELDS = frozenset({"billing_policy", "compaction", "context_management", "fallbacks", "mcp_servers"})
EFFORTS = ("low", "medium", "high", "xhigh", "max")
TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")


def check_headers(headers: Mapping[str, str], api_key: str | None) -> None:
    """The credential and the API version. Only a Bearer key is taken, as SDK 2.x sends it: a client that
    still sends `x-api-key` is one the pipeline must not contain."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise ApiError(401, "Authorization: a Bearer API key is required")
    if api_key is not None and key.strip() != api_key:
        raise ApiError(401, "invalid bearer token")
    version = headers.get("anthropic-version")
    if version is None:
        raise invalid("anthropic-version: header is required")
    if version not in VERSIONS:
        raise invalid(f"anthropic-version: {version!r} is not a valid version")


def check_message_body(body: Any, headers: Mapping[str, str], *, counting: bool = False) -> Model:
    """Checks a Messages request; with `counting`, one of `count_tokens`, which takes no `max_tokens`.

    Returns:
        The model asked for.
    """
    if not is_object(body):
        raise invalid("Input should be a valid dictionary")
    _check_fields(body, headers, counting)
    model = _check_model(body)
    if not counting:
        _check_max_tokens(body, model)
    _check_sampling(body, headers, model)
    check_system(body.get("system"))
    check_messages(body.get("messages"), version=headers.get("anthropic-version", ""), prefill=model.prefill)
    _check_thinking(body, model)
    _check_tools(body, model)
    _check_output(body, model)
    _check_cache_marks(body)
    if input_tokens(body) > model.max_input_tokens:
        raise invalid(f"prompt is too long: {input_tokens(body)} tokens > {model.max_input_tokens} maximum")
    return model


def _check_fields(body: Body, headers: Mapping[str, str], counting: bool) -> None:
    if "thread" in body:  # the tool runner falls back to full transcripts on exactly this code
        raise invalid("thread: not supported by this server", error_code="thread_unsupported_request")
    allowed = FIELDS | BETA_FIELDS if headers.get("anthropic-beta") else FIELDS
    if counting:
        allowed = allowed - {"max_tokens", "stream", "stop_sequences", "metadata", "service_tier"}
    for key in body:
        if key not in allowed and key not in SAMPLING:
            raise invalid(f"{key}: Extra inputs are not permitted")


def _check_model(body: Body) -> Model:
    name = body.get("model")
    if name is None:
        raise invalid("model: Field required")
    model = MODELS.get(str(name))
    if model is None or model.lifecycle == "retired":
        raise ApiError(404, f"model: {name}")
    return model


def _check_max_tokens(body: Body, model: Model) -> None:
    if "max_tokens" not in body:
        raise invalid("max_tokens: Field required")
    limit = body["max_tokens"]
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise invalid("max_tokens: Input should be a valid integer")
    if limit < 0:
        raise invalid("max_tokens: Input should be greater than or equal to 0")
    if limit > model.max_tokens:
        raise invalid(
            f"max_tokens: {limit} > {model.max_tokens}, which is the maximum allowed number of output tokens "
            f"for {model.id}"
        )
    if "stream" in body and not isinstance(body["stream"], bool):
        raise invalid("stream: Input should be a valid boolean")


def _check_sampling(body: Body, headers: Mapping[str, str], model: Model) -> None:
    for key in SAMPLING:
        if key not in body:
            continue
        if headers.get("anthropic-version") != "2023-06-01":
            raise invalid(f"{key}: Extra inputs are not permitted")
        if not model.sampling and body[key] != 1:
            raise invalid(f"{key} is deprecated for this model.")


def _check_thinking(body: Body, model: Model) -> None:
    asked = body.get("thinking")
    if asked is None:
        return
    kind = asked.get("type") if is_object(asked) else None
    if kind not in ("adaptive", "between_tools", "disabled", "enabled"):
        raise invalid("thinking: Input tag does not match any of the expected tags")
    if kind not in model.thinking_types:
        raise invalid(f'thinking.type: "{kind}" is not supported for this model.')
    if kind == "enabled":
        budget = asked.get("budget_tokens")
        if not isinstance(budget, int) or budget < 1024:
            raise invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if budget >= body.get("max_tokens", budget + 1):
            raise invalid("`max_tokens` must be greater than `thinking.budget_tokens`")
    elif "budget_tokens" in asked:
        raise invalid(f"thinking.{kind}.budget_tokens: Extra inputs are not permitted")
    effort = object_at(body, "output_config").get("effort")
    if kind in ("disabled", "between_tools") and effort in ("xhigh", "max"):
        raise invalid(f'output_config.effort: "{effort}" is not supported with thinking off')


def _check_tools(body: Body, model: Model) -> None:
    tools: Any = body.get("tools") or []
    if not is_array(tools) or not all(is_object(tool) for tool in tools):
        raise invalid("tools: Input should be a valid list of objects")
    names: set[str] = set()
    for index, tool in enumerate(tools):
        path = f"tools.{index}"
        name = tool.get("name")
        if not isinstance(name, str) or not TOOL_NAME.match(name):
            raise invalid(f"{path}.name: String should match pattern '{TOOL_NAME.pattern}'")
        if name in names:
            raise invalid("tools: Tool names must be unique.")
        names.add(name)
        if tool.get("type", "custom") != "custom":
            continue  # a server tool: its shape is the API's own
        schema = tool.get("input_schema")
        if not is_object(schema):
            raise invalid(f"{path}.input_schema: Field required")
        if schema.get("type") != "object":
            raise invalid(f"{path}.input_schema.type: Input should be 'object'")
        if tool.get("strict"):
            check_schema(schema, f"{path}.input_schema")
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type") if is_object(choice) else None
    if kind not in ("auto", "any", "tool", "none"):
        raise invalid("tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', 'tool', 'none'")
    if not tools:
        raise invalid("tool_choice: may only be specified while providing tools")
    if kind in ("any", "tool") and not model.forced_tool_choice:
        raise invalid('tool_choice: type "tool" and "any" are not supported for this model.')
    if kind == "tool" and choice.get("name") not in names:
        raise invalid(f"Tool '{choice.get('name')}' not found in provided tools")


def _check_output(body: Body, model: Model) -> None:
    sources = citable(body, "document") + citable(body, "search_result")
    cited = [citations_on(source) for source in sources]
    if any(cited) and not all(cited):
        raise invalid("citations must be enabled on all documents or none")
    config = body.get("output_config")
    if config is None:
        return
    if not is_object(config):
        raise invalid("output_config: Input should be a valid dictionary")
    for key in config:
        if key not in ("effort", "format"):
            raise invalid(f"output_config.{key}: Extra inputs are not permitted")
    if config.get("effort") is not None and config["effort"] not in EFFORTS:
        raise invalid(f"output_config.effort: Input should be one of {', '.join(EFFORTS)}")
    wanted = config.get("format")
    if wanted is None:
        return
    if not is_object(wanted) or wanted.get("type") != "json_schema":
        raise invalid("output_config.format.type: Input should be 'json_schema'")
    if "schema" not in wanted:
        raise invalid("output_config.format.schema: Field required")
    for key in wanted:
        if key not in ("type", "schema"):
            raise invalid(f"output_config.format.{key}: Extra inputs are not permitted")
    if not model.structured_outputs:
        raise invalid("output_config.format: not supported for this model")
    check_schema(wanted["schema"])
    if any(cited):
        raise invalid("output_config.format: citations cannot be used together with structured outputs")


def _check_cache_marks(body: Body) -> None:
    marks = sum(block.ttl is not None for block in blocks_of(body))
    if marks > 4:
        raise invalid(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    wrong = [block.ttl for block in blocks_of(body) if block.ttl not in (None, "5m", "1h")]
    if wrong:
        raise invalid("cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
