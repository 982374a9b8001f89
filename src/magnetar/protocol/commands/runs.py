"""Consecutive commands that are alike, in one piece: SENDs and ACKs of single messages come by the thousand.

A broker reads, stores and acknowledges them together (docs/decisions/077). Nothing on the wire is called so.
"""

from __future__ import annotations

from typing import NamedTuple

from magnetar.protocol.commands.consumer import AckType, CommandAck
from magnetar.protocol.commands.ids import MessageIdData
from magnetar.protocol.commands.producer import CommandSend


class SendRun(NamedTuple):
    """SENDs of one producer, each of one message and nothing but its ids, whose checksums hold."""

    producer_id: int
    sequence_ids: list[int]
    entries: list[bytes]
    may_be_delayed: bool
    """Whether deliver_at_time's tag stands somewhere in their bytes; without it none of them has that field."""

    def commands(self) -> list[CommandSend]:
        """The same, one by one."""
        return [
            CommandSend(self.producer_id, sequence_id, 1, None, False, None, False, None, entry)
            for sequence_id, entry in zip(self.sequence_ids, self.entries, strict=True)
        ]


class AckRun(NamedTuple):
    """Individual acknowledgements by one consumer of whole entries of one ledger, for which no answer is asked.

    They came as many ACKs of one id, or as one of many.
    """

    consumer_id: int
    ledger: int
    entries: list[int]

    def commands(self) -> list[CommandAck]:
        """The same, as one ACK for each."""
        return [
            CommandAck(self.consumer_id, AckType.Individual, (MessageIdData(self.ledger, entry),))
            for entry in self.entries
        ]

    def together(self) -> CommandAck:
        """The same, as one ACK."""
        ids = tuple([MessageIdData(self.ledger, entry) for entry in self.entries])
        return CommandAck(self.consumer_id, AckType.Individual, ids)
