"""Messages that an application wants again later: copies on a retry letter topic (rules of 6.4).

reconsume_later --> copy published --receipt--> original acknowledged
                           |
                           failed --> the original is acknowledged negatively, and the caller hears why
"""

from __future__ import annotations

from collections.abc import Mapping

from magnetar.client.aio.consumers.dead_letters import DeadLetterSender
from magnetar.client.aio.consumers.letter_producer import LetterProducers
from magnetar.client.aio.consumers.original import Original
from magnetar.client.machines.redelivery.last_deliveries import DeadMessage, DeathCause
from magnetar.client.machines.redelivery.letters import RECONSUMETIMES, retry_letter, retry_properties


class RetryLetterSender:
    """One consumer's way to its retry letter topic, and from there to the dead letter topic."""

    def __init__(self, dead_letters: DeadLetterSender, producer: LetterProducers, subscription: str) -> None:
        self._dead_letters = dead_letters
        self._producer = producer
        self._subscription = subscription

    async def send(
        self,
        original: Original,
        *,
        delay_ms: int,
        now_ms: int,
        custom_properties: Mapping[str, str] | None,
        error: BaseException | str | None,
    ) -> None:
        """Return once the copy is stored; a message that was retried too often is a dead letter. Raises as
        `Original.copied`."""
        message = original.message
        properties = retry_properties(message, self._subscription, delay_ms, custom_properties, error)
        if int(properties[RECONSUMETIMES]) > self._dead_letters.policy.max_redeliver_count:
            dead = DeadMessage(message, DeathCause.RETRIES, error)
            await original.copied(self._dead_letters.post(original.source, dead, properties))
        else:
            at = now_ms + delay_ms if delay_ms else 0
            await original.copied(self._producer.post(retry_letter(message, properties, at), message))

    async def close(self) -> None:
        """Wait for the copies that are on their way."""
        await self._producer.close()
