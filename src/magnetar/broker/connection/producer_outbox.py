"""The results of one producer's messages: SEND_RECEIPT and SEND_ERROR in the order in which the client sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from magnetar.broker.connection.bounds.outbox import Outbox
from magnetar.broker.connection.session import Session
from magnetar.broker.topic.ports import WritableLog
from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.model.errors import (
    PersistenceError,
)
from magnetar.model.ids import Position
from magnetar.protocol import commands as c
from magnetar.protocol.receipts import Receipts


class ProducerOutbox:
    """Results of one producer, on their way into its connection's outbox."""

    __slots__ = ("_log", "_out", "_producer_id", "_receipts", "_refusals", "_session")

    def __init__(self, session: Session, producer_id: int, log: WritableLog) -> None:
        self._log = log
        self._refusals: deque[tuple[int, c.CommandSendError]] = deque()
        """SEND_ERRORs that have to wait for what was sent before: behind everything below an ordinal."""
        self._session = session
        self._out: Outbox = session.out
        self._producer_id = producer_id
        self._receipts = Receipts(producer_id, -1)

    @property
    def session(self) -> object:
        """The session."""
        return self._session

    def receipts(self, ledger: int, first_entry: int, results: Sequence[PendingEntry]) -> None:
        """SEND_RECEIPTs, one write for all of them."""
        if self._refusals and ledger >= 0:
            results, first_entry = self._turns_of_refusals(ledger, first_entry, results)
        session = self._session
        session.pending_publishes -= len(results)
        if session.reading_paused:
            resume_publishing(session)
        receipts = self._receipts
        if receipts.ledger != ledger:
            receipts = self._receipts = Receipts(self._producer_id, ledger)
        self._out.put(
            receipts.run([r.sequence_id for r in results], first_entry, [r.highest_sequence_id for r in results])
        )

    def _turns_of_refusals(
        self, ledger: int, first_entry: int, results: Sequence[PendingEntry]
    ) -> tuple[Sequence[PendingEntry], int]:
        """Say what has to be said among these; what is left to be receipted."""
        first = self._log.exact_ordinal(Position(ledger, first_entry))
        while self._refusals and first is not None and self._refusals[0][0] < first + len(results):
            ordinal, refusal = self._refusals.popleft()
            before = max(ordinal - first, 0)
            if before:
                held, self._refusals = self._refusals, deque()
                self.receipts(ledger, first_entry, results[:before])
                self._refusals = held
            results, first, first_entry = results[before:], first + before, first_entry + before
            self._session.send(refusal)
        return results, first_entry

    def refuse(self, refusal: c.CommandSendError) -> None:
        """SEND_ERROR in its turn: clients take answers in the order in which they sent."""
        if not self._session.pending_publishes:
            self._session.send(refusal)
            return
        self._refusals.append((self._log.next, refusal))
        if len(self._refusals) == 1:
            self._log.barrier(self._all_before_decided, lambda error: self._refusals.clear())

    def _all_before_decided(self) -> None:
        refusals = self._refusals
        while refusals and refusals[0][0] <= self._log.end:
            self._session.send(refusals.popleft()[1])
        if refusals:
            self._log.barrier(self._all_before_decided, lambda error: self._refusals.clear())

    def failed(self, results: Sequence[PendingEntry], error: PersistenceError) -> None:
        """SEND_ERROR for each (rule 3.3.5)."""
        session = self._session
        session.pending_publishes -= len(results)
        session.resume_reading()
        for result in results:
            session.send(c.CommandSendError(self._producer_id, result.sequence_id, error.code, str(error)))

    def unstored(self, results: Sequence[PendingEntry], *, dropped: bool) -> None:
        """SEND_RECEIPTs that all say 0:0, or -1:-1 (rule 13.3), one write for all of them."""
        session = self._session
        session.pending_publishes -= len(results)
        if session.reading_paused:
            resume_publishing(session)
        receipts = Receipts(self._producer_id, -1) if dropped else self._receipts
        if receipts.ledger != (place := -1 if dropped else 0):
            receipts = self._receipts = Receipts(self._producer_id, place)
        self._out.put(receipts.alike([r.sequence_id for r in results], place, [r.highest_sequence_id for r in results]))

    def dropped(self, count: int) -> None:
        """The producer was let go before these were decided: nobody is told, but they wait no longer."""
        session = self._session
        session.pending_publishes -= count
        if session.reading_paused:
            resume_publishing(session)

    def close(self) -> None:
        """CLOSE_PRODUCER from our side; what the client has under way is ignored for a while."""
        session = self._session
        if session.producers.pop(self._producer_id, None) is not None and not session.closed:
            session.recently_closed[self._producer_id] = session.loop.time()
            session.send(c.CommandCloseProducer(self._producer_id, -1))

    def fence(self) -> None:
        """Nothing is said: the next SEND is one for nobody, and that ends the connection."""
        self._session.producers.pop(self._producer_id, None)


def resume_publishing(session: Session) -> None:
    """Read again once half of what made us stop is on disk; with nothing of its own pending a client always may."""
    service, pending = session.service, session.pending_publishes
    if pending <= service.pending_publishes_low and (
        not pending or session.journal.pending_bytes <= service.pending_bytes_high // 2
    ):
        session.resume_reading()
