"""The way back to a client that speaks a protocol version below 11 (rule 1.2.4): it takes an entry for its metadata.

The Erlang client of EMQ, which many programs use, is one: it says version 10 and reads no checksum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from magnetar.broker.connection.consumer_outbox import HEADER_ESTIMATE, ConsumerOutbox
from magnetar.broker.topic.ports import EntryRun
from magnetar.protocol.frames import without_checksum

CHECKSUM_VERSION: Final = 11
"""The first protocol version whose clients get entries with their checksums."""


class OldClientOutbox(ConsumerOutbox):
    """Leaves the checksum out of each entry."""

    __slots__ = ()

    @override
    def deliver(self, run: EntryRun, start: int, stop: int, epoch: int | None) -> None:
        """Send MESSAGE frames for consecutive entries."""
        self._bare(run, range(start, stop), epoch)

    @override
    def deliver_picked(self, run: EntryRun, indexes: Sequence[int], epoch: int | None) -> None:
        """Send MESSAGE frames for these entries of ``run``, ascending."""
        self._bare(run, indexes, epoch)

    @override
    def deliver_one(
        self, run: EntryRun, index: int, redelivery_count: int, ack_set: tuple[int, ...], epoch: int | None
    ) -> None:
        """Send one MESSAGE with its redelivery count and ack set."""
        self._bare(run, (index,), epoch, redelivery_count, ack_set)

    @override
    def deliver_unstored(self, entries: Sequence[bytes]) -> None:
        """Send MESSAGE frames that all carry the id 0:0."""
        super().deliver_unstored([without_checksum(entry) for entry in entries])

    def _bare(
        self, run: EntryRun, indexes: Sequence[int], epoch: int | None, redelivery_count: int = 0,
        ack_set: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        header, out, said = self._deliveries.header, self._out, 0
        for index in indexes:
            entry = without_checksum(run.entries[index])
            size = len(entry)
            out.parts += header(run.ledger, run.entry + index, size, redelivery_count, ack_set, epoch), entry
            said += size
        out.grew(said + HEADER_ESTIMATE * len(indexes))
