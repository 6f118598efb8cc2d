"""Which process holds something, told so that another process can see whether it is gone.

A process id alone is reused, and means nothing on another machine or in another container. So the name of a process
holds its machine, its process-id namespace and its start time as well; where these cannot be compared, a process is
taken to be alive, and whoever waits for it waits until its lease ends.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


def this_process() -> str:
    """Return the name of this process."""
    return "|".join((_place(), str(os.getpid()), _start_time(os.getpid())))


def is_gone(name: str) -> bool:
    """Return True only where the named process certainly runs no more."""
    place, _, rest = name.rpartition("|")[0].rpartition("|")
    start = name.rpartition("|")[2]
    if place != _place() or not rest.isdigit():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return bool(start) and _start_time(int(rest)) not in ("", start)


@cache
def _place() -> str:
    # Two containers may share a host name and never a namespace; without /proc the machine is all there is.
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        namespace = ""
    return f"{socket.gethostname()}|{namespace}"


def _start_time(pid: int) -> str:
    """Return when a process started, in ticks since the machine did; "" where that is not told.

    A zombie counts as gone: its parent has not yet taken note, but it does nothing any more.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "zombie" if fields[0] == "Z" else fields[19]
