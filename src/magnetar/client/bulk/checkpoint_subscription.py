"""A durable subscription that holds a query's position: where to start for the first time, what may be trimmed.

Nothing is ever received through it: no permits are given. Its mark-delete position is durable at the broker, so it is
the same for all that ask until it is moved, and data after it are kept. It is of type
Failover, since then two processes may hold it (an old driver that is not gone yet and its successor) and both may
acknowledge cumulatively.

When a topic is unloaded (a broker's load manager does that at any time), the broker says so and keeps the connection,
on which the subscription means nothing from then on: acknowledgements there are not even answered (rule 4.2.5). So
what has arrived is looked at before each use, and nothing that went wrong on a connection is tried on it again.

The broker also says which of two holders is the active one (rule 5.4.5). The other one says so in the log: two queries
with one subscription each miss what the other has processed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from magnetar.client.connection import Connection
from magnetar.client.errors import ClientError, ConnectionLostError, RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition, after_entry
from magnetar.client.reader_session import ReaderSession, consumer_ended
from magnetar.protocol import commands as c

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class CheckpointSubscription:
    """One subscription on one topic or partition, for one thread; connects when needed and again when cut off."""

    def __init__(self, lookup: Lookup, topic: str, subscription: str) -> None:
        self.topic = topic
        self._lookup = lookup
        self._subscription = subscription
        self._initial = c.InitialPosition.Latest
        self._connection: Connection | None = None
        self._consumer_id = 0
        self._shared = False

    def __enter__(self) -> CheckpointSubscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hold(self, start: ReadPosition | None) -> ReadPosition:
        """Make the subscription unless it exists, at ``start`` (None: at the end), and return its position.

        The answer is the same until `move_to`, whatever is published meanwhile.
        """
        self._initial = c.InitialPosition.Latest if start is None else c.InitialPosition.Earliest
        if start is not None and start > START:
            # Moves a subscription that was made just now at the very start, and none that is further already.
            self.move_to(start)
        placed_at = self._positions()[1]
        return placed_at if start is None or placed_at[:2] != start[:2] else start

    def last(self) -> ReadPosition:
        """Return the position after the last message that can be read now."""
        return self._positions()[0]

    def move_to(self, position: ReadPosition) -> None:
        """Acknowledge everything before ``position``, but not part of an entry. Durable as the broker's acks are."""
        if position.entry <= 0 < position.ledger:
            position = self._after_the_one_before(position)
        if position.entry <= 0:
            return

        def acknowledge(connection: Connection) -> None:
            what = f"move subscription {self._subscription} of {self.topic} to {position}"
            answer = connection.request(
                c.CommandAck(
                    self._consumer_id,
                    c.AckType.Cumulative,
                    (c.MessageIdData(position.ledger, position.entry - 1),),
                    request_id=connection.new_request_id(),
                ),
                c.CommandAckResponse,
                what,
            )
            if answer.error is not None:
                raise RefusedError(what, answer.error, answer.message)

        self._patiently(acknowledge)

    def _after_the_one_before(self, position: ReadPosition) -> ReadPosition:
        """Return the position after the last entry before the beginning of a ledger; START if there is none.

        An acknowledgement names an entry, and how many the ledger before has only a reader that is placed there says.
        """

        def ask() -> ReadPosition:
            with ReaderSession(self._lookup, self.topic, position) as session:
                return session.placed_at()

        placed_at = self._lookup.patiently(ask)
        return placed_at if placed_at < position else START

    def close(self) -> None:
        """Close the connection; the subscription stays."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _positions(self) -> tuple[ReadPosition, ReadPosition]:
        """Return the position after the last message, and that of the subscription."""

        def ask(connection: Connection) -> tuple[ReadPosition, ReadPosition]:
            answer = connection.request(
                c.CommandGetLastMessageId(self._consumer_id, connection.new_request_id()),
                c.CommandGetLastMessageIdResponse,
                f"ask for the last message of {self.topic}",
            )
            marked = answer.consumer_mark_delete_position
            return after_entry(answer.last_message_id), START if marked is None else after_entry(marked)

        return self._patiently(ask)

    def _patiently(self, attempt: Callable[[Connection], Result]) -> Result:
        def once() -> Result:
            connection = self._open()
            try:
                return attempt(connection)
            except ClientError:
                self.close()
                raise

        return self._lookup.patiently(once)

    def _open(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            try:
                pushes = self._connection.receive(0.0)
            except ConnectionLostError:
                pass
            else:
                self._look_for_others(pushes)
                if not consumer_ended(pushes):
                    return self._connection
            self.close()
        connection = self._lookup.connect(self.topic)
        self._consumer_id = connection.new_handle()
        try:
            connection.request(
                c.CommandSubscribe(
                    self.topic,
                    self._subscription,
                    c.SubType.Failover,
                    self._consumer_id,
                    connection.new_request_id(),
                    initial_position=self._initial,
                ),
                c.CommandSuccess,
                f"subscribe to {self.topic} as {self._subscription}",
            )
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _look_for_others(self, pushes: Iterable[c.Command]) -> None:
        for push in pushes:
            if isinstance(push, c.CommandActiveConsumerChange) and not push.is_active and not self._shared:
                self._shared = True
                log.warning(
                    "subscription %s of %s has another consumer: an earlier driver that has not ended yet, or "
                    "another query; two queries with one subscription each miss what the other has processed, so give "
                    "each its own",
                    self._subscription, self.topic,
                )  # fmt: skip
