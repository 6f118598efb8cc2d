"""Large lists of records without the garbage collector, which would look through all of them again and again.

Records hold no cycles: they go when nothing refers to them, collector or not.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collecting() -> Iterator[None]:
    """Keep the collector off within the context; for all threads of the process, so for one step and not for a run."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
