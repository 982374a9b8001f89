"""One call of a command: the values of its flags, the broker it asks, and where its answers go."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from magnetar.admin_api.quoted_names import subscription_part
from magnetar.cli.admin.arguments import UsageError, empty_value
from magnetar.cli.admin.request import CommandRequest, query_of, topic_path
from magnetar.cli.admin.table import Command
from magnetar.cli.admin.values import Value
from magnetar.cli.output.printer import Printer
from magnetar.contexts.broker_connection import BrokerConnection
from magnetar.model.errors import NotAvailableError

if TYPE_CHECKING:
    from magnetar.client.rest import Rest, RestAnswer


@dataclass
class Call:
    """What a function of a command works with. The connection is made when the first request is sent."""

    command: Command
    values: Mapping[str, Value]
    printer: Printer
    connect: Callable[[], BrokerConnection]
    seconds: float
    """How long the broker may take for one answer."""
    asked: list[CommandRequest] = field(default_factory=list)
    """Every request so far, for errors."""

    @cached_property
    def _rest(self) -> Rest:
        return self.connect().rest(self.seconds)

    def exchange(self, request: CommandRequest, headers: Mapping[str, str] | None = None) -> RestAnswer:
        """Send one request. Raises RestRefusedError, NotAvailableError."""
        self.asked.append(request)
        return self._rest.exchange(request.method, request.target, request.body, headers)

    def send(self, method: str, path: str, query: Mapping[str, Value] | None = None, body: Any = None) -> Any:
        """Send one request and return the answer's JSON; a body of None is none."""
        data = None if body is None else json.dumps(body).encode()
        return json_of(self.exchange(CommandRequest(method, path, query_of(query or {}), data)))

    def get(self, path: str, query: Mapping[str, Value] | None = None) -> Any:
        """Return what stands at a path."""
        return self.send("GET", path, query)

    def text(self, key: str) -> str:
        """Return the value of a flag or argument that is a text; empty if it was not given. Raises UsageError for an
        empty one that was: without it many a command is about more, as about all subscriptions instead of one."""
        value = self.values.get(key)
        if value == "":
            raise empty_value(self.command.word(key))
        return "" if value is None else str(value)

    def number(self, key: str) -> int | None:
        """Return the value of a flag that is a number."""
        value = self.values.get(key)
        return value if isinstance(value, int) else None

    def switch(self, key: str) -> bool:
        """Return whether a flag was given."""
        return bool(self.values.get(key))

    def words(self, key: str) -> list[str]:
        """Return the value of a flag that is a list."""
        value = self.values.get(key)
        return list(value) if isinstance(value, list) else []

    @property
    def topic(self) -> str:
        """The topic of the command, as a path has it."""
        return f"/admin/v2/{topic_path(self.values['topic'], self.command.marks)}"

    @property
    def subscription(self) -> str:
        """The subscription of the command below its topic, as a path has it."""
        if not (name := self.text("subscription")):
            raise empty_value("a name")  # the path would be that of another route
        return f"{self.topic}/subscription/{subscription_part(name)}"

    def show(self, kind: str, value: Any) -> None:
        """Print an answer in the way that a row of the table names."""
        self.printer.show(kind, value, f"{self.command.group} {self.command.name}")

    def say(self, text: str) -> None:
        """Print one line for the user."""
        self.printer.text(text)

    def usage(self, said: str) -> NoReturn:
        """End the call, as its flags do not fit together."""
        raise UsageError(said)


def json_of(answer: RestAnswer) -> Any:
    """Return an answer's JSON, or its text if it is none. Raises NotAvailableError for a web page, which another
    program than a broker has sent."""
    try:
        return answer.json()
    except ValueError:
        text = answer.content.decode(errors="replace")
    if text.lstrip().startswith("<"):
        raise NotAvailableError("the answer is a web page: a program of another kind has this port")
    return text


def position_of(text: str) -> tuple[int, int]:
    """Return ledger and entry of ``LEDGER:ENTRY``. Raises UsageError."""
    ledger, colon, entry = text.partition(":")
    digits = [part.removeprefix("-") for part in (ledger, entry)]
    if not colon or not all(part.isdecimal() and len(part) < 20 for part in digits):
        raise UsageError(f"{text[:80]!r} is no message id: write LEDGER:ENTRY")
    return int(ledger), int(entry)
