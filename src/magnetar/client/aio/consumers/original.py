"""The message that a letter is a copy of: acknowledged after the receipt of the copy, and never before.

    copy handed over --receipt--> acknowledged
          |
          failed --> comes again after a while, and the caller hears why

Both happen on the receipt itself, whether or not the caller waits still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from magnetar.client.aio.topics.receipt import Receipt
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId

Acknowledge = Callable[[TopicConsumer, Message[Any]], asyncio.Future[None] | None]
"""Acknowledges a message on its topic; returns what to await where receipts are wanted."""


class Original:
    """One message that an application has copied."""

    def __init__(
        self, source: TopicConsumer, message: Message[Any], acknowledge: Acknowledge, again_after: float
    ) -> None:
        """``again_after``: seconds until it comes again if it could not be copied."""
        self.source = source
        self.message = message
        self._acknowledge = acknowledge
        self._again_after = again_after
        self._answer: asyncio.Future[None] | None = None

    async def copied(self, posting: Awaitable[Receipt]) -> None:
        """Wait until the copy is stored. Raises why it is not.

        Cancelled before it was handed over, nothing happened.
        """
        try:
            receipt = await posting
        except Exception:
            self._failed()
            raise
        stored = receipt.as_future()
        stored.add_done_callback(self._known)
        await asyncio.shield(stored)

    def _known(self, done: asyncio.Future[MessageId]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._failed()
        else:
            self._answer = self._acknowledge(self.source, self.message)

    def _failed(self) -> None:
        self.source.bring_again(self.message.message_id(), self._again_after)

    async def acknowledged(self) -> None:
        """Wait for the answer to the acknowledgement, where receipts are wanted. Raises what the broker answers."""
        if self._answer is not None:
            await self._answer
