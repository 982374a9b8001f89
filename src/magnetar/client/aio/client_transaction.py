"""Messages and acknowledgements that count together or not at all (rules of group 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.errors import AlreadyClosedError, ArgumentError, RefusedError
from magnetar.client.machines.acknowledgement import ids_in_transaction
from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c

if TYPE_CHECKING:
    from magnetar.client.aio.connections.topic_lookup import TopicLookup
    from magnetar.client.aio.topics.receipt import Receipt
    from magnetar.client.aio.topics.topic_consumer import TopicConsumer

_ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"
_Changed: TypeAlias = (
    c.CommandAddPartitionToTxnResponse | c.CommandAddSubscriptionToTxnResponse | c.CommandEndTxnResponse
)
Answer = TypeVar("Answer", bound=c.CommandNewTxnResponse | _Changed)


class ClientTransaction:
    """A transaction; make it with `Client.new_transaction`, and use it as an asynchronous context manager, which
    commits it, or aborts it if an exception leaves the block."""

    def __init__(self, coordinator: CoordinatorSession, txn_id: c.TxnId) -> None:
        self.txn_id = txn_id
        self._coordinator = coordinator
        self._topics: dict[str, asyncio.Task[None]] = {}
        self._subscriptions: dict[c.TxnSubscription, asyncio.Task[None]] = {}
        self._begun: set[asyncio.Future[None]] = set()
        self._receipts: set[asyncio.Future[MessageId]] = set()
        self._acks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._ended = False

    async def __aenter__(self) -> ClientTransaction:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._ended:
            await (self.commit() if kind is None else self.abort())

    def check_use(self, lookup: TopicLookup) -> None:
        """Raise ArgumentError for a handle of another client, whose connections may lead to another cluster."""
        if not self._coordinator.is_of(lookup):
            raise ArgumentError(
                f"transaction {self.txn_id.most}:{self.txn_id.least} was begun by another client: begin it with the "
                "client of this producer or consumer"
            )

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Let the end of the transaction wait for a message or acknowledgement that is only being prepared, so that
        none comes after it."""
        self._check()
        begun = asyncio.get_running_loop().create_future()
        self._begun.add(begun)
        try:
            yield
        finally:
            self._begun.discard(begun)
            begun.set_result(None)

    async def _quiet(self) -> None:
        """Wait for all its messages and acknowledgements."""
        while waiting := self._unmet():
            await asyncio.wait(waiting)

    def _unmet(self) -> list[asyncio.Future[Any]]:
        return [*self._begun, *self._receipts, *self._acks]

    async def publishes_to(self, topic: str) -> None:
        """Have the coordinator know that the transaction touches a topic, once."""
        self._check()
        task = self._topics.get(topic)
        if task is None:
            task = self._topics[topic] = asyncio.get_running_loop().create_task(
                self._coordinator.add_partition(self.txn_id, topic)
            )
        await asyncio.shield(task)
        self._check()

    def watch(self, receipt: Receipt) -> None:
        """Let a commit wait for this message, and fail if it failed."""
        future = receipt.as_future()
        self._receipts.add(future)
        future.add_done_callback(self._met_its_fate)

    def _met_its_fate(self, done: asyncio.Future[MessageId]) -> None:
        self._receipts.discard(done)
        if done.cancelled() or done.exception() is not None:
            self._failure = self._failure or (None if done.cancelled() else done.exception())

    async def acknowledges(
        self, consumer: TopicConsumer, subscription: str, message_id: MessageId, kind: c.AckType
    ) -> None:
        """Acknowledge a message when the transaction is committed."""
        with self.beginning():
            ack = await self._acknowledge(consumer, subscription, message_id, kind)
        await asyncio.shield(ack)

    async def _acknowledge(
        self, consumer: TopicConsumer, subscription: str, message_id: MessageId, kind: c.AckType
    ) -> asyncio.Task[None]:
        one = c.TxnSubscription(consumer.topic, subscription)
        task = self._subscriptions.get(one)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._coordinator.add_subscription(self.txn_id, one))
            self._subscriptions[one] = task
        await asyncio.shield(task)
        self._check()
        ids = ids_in_transaction(message_id, cumulative=kind is c.AckType.Cumulative)
        ack = asyncio.get_running_loop().create_task(consumer.requests.acknowledge(ids, kind, self.txn_id))
        self._acks.add(ack)
        ack.add_done_callback(self._acknowledged)
        return ack

    def _acknowledged(self, done: asyncio.Task[None]) -> None:
        self._acks.discard(done)
        if not done.cancelled() and done.exception() is not None:
            self._failure = self._failure or done.exception()

    async def commit(self) -> None:
        """Wait for all its messages and acknowledgements, then make them count.

        Raises the first error of one of them, after the transaction was aborted; TransactionConflict and the like as
        RefusedError.
        """
        self._check()
        await self._quiet()
        if self._failure is not None:
            await self.abort()
            raise self._failure
        self._ended = True
        await self._coordinator.end(self.txn_id, c.TxnAction.COMMIT)

    async def abort(self) -> None:
        """Make nothing of it count."""
        self._check()
        self._ended = True
        await self._quiet()
        await self._coordinator.end(self.txn_id, c.TxnAction.ABORT)

    def _check(self) -> None:
        if self._ended:
            raise AlreadyClosedError(f"transaction {self.txn_id.most}:{self.txn_id.least} has ended")


class CoordinatorSession:
    """The coordinators of a cluster, which take turns in giving transactions."""

    def __init__(self, lookup: TopicLookup) -> None:
        self._lookup = lookup
        self._count: int | None = None
        self._turn = 0
        self._connected: dict[int, WireConnection] = {}

    def is_of(self, lookup: TopicLookup) -> bool:
        """Whether it belongs to the client with these questions."""
        return self._lookup is lookup

    async def begin(self, seconds: float) -> ClientTransaction:
        """Return a new transaction, which the coordinator aborts after that time. Raises RefusedError."""
        if self._count is None:
            try:
                count = await self._lookup.partition_count(_ASSIGN, create=False)
            except RefusedError as error:
                if error.code is not ServerError.TopicNotFound:
                    raise
                count = 0
            if not count:
                raise RefusedError(
                    "begin a transaction", ServerError.TransactionCoordinatorNotFound, "the cluster has none"
                )
            self._count = count
        number = self._turn % self._count
        self._turn += 1

        async def ask() -> c.TxnId:
            connection, answer = await self._answer(
                number, "begin a transaction", c.CommandNewTxnResponse,
                lambda request_id: c.CommandNewTxn(request_id, round(seconds * 1000), number),
            )  # fmt: skip
            if answer.error is not None or answer.txn is None:
                raise connection.refused(
                    "begin a transaction", answer.error or ServerError.UnknownError, answer.message
                )
            return answer.txn

        return ClientTransaction(self, await self._lookup.patiently(ask))

    async def _at(self, number: int) -> WireConnection:
        known = self._connected.get(number)
        if known is not None and known.lost is None:
            return known
        connection = await self._lookup.connect(f"{_ASSIGN}-partition-{number}")
        command = c.CommandTcClientConnectRequest(connection.new_request_id(), number)
        what = f"reach transaction coordinator {number}"
        answer = await connection.request(command, c.CommandTcClientConnectResponse, what)
        if answer.error is not None:
            raise connection.refused(what, answer.error, answer.message)
        self._connected[number] = connection
        return connection

    async def _answer(
        self, number: int, what: str, expected: type[Answer], command: Callable[[int], c.Command]
    ) -> tuple[WireConnection, Answer]:
        """Ask a coordinator; where it was before and is no more, it is looked up again, once: it has moved to another
        broker, and the connection to the old one lives on (rule 9.6)."""
        known = self._connected.get(number)
        while True:
            connection = await self._at(number)
            answer = await connection.request(command(connection.new_request_id()), expected, what)
            if answer.error is not ServerError.TransactionCoordinatorNotFound or connection is not known:
                return connection, answer
            known = None
            if self._connected.get(number) is connection:
                del self._connected[number]

    async def add_partition(self, txn: c.TxnId, topic: str) -> None:
        """Register a topic that the transaction publishes to; repeated while the coordinator is away, as `end`."""
        await self._repeated(
            txn, f"publish to {topic} in a transaction", c.CommandAddPartitionToTxnResponse,
            lambda request_id: c.CommandAddPartitionToTxn(request_id, txn, (topic,)),
        )  # fmt: skip

    async def add_subscription(self, txn: c.TxnId, one: c.TxnSubscription) -> None:
        """Register a subscription on which the transaction acknowledges; repeated as `add_partition`."""
        await self._repeated(
            txn, f"acknowledge on {one.topic} in a transaction", c.CommandAddSubscriptionToTxnResponse,
            lambda request_id: c.CommandAddSubscriptionToTxn(request_id, txn, (one,)),
        )  # fmt: skip

    async def end(self, txn: c.TxnId, action: c.TxnAction) -> None:
        """Commit or abort; repeated while the coordinator is away, which changes nothing (rules of group 9)."""
        await self._repeated(
            txn, f"{action.name.lower()} transaction {txn.most}:{txn.least}", c.CommandEndTxnResponse,
            lambda request_id: c.CommandEndTxn(request_id, txn, action),
        )  # fmt: skip

    async def _repeated(
        self,
        txn: c.TxnId,
        what: str,
        expected: type[_Changed],
        command: Callable[[int], c.Command],
    ) -> None:
        """Ask the transaction's coordinator, again while it is away: asked twice, it changes nothing more."""

        async def ask() -> None:
            connection, answer = await self._answer(txn.most, what, expected, command)
            if answer.error is not None:
                raise connection.refused(what, answer.error, answer.message)

        await self._lookup.patiently(ask)
