"""A network of the suite's own: its fixed ports are free there, and one address swallows every packet.

The suite expects the broker at 6650, 6651, 8080 and 8443 of localhost, and an address at which nothing answers
(192.0.2.1, RFC 5737). In a network namespace of Linux both are there, whatever else runs on the machine: packets that
are routed to the loopback and belong to no address of it are dropped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_INSIDE: Final = "MAGNETAR_OFFICIAL_NETWORK"
_SET_UP: Final = 'ip link set lo up && ip route add 192.0.2.0/24 dev lo && exec "$@"'


def inside() -> bool:
    """Whether this process runs in such a network."""
    return _INSIDE in os.environ


def available() -> bool:
    """Whether this machine lets us make one."""
    if not all(shutil.which(tool) for tool in ("unshare", "ip", "sh")):
        return False
    return subprocess.run([*_unshare(), "true"], capture_output=True).returncode == 0


def enter(module: str, arguments: Sequence[str]) -> None:
    """Start this program again in a network of its own; does not return."""
    command = [*_unshare(), sys.executable, "-m", module, *arguments]
    os.execvpe(command[0], command, {**os.environ, _INSIDE: "1"})


def _unshare() -> list[str]:
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    return [*alone, "sh", "-c", _SET_UP, "sh"]
