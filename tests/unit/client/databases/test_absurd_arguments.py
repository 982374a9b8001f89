"""Absurd values for every parameter of inbox, outbox and relay: taken, or refused with an error that names it."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import Callable
from typing import Any, Final

import pytest

from magnetar import aio
from magnetar.client.databases.inbox import Inbox
from magnetar.client.databases.outbox import OutboxTable
from magnetar.client.databases.outbox_relay import OutboxRelay
from magnetar.client.databases.sql_dialect import SQLITE
from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.model.errors import InvalidTopicNameError, InvalidValueError
from magnetar.protocol.entries import metadata_of
from tests.support.absurd_values import ABSURD, text_of

MESSAGE: Final = Message(
    Envelope(
        "persistent://public/default/t", -1, (7, 1), metadata_of(EntryMaker("p").single(OutgoingMessage(b""), 0, 1)),
        0, 0, None,
    ),
    b"m", -1, None,
)  # fmt: skip


def _connected() -> sqlite3.Connection:
    return sqlite3.connect(":memory:")


def _bad(call: Callable[..., Any], good: dict[str, Any], names: list[str]) -> list[str]:
    wrong = []
    for name in names:
        for value in ABSURD:
            try:
                call(**{**good, name: value})
            except (InvalidValueError, TypeError) as error:
                if name not in str(error) and not (name == "topic" and isinstance(error, InvalidTopicNameError)):
                    wrong.append(f"{name}={text_of(value)}: {type(error).__name__}: {error}")
            except Exception as error:
                wrong.append(f"{name}={text_of(value)}: raw {type(error).__name__}: {error}")
    return wrong


@pytest.mark.parametrize("kind", [Inbox, OutboxTable])
def test_a_table_takes_or_refuses_what_is_absurd(kind: type[Any]) -> None:
    assert not _bad(kind, {"dialect": SQLITE}, ["dialect", "table"])


@pytest.mark.parametrize(
    ("kind", "method", "good"),
    [
        (Inbox, "create", {}),
        (Inbox, "first_time", {"subscription": "s", "message": MESSAGE}),
        (Inbox, "forget", {"subscription": "s", "published_before_ms": 5}),
        (OutboxTable, "create", {}),
        (OutboxTable, "add", {"topic": "t", "content": b"x"}),
        (OutboxTable, "topics", {}),
    ],
)
def test_every_parameter_takes_or_refuses_what_is_absurd(kind: type[Any], method: str, good: dict[str, Any]) -> None:
    table = kind(SQLITE)
    connection = _connected()
    table.create(connection)
    call = getattr(table, method)
    wrong = _bad(call, {"connection": connection, **good}, list(inspect.signature(call).parameters))
    assert not wrong, "\n".join([f"{len(wrong)} bad refusals:", *wrong])


def test_a_relay_takes_or_refuses_what_is_absurd() -> None:
    async def test() -> list[str]:
        client = aio.Client("pulsar://127.0.0.1:1")
        try:
            good = {"client": client, "outbox": OutboxTable(SQLITE), "connect": _connected}
            return _bad(OutboxRelay, good, ["client", "outbox", "connect", "producer_name", "poll_seconds"])
        finally:
            await client.close()

    assert not asyncio.run(test())
