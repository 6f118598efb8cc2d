"""The file backend: requests out and results in, as Message-Batches JSONL.

For sites without a network, and for the recorded replies that let the sample run without a key. A result is found
by its ``custom_id``, which is the request's key, so a recording can never answer another request than its own. Files
are read and written a line at a time: a batch may have 100,000 of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragds_pipeline.claude.requests import Request
from ragds_pipeline.storage.files import write_chunks

MANIFEST = ".manifest.jsonl"
"""Ending of the file beside the requests that says what each ``custom_id`` is for."""


class BadRecording(ValueError):
    """A line of a recordings file that is no result of a message batch."""


@dataclass(slots=True)
class ResultsTally:
    """What was found in a folder of results."""

    replies: int = 0
    """Replies to requests that were looked for."""
    unknown: int = 0
    """Replies to other requests: of another step, or of an earlier prompt or document."""
    repeated: int = 0
    """Replies to a request that has one already; the first, files by name, is taken."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Results without a reply, by what they say instead; their requests are still to be answered."""

    def __str__(self) -> str:
        parts = [f"{self.replies} replies found"]
        if self.unknown:
            parts.append(f"{self.unknown} to requests that are not asked here")
        if self.repeated:
            parts.append(f"{self.repeated} repeated")
        parts += [f"{count} {kind}" for kind, count in sorted(self.unanswered.items())]
        return ", ".join(parts)


def read_results(
    folder: Path, wanted: Collection[str] | None = None, tally: ResultsTally | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (key, message) of the succeeded results in ``folder/*.jsonl``, files by name, each key once.

    Errored, expired and canceled results are passed over: such requests are still to be answered, and a later result
    that succeeded counts.

    Args:
        folder: Where the results are; nothing is yielded if it does not exist.
        wanted: Keys to look for; None for all.
        tally: Counts what is found, also what is passed over.

    Raises:
        BadRecording: A line is no result; the message names file and line.
    """
    counts = tally if tally is not None else ResultsTally()
    seen: set[str] = set()
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else []:
        for key, message, otherwise in _results(path):
            if message is None:
                counts.unanswered[otherwise] += 1
            elif wanted is not None and key not in wanted:
                counts.unknown += 1
            elif key in seen:
                counts.repeated += 1
            else:
                seen.add(key)
                counts.replies += 1
                yield key, message


def _results(path: Path) -> Iterator[tuple[str, dict[str, Any] | None, str]]:
    """Yield key, message and, where there is no message, what there is instead."""
    with path.open("rb") as file:  # as bytes, so that only a line feed ends a line
        for number, raw in enumerate(file, start=1):
            if not raw.strip(b" \t\r\n\xef\xbb\xbf"):
                continue
            try:
                entry = json.loads(raw.decode("utf-8-sig"))
                key, result = entry["custom_id"], entry["result"]
                if not isinstance(key, str):
                    raise TypeError("custom_id is not a string")
                if result["type"] == "succeeded":
                    message = dict(result["message"])
                    yield key, {**message, "content": list(message["content"])}, ""
                else:
                    yield key, None, _instead(result)
            except (ValueError, KeyError, TypeError) as error:
                raise BadRecording(f"{path}:{number}: not a message-batch result ({error!r})") from error


def _instead(result: dict[str, Any]) -> str:
    kind = str(result["type"])
    if kind not in ("errored", "expired", "canceled"):
        raise ValueError(f"unknown type of result: {kind}")
    error = result.get("error") or {}
    said = (error.get("error") or error).get("type") if isinstance(error, dict) else None
    return f"{kind} ({said})" if kind == "errored" and said else kind


def write_requests(requests: Iterable[Request], path: Path) -> int:
    """Write requests as the ``requests`` of a message batch, a line each, and return how many there are.

    Beside them goes a manifest, a line each in the same order, of what each ``custom_id`` is for. Equal requests are
    written once: a batch refuses a ``custom_id`` that is repeated.
    """
    once = {request.key: request for request in requests}
    chosen = sorted(once.values(), key=lambda r: (r.task, r.item, r.key))
    _write_lines(
        path.with_suffix(MANIFEST),
        (
            {
                "custom_id": r.key, "task": r.task, "item": r.item, "model": r.model,
                "prompt_version": r.prompt_version, "attempt": r.attempt,
            }
            for r in chosen
        ),
    )  # fmt: skip
    _write_lines(path, ({"custom_id": r.key, "params": dict(r.params)} for r in chosen))
    return len(chosen)


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a file that is seen whole or not at all, a line at a time."""
    write_chunks(path, (f"{json.dumps(row, ensure_ascii=False, sort_keys=True)}\n".encode() for row in rows))
