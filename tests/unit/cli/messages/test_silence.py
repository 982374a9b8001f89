"""A command that waits says what it waits for; flags that mean nothing here say so."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from magnetar.cli.explain.command import _next_step
from magnetar.cli.messages.flags import check_pool
from magnetar.cli.messages.receiver import Receiver, silence
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.testing.simloop import run


class PlainMessage:
    """All that hidden content asks of a message."""

    def publish_timestamp(self) -> int:
        return 0


@pytest.mark.parametrize(("seconds", "said"), [(4.9, False), (5.1, True)])
def test_silence_is_explained_once(capsys: pytest.CaptureFixture[str], seconds: float, said: bool) -> None:
    """After five seconds where nobody looks on; a message in time, or the end of the command, keeps it quiet."""

    async def scenario() -> None:
        async def receive() -> Any:
            await asyncio.sleep(seconds)
            return PlainMessage()

        receiver = Receiver(count=3, verb="consumed", hide_content=True, waits_for="waiting")
        await receiver.take(receive)
        await asyncio.sleep(60)

    run(1, scenario())
    assert capsys.readouterr().err == ("waiting\n" if said else "")


def test_what_silence_says() -> None:
    new = silence("orders", "billing", "Latest")
    assert "-p Earliest" in new
    assert "magnetar explain subscription orders billing" in new
    assert "Earliest" not in silence("orders", "billing", "Earliest")


def test_pooled_messages_mean_nothing_here(capsys: pytest.CaptureFixture[str]) -> None:
    check_pool(None)
    assert not capsys.readouterr().err
    check_pool("false")
    assert "--pool-messages" in capsys.readouterr().err
    with pytest.raises(InvalidValueError, match="--pool-messages: expected true or false"):
        check_pool("perhaps")


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("Topic persistent://a/b/t not found", "magnetar admin topics list a/b"),
        (
            "Subscription s not found for topic persistent://a/b/t",
            "magnetar admin topics subscriptions persistent://a/b/t",
        ),
        ("Namespace not found", "magnetar admin namespaces list a"),
        ("Tenant does not exist", "magnetar admin tenants list"),
        ("Tenant or namespace or topic does not exist: a/b", "magnetar admin namespaces list a"),
    ],
)
def test_what_is_not_there_leads_to_what_is(said: str, command: str) -> None:
    assert _next_step(404, said, cast(Any, TopicName.parse("a/b/t"))).endswith(f": {command}")
    assert _next_step(401, said, TopicName.parse("a/b/t")) == ""
