"""What several test modules of the Claude layer start: a PostgreSQL of Debian's, and a ledger in either database."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa


def _unprivileged() -> dict[str, Any]:
    """Return who runs PostgreSQL, as arguments of subprocess: it refuses to be root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return {}


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a PostgreSQL of Debian's package for this process; yield its URL up to a database's name."""
    pytest.importorskip("psycopg2", reason="psycopg2 is not installed (the extra postgres)")
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not binaries:
        pytest.skip("no PostgreSQL below /usr/lib/postgresql (Debian's package postgresql)")
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="ragds-pg-", dir="/tmp"))  # sockets need a short path
    try:
        folder.chmod(0o755)
        if user:
            os.chown(folder, user["user"], user["group"])
        data, binary = folder / "data", binaries[-1].parent
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        run: dict[str, Any] = {"cwd": folder, "env": environment, **user}
        arguments = ["-D", str(data), "-U", "ragds", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([binary / "initdb", *arguments], check=True, capture_output=True, **run)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", str(folder), "-c", "fsync=off"]
        server = subprocess.Popen(
            [binary / "postgres", "-D", data, *settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **run
        )
        try:
            ready = [str(binary / "pg_isready"), "-h", "127.0.0.1", "-p", str(port)]
            for _ in range(200):
                if subprocess.run(ready, capture_output=True, check=False).returncode == 0:
                    break
                assert server.poll() is None, "PostgreSQL did not start"
                time.sleep(0.05)
            yield f"postgresql://ragds@127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    base = request.getfixturevalue("postgres")
    name = f"t{uuid.uuid4().hex[:12]}"
    admin = sa.create_engine(f"{base}/postgres".replace("postgresql:", "postgresql+psycopg2:"))
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    admin.dispose()
    return f"{base}/{name}"
