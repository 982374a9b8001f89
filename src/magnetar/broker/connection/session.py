"""The session of one client: what it has opened, how its commands are handled, and whether it is still alive.

Commands are handled in the order they came (rule 1.1.12); a handler that has to wait (for the disk, for another
connection's sign of life) remembers what it needs in a callback and answers later. A handler's MagnetarError becomes
the ERROR of that request; a ProtocolError closes this connection and no other client notices.

A handler with much to do returns an iterator of steps, each the units it took (see ``turns``); the next command waits
until it ends. Commands also wait while the client does not take its answers, except those without an answer, so that
a client that has to write before it can read gets through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from magnetar.authorization.caller import Caller
from magnetar.broker.connection.bounds.outbox import Outbox
from magnetar.broker.connection.bounds.socket_pauses import RATE, PausableSocket
from magnetar.broker.connection.bounds.turns import COSTS, GRACE, TURN, USUAL, Turns, waits_for_client
from magnetar.broker.connection.bounds.wide_reads import MANY_PRODUCERS
from magnetar.broker.connection.login import Login
from magnetar.broker.connection.open_handles import OpenConsumer, OpenWatch, PendingOpen
from magnetar.broker.service import BrokerService
from magnetar.broker.throttling.rate_limit import RateLimit
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.publish.publish_rate import HeldConnection
from magnetar.model.errors import MagnetarError, ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode
from magnetar.protocol.server import ServerConnection, ServerState
from magnetar.runtime.teardown import call_all

log = logging.getLogger(__name__)

LEAVE_AT_ONCE: Final = 50
"""Producers, consumers and watches of a lost connection that leave in one turn: a consumer among a thousand Key_Shared
ones takes a quarter of a millisecond."""

_COMPLAINT_MAX: Final = 500

_FEW_IDS: Final = 8
_ACK: Final = c.CommandAck
_SEND: Final = c.CommandSend
_SEND_RUN: Final = c.SendRun

Handler = Callable[["Session", Any], Iterator[int] | None]


class Session(PausableSocket):
    """One client's session, owned by its listener; lives on the event loop."""

    # with more than 29 attributes each session would have a hash table of its own, 1.6 KB
    __slots__ = (
        "_acknowledge", "_commands", "_handlers", "_held", "_leaving", "_probe_timer", "_probes", "_send", "_steps",
        "_turns", "_waits_for_client", "accepted", "acking", "address", "caller", "carry_on", "client_version",
        "consumers", "features", "halted", "host", "journal", "login", "loop", "out", "pending_publishes",
        "producers", "protocol", "protocol_version", "read_wide", "recently_closed", "reopening", "service", "stuck",
        "watches",
    )  # fmt: skip

    def __init__(
        self,
        service: BrokerService,
        out: Outbox,
        transport: asyncio.Transport,
        protocol: ServerConnection,
        handlers: Mapping[type, Handler],
        turns: Turns,
    ) -> None:
        super().__init__(transport)
        self.service = service
        self.out = out
        self._turns = turns
        self._commands: list[c.Command] = []
        """Decoded commands, to be handled in a later turn."""
        self._steps: Iterator[int] | None = None
        """The rest of the command before them."""
        self._waits_for_client = service.settings.pulsarChannelPauseReceivingRequestsIfUnwritable
        self.stuck = False
        """Whether the commands wait for the client to take its answers."""
        self.loop = asyncio.get_running_loop()
        self.protocol = protocol
        self._handlers = handlers
        self._acknowledge, self._send = handlers[c.CommandAck], handlers[c.CommandSend]
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.host = str(peer[0])
        self.address = f"/{peer[0]}:{peer[1]}"
        self.client_version = ""
        self.protocol_version = 0
        self.features = c.FeatureFlags()
        self.caller = Caller(None, address=self.address)
        self.login: Login | None = None
        self.producers: dict[int, Producer | PendingOpen] = {}
        self.reopening: dict[int, PendingOpen] = {}
        """Openings of producers whose id has an open one already, an earlier life of theirs."""
        self.consumers: dict[int, OpenConsumer | PendingOpen] = {}
        self.acking: list[OpenConsumer] = []
        """Consumers with acknowledgements that are not handed over yet."""
        self.watches: dict[int, OpenWatch] = {}
        """Watches of WATCH_TOPIC_LIST by watcher id."""
        self.recently_closed: dict[int, float] = {}
        """Producers that the broker closed, and when (loop time): their sends in flight are ignored (rule 3.3.1)."""
        self.pending_publishes = 0
        self.journal = service.store.journal
        self.accepted = False  # whether the handshake ever succeeded
        self._held: HeldConnection | None = None
        self.carry_on: Callable[[], None] = _nothing
        """Called when it may handle commands again that a limit of rates had held up."""
        self.read_wide: Callable[[], None] = _nothing
        """Called when the messages of many producers hold it up."""
        self.halted = False
        """Whether it handles no more commands: it is closed, or it has published as fast as it may."""
        self._probes: list[Callable[[bool], None]] = []
        self._leaving: list[Producer | OpenConsumer | OpenWatch] = []
        """What the lost client had opened and has still to leave, the first of it at the end."""
        self._probe_timer: asyncio.TimerHandle | None = None

    # commands ----------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether there are commands to be handled before new ones, or none may be handled now."""
        return self._steps is not None or bool(self._commands) or self.halted

    def go_on(self) -> None:
        """Handle more of what was given to :meth:`handle`."""
        if self.halted:
            return
        if self._steps is not None:
            self._turns.spent(TURN - self._advance(TURN))
        elif self._commands:
            commands, self._commands = self._commands, []
            self.handle(commands)

    def handle(self, commands: Iterable[c.Command]) -> None:
        """Handle decoded commands in order, as many as this turn has room for; ``busy`` says whether some are left.

        Raises ProtocolError if the connection is to be closed.
        """
        handlers, turns = self._handlers, self._turns
        is_open = self.protocol.state is ServerState.OPEN
        stuck = self._waits_for_client and not self.out.writable
        free = is_open and not stuck
        acknowledge, send = self._acknowledge, self._send
        budget = TURN
        following = iter(commands)
        for command in following:
            kind = command.__class__
            # ACK and SEND come by the thousand: they cost no units and as few checks as possible
            if free:
                if kind is _ACK and budget > 0:
                    acknowledge(self, command)
                    if self.closed:
                        return
                    if (ids := len(command.message_ids)) > _FEW_IDS:  # type: ignore[union-attr]  # it is an ACK
                        budget -= ids >> 2
                    continue
                if kind is _SEND or kind is _SEND_RUN:
                    if self.acking:
                        self.hand_over_acks()
                    (send if kind is _SEND else handlers[kind])(self, command)
                    if self.halted:
                        if self.closed:
                            return
                        break
                    continue
            if kind is not _ACK and self.acking:
                self.hand_over_acks()
            self.stuck = stuck and waits_for_client(command)
            if self.stuck or budget <= 0 or (turns.left <= TURN - budget and budget <= TURN - GRACE):
                self._commands.append(command)
                break
            handler = handlers.get(kind) if is_open else None
            if handler is None:
                # not allowed now, or part of the handshake
                self.protocol.admit(command)
                handler = handlers[kind]
            steps = handler(self, command)
            if self.closed:
                return
            budget -= COSTS.get(kind, USUAL)
            if steps is not None:
                self._steps = steps
                budget = self._advance(budget)
                if self.closed:
                    return
            if self._steps is not None or self.halted:
                break
            stuck = self._waits_for_client and not self.out.writable
            free = is_open and not stuck
        self._commands += following
        if self.acking:
            self.hand_over_acks()
        if budget < TURN:
            turns.spent(TURN - budget)
        # once for all commands that came together: what has been read is handled anyway
        pending, service = self.pending_publishes, self.service
        if pending and (
            pending >= service.pending_publishes_high or self.journal.pending_bytes >= service.pending_bytes_high
        ):
            self.pause_reading()
            if len(self.producers) >= MANY_PRODUCERS:
                self.read_wide()

    def put_back(self, commands: Iterable[c.Command]) -> None:
        """Handle these first when it goes on: the handler of what they came in had to stop."""
        if not self.closed:
            self._commands += commands

    def _advance(self, budget: int) -> int:
        """Go on with the command that has begun; returns what is left of ``budget``."""
        assert self._steps is not None
        for units in self._steps:
            budget -= units
            if self.closed or budget <= 0:
                return budget
        self._steps = None
        return budget

    @property
    def connected(self) -> bool:
        """Whether the handshake is over."""
        return self.protocol.state is ServerState.OPEN

    def hand_over_acks(self) -> None:
        """Hand the gathered acknowledgements over to their subscriptions."""
        for held in self.acking:
            acks, held.acks = held.acks, []
            held.subscription.acks.take(held.consumer, acks)
        self.acking.clear()

    def send(self, command: c.Command) -> None:
        """Put one command into the outbox."""
        self.out.put(encode(command))

    def error(self, request_id: int, code: ServerError, message: str) -> None:
        """Send ERROR for a request."""
        self.complain(code.name, "request %d refused: %s: %s", request_id, code.name, message)
        self.send(c.CommandError(request_id, code, message))

    def fail(self, request_id: int, error: MagnetarError) -> None:
        """Send ERROR for a request, from the error of its handler."""
        self.error(request_id, error.code, str(error))

    def complain(self, kind: str, message: str, *args: object) -> None:
        """Log what the client did wrong: a few lines per minute of a kind and host, of limited length."""
        text = message % args
        if len(text) > _COMPLAINT_MAX:
            text = f"{text[:_COMPLAINT_MAX]}... ({len(text)} characters)"
        self.service.complaints.warning(f"{self.host} {kind}", "%s: %s", self.address, text, extra=self.known)

    @property
    def known(self) -> dict[str, object]:
        """What a line of the log can say of this connection besides."""
        return {"connection": self.address, "role": self.caller.role}

    # life --------------------------------------------------------------------------------------------------------

    def close(self, reason: str, *, fault: bool = True) -> None:
        """Close the connection; what is in the outbox is still sent. ``fault``: the client is to blame."""
        if self.closed:
            return
        if fault:
            self.complain("closed", "closing the connection: %s", reason)
        else:
            log.info("%s: closing the connection: %s", self.address, reason, extra=self.known)
        self._end()
        self.out.flush()
        self.transport.close()

    def _end(self) -> None:
        self.closed = self.halted = True
        self.carry_on = self.read_wide = _nothing
        self._commands.clear()
        self._steps = None
        if self._held is not None:
            self._held.leave()
            self._held = None

    def alive(self) -> None:
        """The client sent something while a probe was under way."""
        probes, self._probes = self._probes, []
        if self._probe_timer is not None:
            self._probe_timer.cancel()
            self._probe_timer = None
        for answer in probes:
            answer(True)

    @property
    def probing(self) -> bool:
        """Whether another client waits for a sign of life of this one."""
        return bool(self._probes)

    def probe(self, answer: Callable[[bool], None]) -> None:
        """Ask the client for a sign of life, for another one that wants its place (rules 3.1.2, 5.3.1, 5.6.8).

        After ``connectionLivenessCheckTimeoutMillis`` of silence it is evicted, and the answer is False. No client is
        asked if that is 0 or less: the answer is True at once, unless the connection has ended already.
        """
        if self._leaving:
            self._probes.append(answer)
            return
        if self.closed:
            self.loop.call_soon(answer, False)
            return
        patience_ms = self.service.settings.connectionLivenessCheckTimeoutMillis
        if patience_ms <= 0:
            answer(True)
            return
        self._probes.append(answer)
        if self._probe_timer is None:
            self.send(c.CommandPing())
            self._probe_timer = self.loop.call_later(patience_ms / 1000, self._silent, patience_ms)

    def _silent(self, patience_ms: int) -> None:
        if not self.reading and not self.stuck:
            # it may have given a sign: it is not read, for a reason of the broker's own
            self.alive()
            return
        probes, self._probes = self._probes, []
        self.close(f"no sign of life for {patience_ms} ms while another client wants its place")
        self._probes = probes
        self.lost()

    def lost(self) -> None:
        """The connection is gone: everything it had opened leaves its topic, in the order it was opened.

        Some leave at once and the rest in later turns of the loop, which thousands would hold up. A client that waits
        for a place of this one is answered when all of them have left.
        """
        self._end()
        self.out.end()
        if self._probe_timer is not None:
            self._probe_timer.cancel()
            self._probe_timer = None
        opened = (*self.producers.values(), *self.reopening.values(), *self.consumers.values(), *self.watches.values())
        self.producers, self.reopening, self.consumers, self.watches = {}, {}, {}, {}
        # at once, before whatever they wait for happens
        call_all(self.address, [one.cancel for one in opened if isinstance(one, PendingOpen)])
        self._leaving[:0] = [one for one in reversed(opened) if not isinstance(one, PendingOpen)]
        self._leave()

    def _leave(self) -> None:
        some = [self._leaving.pop() for _ in range(min(LEAVE_AT_ONCE, len(self._leaving)))]
        call_all(self.address, [partial(self._left, one) for one in some])
        if self._leaving:
            self.loop.call_soon(self._leave)
            return
        probes, self._probes = self._probes, []
        call_all(self.address, [partial(answer, False) for answer in probes])

    def _left(self, opened: Producer | OpenConsumer | OpenWatch) -> None:
        if isinstance(opened, Producer):
            self.service.producer_left(opened)
        elif isinstance(opened, OpenConsumer):
            opened.leave(lost=True)
        else:
            opened.close()

    # limits of rates ---------------------------------------------------------------------------------------------

    def throttle(self, limits: tuple[RateLimit, ...]) -> None:
        """Handle nothing more until all ``limits`` have room: the client publishes faster than it may (rule 14.6)."""
        if self._held is not None or self.closed:
            return
        held = HeldConnection(limits, self._let_go)
        if held.wait():
            self._held = held
            self.halted = True
            self.stop_reading(RATE)

    @property
    def throttled(self) -> bool:
        """Whether a limit of rates holds it up."""
        return self._held is not None

    def _let_go(self) -> None:
        self._held = None
        if not self.closed:
            self.halted = False
            self.read_again(RATE)
            self.carry_on()

    def writable_again(self) -> None:
        """Serve its consumers again: the socket takes more."""
        for held in list(self.consumers.values()):
            if isinstance(held, OpenConsumer):
                held.subscription.resume(held.consumer)


def _nothing() -> None: ...
