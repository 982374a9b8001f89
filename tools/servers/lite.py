"""The PyPI package pulsar-lite: one Rust program that serves the binary protocol, without HTTP."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tools.servers.process import HOST, Server, StartFailedError, free_ports, listening, spawn, wait_until

READY_SECONDS_MAX = 10.0


def program() -> Path:
    """Return the path of the program in the installed package."""
    found = importlib.util.find_spec("pulsar_lite")
    if found is None or found.origin is None:
        raise StartFailedError("pulsar-lite is not installed; it is in requirements/all.lock")
    return Path(found.origin).parent / "bin" / "pulsar-lite"


def start(directory: Path, *, broker_port: int = 0) -> Server:
    """Start it with its data under ``directory`` and wait until it accepts connections."""
    port = broker_port or free_ports(1)[0]
    directory.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [
        program(),
        "--addr",
        f"{HOST}:{port}",
        "--db-path",
        directory / "lite.db",
        "--log-level",
        "warn",
    ]
    server = spawn("pulsar-lite", command, directory / "pulsar-lite.log", cwd=directory)
    server.broker_port = port
    wait_until(server, lambda: listening(port), READY_SECONDS_MAX)
    return server
