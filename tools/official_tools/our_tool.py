"""Our own command line, run with the same lines: ``magnetar admin …``, ``magnetar produce …``, ``magnetar perf …``.

Each command is a child of this process that has the program's modules already: a start costs milliseconds.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tools.official_tools.said import SECONDS_MAX, UNFINISHED, Said

_NEEDED = (
    *(f"magnetar.cli.messages.{name}.command" for name in ("produce", "consume", "read")),
    *(f"magnetar.cli.messages.{name}" for name in ("avro_value", "payload_schema", "receiver", "session")),
    *("magnetar.aio", "magnetar.cli.admin.command", "magnetar.cli.perf.command", "magnetar.cli.perf.run"),
    *("magnetar.contexts.context_file", "magnetar.security.tls.client_tls", "pydantic.type_adapter"),
)


class OurTool:
    """`magnetar` with the settings of ``conf``."""

    def __init__(self, conf: Path) -> None:
        self._conf = conf
        self._main = importlib.import_module("magnetar.app.main").main
        for name in _NEEDED:  # once, not in each child
            importlib.import_module(name)

    def run(self, tool: str, arguments: Sequence[str]) -> Said:
        """Run one command to its end or to its limit of time."""
        words = [*({"client": []}.get(tool, [tool])), *arguments]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                self._become(words, out.fileno(), err.fileno())
            code = self._wait(child)
            out.seek(0)
            err.seek(0)
            return Said(code, out.read().decode(errors="replace"), err.read().decode(errors="replace"))

    def _become(self, words: Sequence[str], out: int, err: int) -> None:
        code = 1
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.environ["PULSAR_CLIENT_CONF"] = str(self._conf)
            sys.argv = ["magnetar", *words]
            self._main()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
        except BaseException:  # the child must never go on as its parent
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code & 255)

    @staticmethod
    def _wait(child: int) -> int:
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return UNFINISHED
