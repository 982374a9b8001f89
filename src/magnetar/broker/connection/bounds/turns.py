"""Turns: no connection works longer than a few milliseconds while others wait (docs/decisions/018).

Work is counted, not timed, in units of about four microseconds. What a connection has received is handled at once as
long as its own turn and the round of all connections have units left; the rest waits here, and its socket is not read
meanwhile. Each turn of the event loop begins a new round and serves those that wait in the order they came, so that
what the sockets of others bring is handled between two turns. Entries and single acknowledgements cost nothing here:
there are as many of them as one slice of the decoder holds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import MappingProxyType
from typing import Final, Protocol

from magnetar.protocol import commands as c

TURN: Final = 1000
"""Units of one connection."""
ROUND: Final = 2000
"""Units of all connections in one turn of the event loop."""
GRACE: Final = 16
"""Units that a connection gets for what it has just sent when the round is used up: a client that asks for little does
not queue after those that never stop."""

USUAL: Final = 8
COSTS: Final = MappingProxyType[type, int](
    {
        c.CommandPing: 1,
        c.CommandPong: 1,
        c.CommandAck: 2,
        c.AckRun: 0,
        c.CommandFlow: 1,
        c.CommandConnect: 10,
        c.CommandConsumerStats: 20,
        c.CommandGetSchema: 20,
        c.CommandGetLastMessageId: 20,
        c.CommandCloseConsumer: 50,
        c.CommandCloseProducer: 20,
        c.CommandProducer: 50,
        c.CommandSubscribe: 100,
        c.CommandSeek: 50,
        c.CommandUnsubscribe: 50,
        c.CommandGetOrCreateSchema: 50,
        c.CommandAddPartitionToTxn: 50,
        c.CommandAddSubscriptionToTxn: 50,
        c.CommandEndTxn: 50,
        c.CommandGetTopicsOfNamespace: 20,
        c.CommandWatchTopicList: 50,
    }
)
"""Units of one command; other commands take the usual."""
_UNANSWERED: Final = frozenset(
    {c.CommandAck, c.AckRun, c.CommandFlow, c.CommandRedeliverUnacknowledgedMessages, c.CommandPong}
)


def waits_for_client(command: c.Command) -> bool:
    """Whether a command is not handled while its client takes no answers: all that have one, an ACK if it asks for
    it."""
    kind = command.__class__
    return kind not in _UNANSWERED or (isinstance(command, c.CommandAck) and command.request_id is not None)


class Worker(Protocol):
    """A connection with work left."""

    def turn(self) -> None:
        """Do some of the work; queue again if there is more."""
        ...


class Turns:
    """Shares each round of the event loop among the connections of one interface of the broker."""

    def __init__(self, units: int = ROUND) -> None:
        """``units`` of all its connections in one turn of the event loop."""
        self.round = units
        self.left = units
        """Units of this round."""
        self._waiting: deque[Worker] = deque()
        self._due = False

    def __len__(self) -> int:
        """The number of connections that wait for their turn."""
        return len(self._waiting)

    def spent(self, units: int) -> None:
        """``units`` were worked in this round."""
        self.left -= units
        self._next_round()

    def queue(self, worker: Worker) -> None:
        """``worker`` wants another turn."""
        self._waiting.append(worker)
        self._next_round()

    def _next_round(self) -> None:
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._due = False
        self.left = self.round
        waiting = self._waiting
        for _ in range(len(waiting)):
            waiting.popleft().turn()
            if self.left <= 0:
                break
        if waiting:
            self._next_round()
