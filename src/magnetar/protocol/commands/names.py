"""What a command is called in texts for people: as Pulsar's documentation and logs call it."""

from __future__ import annotations

from typing import Final

from magnetar.protocol.commands.consumer import CommandAck
from magnetar.protocol.commands.producer import CommandSend
from magnetar.protocol.commands.runs import AckRun, SendRun

_RUNS: Final[dict[type, type]] = {SendRun: CommandSend, AckRun: CommandAck}


def name_of(kind: type) -> str:
    """``Send`` for :class:`CommandSend`, and for a run of them; other classes keep their names."""
    return _RUNS.get(kind, kind).__name__.removeprefix("Command")
