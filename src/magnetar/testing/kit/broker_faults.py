"""What a test does to its broker: faults on the wire, a disk that is full, the end of the process.

Faults on the wire meet frames of commands, whose names are those of Pulsar's protocol without ``Command`` (``Send``,
``SendReceipt``, ``Ack``; written anyhow). Chance is drawn from the broker's seed, in the order in which frames come.
"""

from __future__ import annotations

import difflib
import random
from types import TracebackType
from typing import Final

from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.model.names import TopicName
from magnetar.testing.kit.broker_thread import BrokerThread
from magnetar.testing.kit.call_arguments import checked
from magnetar.testing.kit.embedded_broker import EmbeddedBroker
from magnetar.testing.kit.fault import Aim, Deed, Fault
from magnetar.testing.kit.frame_cutter import NUMBER_OF

_UNANSWERED: Final = frozenset({"ack", "flow", "ping", "pong", "redeliverunacknowledgedmessages", "authresponse"})
"""Commands of clients that ask for no answer; an Ack may."""


class BrokerFaults:
    """Made by the broker, and found in :attr:`PulsarBroker.faults`. Its calls may come from any thread."""

    def __init__(self, embedded: EmbeddedBroker, thread: BrokerThread, rng: random.Random) -> None:
        self._embedded = embedded
        self._thread = thread
        self._rng = rng

    # the wire ----------------------------------------------------------------------------------------------------

    def drop(
        self,
        command: str,
        times: int | None = 1,
        *,
        topic: str | None = None,
        subscription: str | None = None,
        chance: float = 1.0,
    ) -> Fault:
        """Lose commands, ``times`` of them (None: until :meth:`Fault.stop`). Raises InvalidValueError."""
        checked("drop", command=command, times=times, topic=topic, subscription=subscription, chance=chance)
        return self._switch_on(Deed.DROP, command, times, topic, subscription, chance)

    def drop_ack(
        self,
        times: int | None = 1,
        *,
        topic: str | None = None,
        subscription: str | None = None,
        chance: float = 1.0,
    ) -> Fault:
        """Lose acknowledgements on their way to the broker: they come again with the next connection.

        One command may acknowledge many messages.
        """
        return self.drop("Ack", times, topic=topic, subscription=subscription, chance=chance)

    def drop_receipt(
        self, times: int | None = 1, *, topic: str | None = None, chance: float = 1.0, cut: bool = True
    ) -> Fault:
        """Lose receipts of messages that are stored; with ``cut`` the connection, too, as networks do.

        A producer then sends again what is stored already, which deduplication notices.
        """
        checked("drop_receipt", times=times, topic=topic, chance=chance, cut=cut)
        deed = Deed.CUT if cut else Deed.DROP
        return self._switch_on(deed, "SendReceipt", times, topic, None, chance)

    def cut(self, topic: str | None = None) -> int:
        """Cut the connections now, or those that have the topic open; returns how many. Clients connect again."""
        checked("cut", topic=topic)
        name = _full(topic)

        async def cut() -> int:
            found = [one for one in self._embedded.faults.connections if name is None or one.serves(name)]
            for connection in found:
                connection.abort()
            return len(found)

        return self._thread.call(cut)

    def cut_at(self, command: str, times: int | None = 1, *, topic: str | None = None, chance: float = 1.0) -> Fault:
        """Cut the connection in the place of handing on such a command. Raises InvalidValueError."""
        checked("cut_at", command=command, times=times, topic=topic, chance=chance)
        return self._switch_on(Deed.CUT, command, times, topic, None, chance)

    def refuse(
        self,
        command: str,
        error: ServerError | str = ServerError.ServiceNotReady,
        times: int | None = 1,
        *,
        message: str = "refused by the test",
        topic: str | None = None,
        chance: float = 1.0,
    ) -> Fault:
        """Answer requests of clients with an error; the broker does not see them. Raises InvalidValueError."""
        checked(
            "refuse", command=command, error=error, times=times, message=message, topic=topic, chance=chance
        )  # fmt: skip
        name = command.lower().removeprefix("command").replace("_", "")
        if name in _UNANSWERED - {"ack"}:
            raise InvalidValueError(f"a client that sends {command} waits for no answer: drop() it instead")
        aim = self._aim(command, topic, None)
        return self._embedded.faults.add(
            Fault(Deed.REFUSE, aim, self._rng, times=times, chance=chance, error=_error(error), message=message)
        )

    def delay(
        self,
        seconds: float,
        command: str,
        times: int | None = None,
        *,
        topic: str | None = None,
        subscription: str | None = None,
        chance: float = 1.0,
    ) -> Fault:
        """Hold commands up, and all that follow them on the connection; seconds of the broker's clock."""
        checked(
            "delay", seconds=seconds, command=command, times=times, topic=topic, subscription=subscription,
            chance=chance,
        )  # fmt: skip
        return self._switch_on(Deed.DELAY, command, times, topic, subscription, chance, seconds)

    def chaos(self, chance: float = 0.05) -> Chaos:
        """Cut connections at sends, receipts, messages and acknowledgements, by chance, until its block ends.

        Nothing that was promised is broken by it: clients connect again. Raises InvalidValueError.
        """
        checked("chaos", chance=chance)
        return Chaos(
            [
                self._switch_on(Deed.CUT, command, None, None, None, chance)
                for command in ("Send", "SendReceipt", "Message", "Ack")
            ]
        )

    # the machine -------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the broker as kill -9 does, without a word to its clients; :meth:`PulsarBroker.restart` boots it again.

        What was receipted is there then; what was not may be or not.
        """

        async def kill() -> None:
            _ = self._embedded.broker
            self._embedded.kill()

        self._thread.call(kill)

    def power_off(self) -> None:
        """End it as a power cut does: bytes that were not synced are gone, there or torn, by the seed."""

        async def power_off() -> None:
            _ = self._embedded.broker
            self._embedded.power_off()

        self._thread.call(power_off)

    def disk_full(self) -> FullDiskFault:
        """Leave the disk no room from now on until its block ends, or :meth:`FullDiskFault.stop`."""
        return FullDiskFault(self._embedded, self._thread)

    # -------------------------------------------------------------------------------------------------------------

    def _switch_on(
        self,
        deed: Deed,
        command: str,
        times: int | None,
        topic: str | None,
        subscription: str | None,
        chance: float,
        seconds: float = 0.0,
    ) -> Fault:
        aim = self._aim(command, topic, subscription)
        return self._embedded.faults.add(Fault(deed, aim, self._rng, times=times, chance=chance, seconds=seconds))

    def _aim(self, command: str, topic: str | None, subscription: str | None) -> Aim:
        name = command.lower().removeprefix("command").replace("_", "")
        number = NUMBER_OF.get(name)
        if number is None:
            near = difflib.get_close_matches(name[:60], NUMBER_OF, 3)
            raise InvalidValueError(
                f"{command[:60]!r} is no command of Pulsar's protocol; "
                + (f"is it one of {', '.join(near)}?" if near else "Send, SendReceipt, Message and Ack are some")
            )
        return Aim(number=number, topic=_full(topic), subscription=subscription)


class Chaos:
    """Several faults that end together."""

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = faults

    @property
    def hits(self) -> int:
        """How often it has struck."""
        return sum(fault.hits for fault in self._faults)

    def stop(self) -> None:
        """End it. Repeatable."""
        for fault in self._faults:
            fault.stop()

    def __enter__(self) -> Chaos:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class FullDiskFault:
    """A disk without room."""

    def __init__(self, embedded: EmbeddedBroker, thread: BrokerThread) -> None:
        self._embedded = embedded
        self._thread = thread
        thread.call(self._fill)

    async def _fill(self) -> None:
        self._embedded.files.faults.capacity_bytes = 0

    async def _empty(self) -> None:
        self._embedded.files.faults.capacity_bytes = None

    def stop(self) -> None:
        """Give the disk room again; the broker notices within a second of its clock. Repeatable."""
        self._thread.call(self._empty)

    def __enter__(self) -> FullDiskFault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.open:
            self.stop()


def _full(topic: str | None) -> str | None:
    return None if topic is None else TopicName.parse(topic).fqn


def _error(error: ServerError | str) -> ServerError:
    if isinstance(error, ServerError):
        return error
    try:
        return ServerError[error]
    except KeyError:
        near = difflib.get_close_matches(error[:60], ServerError.__members__, 3) or ["ServiceNotReady"]
        raise InvalidValueError(f"{error[:60]!r} is no error of Pulsar's; is it one of {', '.join(near)}?") from None
