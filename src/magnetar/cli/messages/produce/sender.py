"""What ``magnetar produce`` does, once its flags are understood."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import typer

from magnetar.cli.messages.cadence import Cadence, check_rate
from magnetar.cli.messages.payload_schema import ENCODINGS, PayloadSchema, inline_value, key_value_schema
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.runtime.command_line import complain
from magnetar.runtime.files.pipe import read_without_waiting, why_unread

if TYPE_CHECKING:
    from magnetar.aio import Client, MessageId, Receipt
    from magnetar.protocol.commands import Schema

FILE_BYTES_MAX: Final = 1 << 30
"""Bytes of the largest file that is sent as one message; also of what never ends, as /dev/zero."""
WAITING_MAX: Final = 1_000
"""Messages that wait for their receipts at most."""


@contextmanager
def usage(code: int = 2) -> Iterator[None]:
    """Exit about flags that cannot be, with 2 as ``pulsar-client``."""
    try:
        yield
    except (MagnetarError, OSError) as error:
        complain(error)
        raise typer.Exit(code) from None


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """Return properties: ``k1=v1,k2=v2``, in one flag or several. Raises InvalidValueError."""
    found: dict[str, str] = {}
    for text in texts:
        for pair in text.split(","):
            name, separator, value = pair.partition("=")
            if not separator:
                raise InvalidValueError(f"--properties: {pair!r} is no name=value")
            found[name] = value
    return found


def _content(flag: str, name: str) -> bytes:
    """Read a file that a flag names. Raises InvalidValueError naming both."""
    if not name:
        raise InvalidValueError(f"{flag} names no file: is a variable not set, or a comma too many?")
    try:
        found = read_without_waiting(name, FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        step = "commas stand between files; texts follow -m" if flag == "--files" else "name a file that you may read"
        raise InvalidValueError(f"{flag}: {name!r} cannot be read: {why_unread(error)}; {step}") from None
    if len(found) > FILE_BYTES_MAX:
        raise InvalidValueError(f"{flag}: {name} has more than {FILE_BYTES_MAX >> 20} MiB, which is no message")
    return found


class Sender:
    """The messages of one call, and how they are sent."""

    def __init__(
        self,
        topic: str,
        messages: Sequence[str],
        files: Sequence[str],
        times: int,
        rate: float,
        *,
        chunking: bool,
        separator: str,
        properties: Sequence[str],
        disable_replication: bool,
        as_json: bool,
        keys: dict[str, Any] | None = None,
    ) -> None:
        """``keys``: the parameters of encryption. Raises InvalidValueError."""
        if times <= 0:
            raise InvalidValueError("Number of times need to be positive number.")
        check_rate(rate)
        bodies = [
            part.encode(errors="surrogateescape")
            for text in messages
            for part in (text.split(separator) if separator else [text])
        ]
        bodies += [_content("--files", name) for given in files for name in given.split(",")]
        if not bodies:
            raise InvalidValueError("Please supply message content with either --messages or --files")
        self._topic = topic
        self._keys = keys or {}
        self._bodies = bodies
        self._times = times
        self._rate = rate
        self._chunking = chunking
        self._properties = pairs(properties)
        self._disable_replication = disable_replication
        self._as_json = as_json
        self._schema: Schema | None = None
        self._key: str | bytes | None = None
        self._sent = 0

    def choose_schema(
        self, value: str, key: str, encoding: str | None, plain_key: str | None, pair_key: str | None, file: str | None
    ) -> None:
        """Encode what is sent by the schemas of --value-schema and --key-schema. Raises InvalidValueError."""
        of_value = PayloadSchema.parse(value)
        self._bodies = [of_value.encode(body) for body in self._bodies]
        if encoding is None:
            self._schema, self._key = of_value.registered, plain_key or None
            return
        if encoding not in ENCODINGS:
            raise InvalidValueError(f"--key-value-encoding-type {encoding} is not valid, only 'separated' or 'inline'")
        of_key = PayloadSchema.parse(key)
        given = (pair_key or plain_key or "").encode()
        if file is not None and pair_key is None:
            given = _content("--key-value-key-file", file)
        there = file is not None or pair_key is not None or plain_key is not None
        encoded = of_key.encode(given) if there else None
        self._schema = key_value_schema(of_key, of_value, encoding)
        if encoding == "separated":
            self._key = encoded
        else:
            self._bodies = [inline_value(encoded, body) for body in self._bodies]
            self._key = plain_key or None

    async def send(self, client: Client) -> None:
        """Send everything; messages are on their way together, in order, and each is counted when it is stored."""
        receipts: deque[Receipt] = deque()
        try:
            await self._send(client, receipts)
        finally:
            # those that came until the producer was closed, however this ended
            for receipt in receipts:
                if receipt.done() and not receipt.cancelled() and receipt.exception() is None:
                    self._note(receipt.result())

    async def _send(self, client: Client, receipts: deque[Receipt]) -> None:
        """``receipts``: of messages that are on their way."""
        loop = asyncio.get_running_loop()
        async with await client.create_producer(
            self._topic, schema=self._schema, chunking_enabled=self._chunking, block_if_queue_full=True,
            max_pending_messages=WAITING_MAX, **self._keys,
        ) as producer:  # fmt: skip
            prepared = [
                producer.message(
                    body, self._properties, self._key, disable_replication=self._disable_replication or None
                )
                for body in self._bodies
            ]
            pace = Cadence(self._rate, loop.time())
            for _ in range(self._times):
                for message in prepared:
                    await pace.turn()
                    receipts.append(await producer.enqueue(message))
                    if len(receipts) >= WAITING_MAX:
                        await self._count(receipts)
            await self._count(receipts)

    async def _count(self, receipts: deque[Receipt]) -> None:
        while receipts:
            receipt = receipts[0]
            # a command that is ended here must not take the receipt's future with it: it may come still
            found = receipt.result() if receipt.done() else await asyncio.shield(receipt.as_future())
            del receipts[0]
            self._note(found)

    def _note(self, stored: MessageId) -> None:
        self._sent += 1
        if self._as_json:
            where = f"{stored.ledger_id()}:{stored.entry_id()}:{stored.partition()}"
            typer.echo(json.dumps({"messageId": where, "topic": stored.topic}))

    def say_count(self) -> None:
        """Print the last line, which scripts look for."""
        if self._as_json:
            typer.echo(json.dumps({"produced": self._sent}))
        else:
            typer.echo(f"{self._sent} messages successfully produced")
