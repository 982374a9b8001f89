"""Who may publish to a topic at the same time: names, access modes, limits (rules 3.1.2, 3.1.6, 3.2).

Shared producers are many, each with a name of its own. An exclusive one is alone; it becomes so when its topic epoch is
durable, and is answered only then, so that after a crash no producer holds an epoch that is given to another one. Who
wants to wait stands in a queue, first come first served, and is promoted when the last producer before it has left.

Everything happens on the event loop in one step; only answers come later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.publish.topic_epoch import EPOCH_NAMED_MAX, TopicEpoch
from magnetar.model.errors import MagnetarError, ProducerBusyError, ProducerFencedError, ServiceNotReadyError
from magnetar.protocol.commands import ProducerAccessMode

Admitted = Callable[[MagnetarError | None], None]

_PREFIX: Final = "org.apache.pulsar.broker.service.BrokerServiceException$"


class ProducerLimits(NamedTuple):
    """0: without limit."""

    producers: int = 0
    same_address: int = 0


class _Waiting(NamedTuple):
    producer: Producer
    epoch: int | None
    """The epoch that it had before."""
    admitted: Admitted


class Producers:
    """The producers of one topic, by name, and those who wait."""

    def __init__(self, topic: str, epoch: TopicEpoch) -> None:
        self._topic = topic
        self.epoch = epoch
        self._by_name: dict[str, Producer] = {}
        self._exclusive: Producer | None = None
        self._entering: _Waiting | None = None
        """The exclusive one while its epoch is not durable."""
        self._queue: list[_Waiting] = []

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Producer]:
        return iter(list(self._by_name.values()))

    def with_waiting(self) -> list[Producer]:
        """Those who stand in the queue as well: what changes for all has to change for them."""
        return [*self._by_name.values(), *(waiting.producer for waiting in self._queue)]

    @property
    def waiting(self) -> int:
        """How many stand in the queue."""
        return len(self._queue)

    def holder(self, name: str) -> Producer | None:
        """Who has this name now."""
        return self._by_name.get(name)

    def connected(self, name: str) -> bool:
        """Whether a producer has this name now."""
        return name in self._by_name

    def admit(self, producer: Producer, epoch: int | None, limits: ProducerLimits, admitted: Admitted) -> bool:
        """Let the producer in; ``admitted`` is called when it may publish, at once if it is a shared one.

        ``epoch`` is that of its earlier life, if it had one. False if it has to wait until others have left.
        Raises ProducerBusyError, ProducerFencedError.
        """
        owned = self._replace(producer)
        try:
            self._admit(producer, epoch, limits, admitted, owned=owned)
        finally:
            self._promote_next()
        return all(waiting.producer is not producer for waiting in self._queue)

    def _admit(
        self, producer: Producer, epoch: int | None, limits: ProducerLimits, admitted: Admitted, *, owned: bool
    ) -> None:
        """``owned``: an earlier life of the producer was the exclusive one, and is before those that wait."""
        mode = producer.info.access_mode
        if mode is ProducerAccessMode.Shared:
            self._check_shared(producer, limits)
            producer.topic_epoch = self.epoch.current
            self._by_name[producer.info.name] = producer
            admitted(None)
            return
        if mode is ProducerAccessMode.WaitForExclusive and (self._by_name or self._queue) and not owned:
            self._queue.append(_Waiting(producer, epoch, admitted))
            return
        if mode is ProducerAccessMode.Exclusive and not owned:
            self._check_exclusive()
        # Apache Pulsar throws out the owner before it looks whether the newcomer is too late itself
        self._check_epoch(epoch)
        if mode is ProducerAccessMode.ExclusiveWithFencing:
            self._fence_out()
        self._check_limits(producer, limits)
        self._own(producer, epoch, admitted)

    def _replace(self, producer: Producer) -> bool:
        """A later life of a producer on the same connection takes the place of the earlier one (rule 3.1.2).

        Whether that was the exclusive one.
        """
        info = producer.info
        held = self._by_name.get(info.name)
        if held is None or held.connection.session is not producer.connection.session:
            return False
        if held.info.producer_id != info.producer_id or info.epoch <= held.info.epoch:
            return False
        held.close()
        del self._by_name[info.name]
        if held is not self._exclusive:
            return False
        self._exclusive = self._entering = None
        return True

    def _check_shared(self, producer: Producer, limits: ProducerLimits) -> None:
        if self._exclusive is not None or self._queue:
            raise ProducerBusyError(f"{_PREFIX}ProducerBusyException: {self._owned()}")
        self._check_limits(producer, limits)
        name = producer.info.name
        if name in self._by_name:
            raise ProducerBusyError(
                f"{_PREFIX}NamingException: Producer with name '{name}' is already connected to topic '{self._topic}'"
            )

    def _check_exclusive(self) -> None:
        if self._exclusive is not None or self._queue:
            raise _fenced(self._owned())
        if self._by_name:
            raise _fenced("Topic has existing shared producers")

    def _owned(self) -> str:
        # Pulsar's word for no producer, when only the queue is in the way
        name = "null" if self._exclusive is None else self._exclusive.info.name
        return f"Topic has an existing exclusive producer: {name}"

    def _check_epoch(self, epoch: int | None) -> None:
        current = self.epoch.current
        if epoch is not None and current is not None and epoch < current:
            raise _fenced(f"Topic epoch has already moved. Current epoch: {current}, Producer epoch: {epoch}")
        if epoch is not None and epoch > max(current or 0, EPOCH_NAMED_MAX):
            raise _fenced(f"No producer was ever given the topic epoch {epoch}")

    def _check_limits(self, producer: Producer, limits: ProducerLimits) -> None:
        if 0 < limits.same_address <= sum(_host(held) == _host(producer) for held in self._by_name.values()):
            text = f"Topic '{self._topic}' reached max same address producers limit"
            raise ProducerBusyError(f"{_PREFIX}ProducerBusyException: {text}")
        if 0 < limits.producers <= len(self._by_name):
            text = f"Topic '{self._topic}' reached max producers limit"
            raise ProducerBusyError(f"{_PREFIX}ProducerBusyException: {text}")

    def _fence_out(self) -> None:
        """Every producer goes: those that wait are refused, those that are open will notice (rule 3.2.3)."""
        self._refuse_waiting(_fenced("Fenced out"))
        for producer in self._by_name.values():
            producer.close()
            producer.connection.fence()
        self._by_name.clear()
        self._exclusive = None

    def _own(self, producer: Producer, epoch: int | None, admitted: Admitted) -> None:
        current = self.epoch.current
        if epoch is None:
            epoch = 0 if current is None else current + 1
        producer.topic_epoch = epoch
        self._exclusive = producer
        self._by_name[producer.info.name] = producer
        entering = self._entering = _Waiting(producer, epoch, admitted)

        def durable() -> None:
            if self._entering is entering:
                self._entering = None
                admitted(None)

        try:
            self.epoch.move(epoch, durable)
        except BaseException:
            del self._by_name[producer.info.name]
            self._exclusive = self._entering = None
            raise

    def _refuse_waiting(self, error: MagnetarError) -> None:
        """Those whose request has no answer yet."""
        waiting, self._queue = self._queue, []
        if self._entering is not None:
            waiting.insert(0, self._entering)
            del self._by_name[self._entering.producer.info.name]
            self._exclusive = self._entering = None
        for each in waiting:
            each.producer.close()
            each.admitted(error)

    def remove(self, producer: Producer) -> None:
        """The producer left; its entries in flight still become durable, their receipts go nowhere."""
        producer.close()
        self._queue = [waiting for waiting in self._queue if waiting.producer is not producer]
        if self._by_name.get(producer.info.name) is not producer:
            return
        del self._by_name[producer.info.name]
        if not self._by_name:
            self._by_name.clear()  # an emptied dictionary keeps its table
        if producer is self._exclusive:
            self._exclusive = self._entering = None
        self._promote_next()

    def _promote_next(self) -> None:
        """Without a producer the first of those that wait comes, as far as its epoch is not over."""
        while self._queue and not self._by_name:
            self._promote(self._queue.pop(0))

    def _promote(self, waiting: _Waiting) -> None:
        try:
            self._check_epoch(waiting.epoch)
            self._own(waiting.producer, waiting.epoch, waiting.admitted)
        except MagnetarError as refused:
            waiting.producer.close()
            waiting.admitted(refused)

    def close_all(self) -> None:
        """Let every producer go (unload, deletion, failed write); who waits has to ask again."""
        self._refuse_waiting(ServiceNotReadyError(f"{_PREFIX}TopicFencedException: Topic is temporarily unavailable"))
        self._exclusive = None
        for producer in list(self._by_name.values()):
            producer.close()
            producer.connection.close()
        self._by_name.clear()

    def close(self, producer: Producer) -> None:
        """Let one go."""
        producer.connection.close()
        self.remove(producer)


def _fenced(text: str) -> ProducerFencedError:
    return ProducerFencedError(f"{_PREFIX}ProducerFencedException: {text}")


def _host(producer: Producer) -> str:
    return producer.info.address.rpartition(":")[0]
