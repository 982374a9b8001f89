"""How long the broker's loop works for others before it answers: in processor time, whatever else the machine does.

A PING goes out, and the processor time of the thread with the event loop is read before it and after its PONG. What
lies between is what the loop did for everybody else, however long it had to wait for a core.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from magnetar.protocol.generated import pulsar_pb2 as pb
from tests.hostile.raw import Raw, command
from tests.hostile.victim import loop_cpu_ms

_PAUSE_SECONDS: Final = 0.01
_PATIENCE_SECONDS: Final = 60.0


class Probe:
    """A thread of its own with a connection of its own, from :meth:`start` to :meth:`stop`."""

    def __init__(self, pid: int, port: int) -> None:
        self._pid = pid
        self._port = port
        self.worst_ms = 0.0
        """Most processor time of the loop between a PING and its PONG."""
        self.worst_wait_ms = 0.0
        """Longest wait for a PONG by the clock; for information, a machine with other work makes it longer."""
        self.pongs = 0
        self.failure: str | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End, after the answer to the last PING."""
        self._ending.set()
        self._thread.join(_PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            with Raw(self._port, timeout=_PATIENCE_SECONDS) as raw:
                while not self._ending.wait(_PAUSE_SECONDS):
                    self._ask(raw)
        except (OSError, AssertionError) as error:
            self.failure = f"the probe's connection failed: {error!r}"

    def _ask(self, raw: Raw) -> None:
        before, at = loop_cpu_ms(self._pid), time.monotonic()
        raw.say(command("PING"))
        raw.until(pb.BaseCommand.PONG)
        self.worst_ms = max(self.worst_ms, loop_cpu_ms(self._pid) - before)
        self.worst_wait_ms = max(self.worst_wait_ms, (time.monotonic() - at) * 1000)
        self.pongs += 1
