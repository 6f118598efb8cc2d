"""How a run shows itself on a terminal while it goes: one line that is rewritten, or plain lines every so often.

Written to standard error, so that what a command prints can be piped. Dagster tells of its steps through a logger of
its own (``steps``), which only runs from the command line switch on.
https://docs.dagster.io/guides/log-debug/logging/custom-loggers
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

import dagster as dg

from ragds_pipeline.claude.progress import AUDIENCE, Progress

REWRITE_S = 0.1
"""Between two versions of the line on a terminal."""

SAY_S = 15.0
"""Between two lines in a file or a pipe."""


class Terminal:
    """A watcher that writes to a stream. Use as a context: at its end the line is taken away."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._live = stream.isatty()
        self._every = REWRITE_S if self._live else SAY_S
        self._last = clock() if not self._live else float("-inf")
        self._step = ""
        self._lock = threading.Lock()

    def step(self, name: str) -> None:
        """Show that a step begins."""
        self._step = name
        self._show(f"{name} ...", now=False)

    def progress(self, progress: Progress) -> None:
        """Show how far the calls of this step are."""
        where = " ".join(part for part in (self._step, f"({progress.task})" if progress.task else "") if part)
        last = progress.done == progress.total
        # In a file, the end of a list of calls is told only where there was something before it.
        self._show(f"{where}: {progress}", now=last and (self._live or progress.total > 1))

    def said(self, text: str) -> None:
        """Show a line that stays."""
        with self._lock:
            self._clear()
            self._stream.write(f"{self._step}: {text}\n" if self._step else f"{text}\n")
            self._stream.flush()

    def close(self) -> None:
        """Take the line away."""
        with self._lock:
            self._clear()
            self._stream.flush()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _show(self, text: str, now: bool) -> None:
        with self._lock:
            if not now and self._clock() - self._last < self._every:
                return
            self._last = self._clock()
            if self._live:
                self._clear()
                self._stream.write(text[: shutil.get_terminal_size().columns - 1])
            else:
                self._stream.write(f"{text}\n")
            self._stream.flush()

    def _clear(self) -> None:
        if self._live:
            self._stream.write("\r\x1b[K")


class _Steps(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        told: Any = getattr(record, "dagster_meta", None) or {}
        event = told.get("dagster_event")
        if event is not None and event.event_type_value == "STEP_START":
            AUDIENCE.step(str(event.step_key))


def _steps(_: dg.InitLoggerContext) -> logging.Logger:
    logger = logging.Logger("ragds.steps", logging.DEBUG)
    logger.addHandler(_Steps())
    return logger


LOGGERS = {
    "console": dg.colored_console_logger,  # Dagster's own, which naming any other would displace
    "steps": dg.LoggerDefinition(
        _steps, description="Tells whoever watches in this process that a step begins; writes nothing itself."
    ),
}
"""The loggers that runs may switch on."""
