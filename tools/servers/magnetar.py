"""Our own broker, `magnetar standalone`, as a child process.

It is asked for port 0 unless another is given and prints a line that holds its addresses, `pulsar://host:port` and, if
it has a web service, `http://host:port`, once it serves; the ports are read from its output.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.servers.process import Server, spawn, wait_until

ROOT = Path(__file__).resolve().parents[2]
COMMAND = f"{shlex.quote(sys.executable)} -m magnetar.app.main standalone"
READY_SECONDS_MAX = 30.0
BROKER = re.compile(r"pulsar://[^\s:]+:(\d+)")
TLS = re.compile(r"pulsar\+ssl://[^\s:]+:(\d+)")
HTTPS = re.compile(r"https://[^\s:]+:(\d+)")
HTTP = re.compile(r"http://[^\s:]+:(\d+)")


def _port(found: re.Match[str] | None) -> int:
    return int(found[1]) if found else 0


def start(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    broker_port: int = 0,
    http_port: int = 0,
    command: str = COMMAND,
    checkout: Path = ROOT,
    configuration: str | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Server:
    """Start it with its data under ``directory`` and wait until it has printed its addresses.

    ``checkout`` is the tree whose code runs. A ``configuration`` file says all settings itself, the ports too.
    """
    wanted = {"brokerServicePort": str(broker_port), "webServicePort": str(http_port)} if configuration is None else {}
    wanted.update(settings or {})
    flags = [part for key, value in wanted.items() for part in ("--set", f"{key}={value}")]
    if configuration is not None:
        flags += ["--conf", configuration]
    paths = [str(checkout / "src"), os.environ.get("PYTHONPATH", "")]
    server = spawn(
        "magnetar",
        [*shlex.split(command), "--data", str(directory / "data"), *flags],
        directory / "magnetar.log",
        environment={
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONUNBUFFERED": "1",
            **(environment or {}),
        },
        cwd=cwd,
    )

    def addressed() -> bool:
        for line in server.log.read_text(errors="replace").splitlines():
            broker, tls, http = BROKER.search(line), TLS.search(line), HTTP.search(line)
            if broker or tls:
                server.broker_port, server.tls_port, server.http_port = _port(broker), _port(tls), _port(http)
                server.https_port = _port(HTTPS.search(line))
                return True
        return False

    wait_until(server, addressed, READY_SECONDS_MAX)
    return server
