"""What ``magnetar consume`` and ``magnetar read`` do with messages, once their flags are understood."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import typer

from magnetar.cli.messages.cadence import Cadence, check_rate
from magnetar.cli.messages.printed_message import BOUNDARY, as_json, printed
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.command_line import complain
from magnetar.runtime.harmless_text import escaped, json_escaped

if TYPE_CHECKING:
    from magnetar.aio import Message


_PATIENCE_S: Final = 5.0
_PATIENCE_ON_TERMINAL_S: Final = 1.0
"""How long nothing comes before that is said."""


@dataclass(kw_only=True)
class Receiver:
    """How many messages are taken, and what is printed of them."""

    count: int
    """0: for ever."""
    verb: str
    """What is said at the end: consumed or read."""
    rate: float = 0.0
    as_hex: bool = False
    hide_content: bool = False
    metadata: bool = False
    as_json: bool = False
    end_timestamp: int | None = None
    waits_for: str = ""
    """What is said on standard error while nothing has come for a while; empty: nothing."""
    taken: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise InvalidValueError("Number of messages should be zero or positive.")
        check_rate(self.rate)

    async def take(
        self,
        receive: Callable[[], Awaitable[Message[Any]]],
        done: Callable[[Message[Any]], Awaitable[None]] | None = None,
    ) -> None:
        """Take messages and print them; ``done`` is called once a message is printed."""
        loop = asyncio.get_running_loop()
        pace = Cadence(self.rate, loop.time())
        patience = _PATIENCE_ON_TERMINAL_S if sys.stderr.isatty() else _PATIENCE_S
        silent = loop.call_later(patience, self._say_silence) if self.waits_for else None
        try:
            await self._take(pace, receive, done, silent)
        finally:
            if silent is not None:
                silent.cancel()

    async def _take(
        self,
        pace: Cadence,
        receive: Callable[[], Awaitable[Message[Any]]],
        done: Callable[[Message[Any]], Awaitable[None]] | None,
        silent: asyncio.TimerHandle | None,
    ) -> None:
        while not self.count or self.taken < self.count:
            await pace.turn()
            message = await receive()
            if silent is not None:
                silent.cancel()
            if self.end_timestamp is not None and message.publish_timestamp() > self.end_timestamp:
                return
            self.taken += 1
            self._show(message)
            if done is not None:
                await done(message)

    def _say_silence(self) -> None:
        complain(self.waits_for, lead="")

    def _show(self, message: Message[Any]) -> None:
        """Print a message as it is; on a terminal, on which its producer could act, control characters are shown."""
        terminal = sys.stdout.isatty()
        if self.as_json:
            line = as_json(message)
            line = json_escaped(line) if terminal else line
        elif not self.hide_content:
            line = printed(message, as_hex=self.as_hex, metadata=self.metadata)
            line = f"\x1b[2m{BOUNDARY}\x1b[0m\n{escaped(line)}" if terminal else f"{BOUNDARY}\n{line}"
        elif self.taken % 1000 == 0:
            line = f"Received {self.taken} messages"
        else:
            return
        # typer.echo would leave escape sequences out of what goes to a file
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def say_count(self) -> None:
        """Print the last line, which scripts look for."""
        if self.as_json:
            typer.echo(json.dumps({self.verb: self.taken}), err=True)
        else:
            typer.echo(f"{self.taken} messages successfully {self.verb}")


def silence(topic: str, subscription: str, position: str) -> str:
    """Return what ``magnetar consume`` says when nothing has come for a while: what it waits for, and what to do."""
    begins = ""
    if position.lower() == "latest":
        begins = " (a new subscription begins with what comes from now on; -p Earliest with what is stored)"
    return (
        f"nothing has come yet on {topic}, subscription {subscription}{begins}; "
        f"why: magnetar explain subscription {topic} {subscription}; Ctrl-C ends the wait"
    )


def schema_options(text: str) -> dict[str, Any]:
    """Return the parameters of a consumer or reader for --schema-type. Raises InvalidValueError."""
    if text == "bytes":
        return {}
    if text != "auto_consume":
        raise InvalidValueError("schema type must be 'bytes' or 'auto_consume'")
    from magnetar.cli.messages.written_value import WrittenValueSchema

    return {"schema": WrittenValueSchema()}
