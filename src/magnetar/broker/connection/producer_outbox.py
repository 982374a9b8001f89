"""The way back to a producer's client: SEND_RECEIPT and SEND_ERROR in the order in which the client sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from magnetar.broker.connection.bounds.outbox import Outbox
from magnetar.broker.connection.consumer_outbox import CLOSING_VERSION
from magnetar.broker.connection.session import Session
from magnetar.broker.topic.ports import WritableLog
from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.model.errors import PersistenceError
from magnetar.model.ids import Position
from magnetar.protocol import commands as c
from magnetar.protocol.handmade_frames.receipts import Receipts

_SEQUENCE_ID: Final = attrgetter("sequence_id")
_HIGHEST: Final = attrgetter("highest_sequence_id")


class ProducerOutbox:
    """Puts the results of one producer into its connection's outbox: the ProducerConnection of a topic."""

    __slots__ = ("_log", "_out", "_producer_id", "_receipts", "_refusals", "_session")

    def __init__(self, session: Session, producer_id: int, log: WritableLog) -> None:
        self._log = log
        self._refusals: deque[tuple[int, c.CommandSendError]] | None = None
        """SEND_ERRORs that have to wait for what was sent before, each with the ordinal that it comes before. None
        while there are none: an empty deque takes 760 bytes."""
        self._session = session
        self._out: Outbox = session.out
        self._producer_id = producer_id
        self._receipts = Receipts(producer_id, -1)

    @property
    def session(self) -> object:
        """The session that the producer belongs to."""
        return self._session

    def receipts(self, ledger: int, first_entry: int, results: Sequence[PendingEntry]) -> None:
        """Send SEND_RECEIPTs, one write for all of them."""
        if self._refusals:
            results, first_entry = self._turns_of_refusals(ledger, first_entry, results)
        session = self._session
        session.pending_publishes -= len(results)
        if session.reading_paused:
            resume_publishing(session)
        receipts = self._receipts
        if receipts.ledger != ledger:
            receipts = self._receipts = Receipts(self._producer_id, ledger)
        if len(results) == 1:
            only = results[0]
            self._out.put(receipts(only.sequence_id, first_entry, only.highest_sequence_id))
            return
        self._out.put(receipts.run(list(map(_SEQUENCE_ID, results)), first_entry, list(map(_HIGHEST, results))))

    def _turns_of_refusals(
        self, ledger: int, first_entry: int, results: Sequence[PendingEntry]
    ) -> tuple[Sequence[PendingEntry], int]:
        """Send the refusals that stand among these results; returns the results that are left to be receipted."""
        first = self._log.exact_ordinal(Position(ledger, first_entry))
        while self._refusals and first is not None and self._refusals[0][0] < first + len(results):
            ordinal, refusal = self._refusals.popleft()
            before = max(ordinal - first, 0)
            if before:
                self.receipts(ledger, first_entry, results[:before])
            results, first, first_entry = results[before:], first + before, first_entry + before
            self._session.send(refusal)
        return results, first_entry

    def refuse(self, refusal: c.CommandSendError) -> None:
        """Send SEND_ERROR in its turn: clients expect answers in the order in which they sent."""
        if not self._session.pending_publishes:
            self._session.send(refusal)
            return
        if self._refusals:
            self._refusals.append((self._log.next, refusal))
            return
        self._refusals = deque([(self._log.next, refusal)])
        self._log.barrier(self._all_before_decided, self._write_failed)

    def _write_failed(self, error: PersistenceError) -> None:
        # what was sent before is durable, or fails as well, in this turn of the loop, and that closes the producer
        self._session.loop.call_soon(self._all_before_decided)

    def _all_before_decided(self) -> None:
        refusals = self._refusals
        while refusals and refusals[0][0] <= self._log.end:
            self._session.send(refusals.popleft()[1])
        if refusals:
            self._log.barrier(self._all_before_decided, self._write_failed)

    def failed(self, results: Sequence[PendingEntry], error: PersistenceError) -> None:
        """Send SEND_ERROR for each (rule 3.3.5)."""
        session = self._session
        session.pending_publishes -= len(results)
        session.resume_reading()
        for result in results:
            session.send(c.CommandSendError(self._producer_id, result.sequence_id, error.code, str(error)))

    def unstored(self, results: Sequence[PendingEntry], *, dropped: bool) -> None:
        """Send SEND_RECEIPTs that all carry the id 0:0, or -1:-1 (rule 13.3), one write for all of them."""
        session = self._session
        session.pending_publishes -= len(results)
        if session.reading_paused:
            resume_publishing(session)
        place, receipts = -1 if dropped else 0, self._receipts
        if receipts.ledger != place:
            receipts = self._receipts = Receipts(self._producer_id, place)
        self._out.put(receipts.alike([r.sequence_id for r in results], place, [r.highest_sequence_id for r in results]))

    def dropped(self, count: int) -> None:
        """The producer was closed before these were decided: they get no answer and are not pending any more."""
        session = self._session
        session.pending_publishes -= count
        if session.reading_paused:
            resume_publishing(session)

    def close(self) -> None:
        """Send CLOSE_PRODUCER; messages that the client has in flight are ignored for a while."""
        self._refusals = None
        session = self._session
        if session.producers.pop(self._producer_id, None) is not None and not session.closed:
            if session.protocol_version < CLOSING_VERSION:
                session.close("a producer is closed, and the client knows no command for that", fault=False)
                return
            session.recently_closed[self._producer_id] = session.loop.time()
            session.send(c.CommandCloseProducer(self._producer_id, -1))

    def fence(self) -> None:
        """Forget the producer without a word: the next SEND finds none, which ends the connection."""
        self._refusals = None
        self._session.producers.pop(self._producer_id, None)


def resume_publishing(session: Session) -> None:
    """Read the client again once half of what stopped it is on disk, or nothing of its own is pending."""
    service, pending = session.service, session.pending_publishes
    if pending <= service.pending_publishes_low and (
        not pending or session.journal.pending_bytes <= service.pending_bytes_high // 2
    ):
        session.resume_reading()
