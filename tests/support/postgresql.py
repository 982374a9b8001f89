"""A PostgreSQL server of its own for a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pg8000.dbapi  # type: ignore[import-untyped]  # the driver carries no types


@contextmanager
def postgresql() -> Iterator[Callable[[], Any]]:
    """Start it on a socket; yields what connects. It does not run as root, so root lends it an account."""
    account = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    place = Path(tempfile.mkdtemp(prefix="magnetar-postgresql-"))  # pytest's folders are closed to other accounts
    if account:
        shutil.chown(place, "postgres")
    data, log = place / "data", place / "log"

    def run(*command: str | Path) -> None:
        subprocess.run([*account, *command], check=True, capture_output=True)

    run("initdb", "-D", data, "-A", "trust", "-U", "magnetar", "-N")
    options = f"-c listen_addresses='' -c unix_socket_directories={place} -c fsync=off"
    run("pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
    try:
        yield lambda: pg8000.dbapi.connect(user="magnetar", database="postgres", unix_sock=str(place / ".s.PGSQL.5432"))
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(place)
