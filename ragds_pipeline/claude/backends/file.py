"""The file backend: requests out and results in, as Message-Batches JSONL.

For sites without a network, and for the recorded replies that let the sample run without a key. A result is found
by its ``custom_id``, which is the request's key, so a recording can never answer another request than its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ragds_pipeline.claude.requests import Request
from ragds_pipeline.storage.files import write_text


class BadRecording(ValueError):
    """A line of a recordings file that is no result of a message batch."""


def read_results(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (key, message) of every succeeded result in ``folder/*.jsonl``, files by name.

    Errored, expired and canceled results are passed over: such requests are still to be answered. Raises
    BadRecording with file and line for anything else.
    """
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else []:
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                key, result = entry["custom_id"], entry["result"]
                if result["type"] == "succeeded":
                    yield str(key), dict(result["message"])
            except (ValueError, KeyError, TypeError) as error:
                raise BadRecording(f"{path}:{number}: not a message-batch result ({error!r})") from error


def write_requests(requests: Iterable[Request], path: Path) -> int:
    """Write requests as the ``requests`` of a message batch, a line each, and return how many there are."""
    lines = [
        json.dumps({"custom_id": request.key, "params": dict(request.params)}, ensure_ascii=False, sort_keys=True)
        for request in sorted(requests, key=lambda r: (r.task, r.item, r.key))
    ]
    write_text(path, "".join(line + "\n" for line in lines))
    return len(lines)
