"""Whether the configured models exist and can do what is configured, asked of the API at the start of a run.

A table in the code would be out of date; the API tells of each model its lifecycle, limits and capabilities. Servers
behind ``base_url`` often have no such endpoint: then nothing is known, which is a warning. What does not belong here:
prices (``pricing``), and what a single request says.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import anthropic
import httpx2
from anthropic.types import ModelInfo

from ragds_pipeline.config import TASKS, ClaudeSettings, ConfigError, TaskModel

_CHECK_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a model for what it is configured to do."""

    text: str
    stops: bool
    """True where every request would fail; False where it is worth a warning."""


def check_models(
    settings: ClaudeSettings, client: anthropic.Anthropic | str, max_tokens: int = 0, others: Collection[str] = ()
) -> list[Problem]:
    """Return what is wrong with the configured models, those that stop a run first.

    Each model is asked about once in a process.

    Args:
        settings: Their models, effort, thinking and ``structured_outputs`` are what is checked.
        client: A client, or the API key to make one with.
        max_tokens: The longest reply that will be asked for.
        others: Models that are asked besides those of the tasks, each with its own effort and thinking.
    """
    opened = (
        anthropic.Anthropic(api_key=client, base_url=settings.base_url, max_retries=2, timeout=_CHECK_TIMEOUT_S)
        if isinstance(client, str)
        else contextlib.nullcontext(client)
    )
    problems = [Problem(text, stops=False) for text in model_warnings(settings)]
    with opened as asked:
        for model in dict.fromkeys((*settings.models.ids, *others)):
            if _UNREACHED in problems:
                break
            tasks = [task for task in TASKS if getattr(settings.models, task) == model]
            info = _info(asked, model)
            if isinstance(info, Problem):
                problems.append(info)
                continue
            for task in tasks:
                problems += _misfits(info, task, settings.task(task), settings, max_tokens)
            if not tasks:
                plain = TaskModel(model, None, None)
                problems += _misfits(info, "filters.judges.closed_book_models", plain, settings, max_tokens)
    return sorted(dict.fromkeys(problems), key=lambda problem: not problem.stops)


def stop_on_problems(problems: list[Problem]) -> list[str]:
    """Return the warnings; raise ConfigError with everything that stops the run."""
    stops = [problem.text for problem in problems if problem.stops]
    if stops:
        raise ConfigError("claude.models cannot be used as configured:\n" + "\n".join(f"  {text}" for text in stops))
    return [problem.text for problem in problems]


def model_warnings(settings: ClaudeSettings) -> list[str]:
    """Return what is unwise about the configured models, told without asking anyone."""
    models = settings.models
    if models.judge == models.generator and not models.same_judge:
        return [
            f"judge: {models.judge} would judge what it wrote itself, and models favour their own text. Set "
            "claude.models.judge to another model, or claude.models.same_judge: true if it is on purpose"
        ]
    return []


_known: dict[tuple[str, str], ModelInfo | Problem] = {}
"""What the servers said in this process: a model's description, or why there is none."""

_NO_ENDPOINT = Problem("the server does not describe its models, so they are not checked", stops=False)

_UNREACHED = Problem("the server did not answer what its models can do, so they are not checked", stops=False)
"""May pass, so it is not kept and asked again the next time."""


def _info(client: anthropic.Anthropic, model: str) -> ModelInfo | Problem:
    place = (str(client.base_url), model)
    if place not in _known:
        try:
            found = client.models.retrieve(model)
            # The SDK reads leniently: a server that answers anything else has no such endpoint.
            _known[place] = found if isinstance(found, ModelInfo) and found.id else _NO_ENDPOINT
        except anthropic.NotFoundError:
            _known[place] = _unknown(client, model)
        except anthropic.APIStatusError as error:
            if error.status_code != 405:
                return _UNREACHED
            _known[place] = _NO_ENDPOINT
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError):
            return _UNREACHED
    return _known[place]


def _unknown(client: anthropic.Anthropic, model: str) -> Problem:
    """Return what "not found" means: there is no such model, or no such endpoint."""
    try:
        ids = [info.id for info in client.models.list(limit=100).data]
    except (anthropic.AnthropicError, httpx2.HTTPError, ValueError, AttributeError, TypeError):
        return _NO_ENDPOINT
    if not ids:
        return _NO_ENDPOINT
    near = difflib.get_close_matches(model, ids, n=1)
    hint = f"perhaps {near[0]} is meant" if near else f"it has {', '.join(ids[:12])}"
    return Problem(
        f"{model} is not a model of this server ({hint}); change claude.models or what else names it", stops=True
    )


def _misfits(
    info: ModelInfo, task: str, wanted: TaskModel, settings: ClaudeSettings, max_tokens: int
) -> Iterator[Problem]:
    """Yield what a model cannot do of what its task asks for."""
    name = f"{task}: {info.id}"
    setting = f"claude.models.{task}" if task in TASKS else task
    if info.lifecycle == "retired":
        yield Problem(f"{name} is retired; set {setting} to a current model", stops=True)
    elif info.lifecycle == "deprecated":
        until = f" and ends on {info.retires_at:%Y-%m-%d}" if info.retires_at else ""
        yield Problem(f"{name} is deprecated{until}; set {setting} to a current model", stops=False)
    if info.max_tokens and max_tokens > info.max_tokens:
        yield Problem(f"{name} replies with at most {info.max_tokens} tokens; {max_tokens} are asked for", stops=True)
    can = info.capabilities
    if can is None:
        return
    if settings.structured_outputs and not can.structured_outputs.supported:
        yield Problem(f"{name} has no structured outputs; set claude.structured_outputs: false", stops=True)
    if settings.backend == "batch" and not can.batch.supported:
        yield Problem(f"{name} does not do batches; set claude.backend: api", stops=True)
    if wanted.effort is not None:
        level = getattr(can.effort, wanted.effort, None)
        if not can.effort.supported or level is None or not level.supported:
            yield Problem(f"{name} does not know effort {wanted.effort}; change or remove it", stops=True)
    if wanted.thinking is not None:
        kind = getattr(can.thinking.types, wanted.thinking, None)
        if kind is None or not kind.supported:
            yield Problem(f"{name} does not accept thinking {wanted.thinking}; change or remove it", stops=True)
        elif wanted.thinking != "adaptive" and wanted.effort in ("xhigh", "max"):
            yield Problem(f"{name} takes effort {wanted.effort} only while it thinks", stops=True)
