"""What the REST interface needs of the broker, by subject; a group of routes takes the ports it needs.

:mod:`magnetar.admin.local_broker` implements them over the broker of this process, tests over dictionaries. All of them
are called from the event loop only. The routes check what the metadata knows (names, tenants, namespaces, partition
counts) and whether a topic exists before they call; the broker raises errors of :mod:`magnetar.model.errors`, whose
text becomes the reason.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from magnetar.admin.broker_control import BrokerControlPort
from magnetar.admin.values.counters import CounterOptions, Measured, TopicCounters
from magnetar.admin.values.inner_peer import InnerClientMaker
from magnetar.admin.values.stored_message import StoredMessage
from magnetar.model.ids import Position
from magnetar.model.names import Domain, NamespaceName, TopicName
from magnetar.model.policies import Json, JsonObject
from magnetar.model.schemas import SchemaDefinition, SchemaVersion
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.commands import TxnId


class LookupAnswer(NamedTuple):
    """Addresses of the broker that serves a topic; empty where the port is not open."""

    broker_url: str
    broker_url_tls: str
    http_url: str
    http_url_tls: str


class StatsOptions(NamedTuple):
    """Query parameters of a request for statistics (rule 11.4.4)."""

    precise_backlog: bool = False
    subscription_backlog_size: bool = True
    earliest_time_in_backlog: bool = False
    exclude_publishers: bool = False
    exclude_consumers: bool = False
    log_members: bool = False
    """Whether to add the members about the log that only broker-stats shows beside these, and no request asks for."""


class TopicsPort(Protocol):
    """Topics and partitions: whether they exist, making and removing them, and the policies that hold for them."""

    def topics_of(self, namespace: NamespaceName) -> Iterable[TopicName]:
        """Every topic that exists, loaded or not, of both domains; partitions, but never their parent."""
        ...

    def names_of(self, namespace: NamespaceName, domains: Sequence[Domain], *, system: bool) -> Sequence[Sequence[str]]:
        """Full names of topics, sorted, in pieces of some hundred; ``system`` includes the broker's own topics."""
        ...

    def topic_exists(self, topic: TopicName) -> bool:
        """Whether a plain topic or a partition exists, loaded or not."""
        ...

    def partitions_of(self, topic: TopicName) -> list[TopicName]:
        """The partitions that exist, in their order; the metadata may name more."""
        ...

    def clients_of(self, topic: TopicName) -> int:
        """The number of producers and consumers that are connected to a topic."""
        ...

    async def partition_count(self, topic: TopicName, *, auto_create: bool) -> int:
        """What PARTITIONED_METADATA answers; 0 is not partitioned (rules 2.7, 2.8). Raises TopicNotFoundError."""
        ...

    def room_for(self, namespace: NamespaceName, topics: int) -> bool:
        """Whether the namespace may have so many more topics (maxTopicsPerNamespace)."""
        ...

    def policies_of(self, topic: TopicName, *, local: bool = True) -> TopicPolicies:
        """The policies that apply to a topic, loaded or not, from whatever level they come.

        Without ``local``: those that would apply if it had no local ones.
        """
        ...

    async def policies_in_force(self) -> None:
        """Return when all topics apply the policies that were changed."""
        ...

    async def create_topic(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """Make a topic that does not exist; durable on return."""
        ...

    async def create_partitions(self, topic: TopicName, first: int, end: int) -> None:
        """Make partitions ``first`` to ``end - 1`` of a partitioned topic; existing ones stay as they are."""
        ...

    async def delete_topic(self, topic: TopicName, *, force: bool) -> None:
        """Remove topic, subscriptions and data; ``force`` disconnects its clients first."""
        ...

    async def unload_topic(self, topic: TopicName) -> None:
        """Close a topic; its clients reconnect, and nothing is lost (rule 16.4)."""
        ...


class TopicOperationsPort(Protocol):
    """What changes one existing topic or its properties."""

    async def terminate(self, topic: TopicName) -> JsonObject:
        """End a topic: no message follows. Returns the id of the last one (rule 4.7.1)."""
        ...

    async def truncate(self, topic: TopicName) -> None:
        """Acknowledge and delete everything in the log; a compacted view stays."""
        ...

    async def trim(self, topic: TopicName) -> None:
        """Delete what retention does not keep."""
        ...

    def topic_properties(self, topic: TopicName) -> dict[str, str]:
        """The user's properties of a topic."""
        ...

    async def set_topic_properties(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """Replace the properties; durable on return."""
        ...

    async def compact_topic(self, topic: TopicName) -> None:
        """Begin a run of compaction. Raises ConflictError "Compaction already in progress"."""
        ...

    async def compaction_status(self, topic: TopicName) -> JsonObject:
        """``status`` (NOT_RUN, RUNNING, SUCCESS, ERROR) and ``lastError`` (rule 4.7.4)."""
        ...


class SubscriptionsPort(Protocol):
    """Subscriptions of one topic, and what moves their cursors.

    A method that is given the name of a subscription that does not exist raises SubscriptionNotFoundError.
    """

    async def subscriptions_of(self, topic: TopicName) -> list[str]:
        """Names of the subscriptions, in the order in which they were made."""
        ...

    async def create_subscription(
        self, topic: TopicName, name: str, start: Position, properties: Mapping[str, str], *, replicated: bool
    ) -> None:
        """Make a durable subscription that begins at ``start`` (ids.EARLIEST, ids.LATEST or a message).

        A missing topic is created. Raises SubscriptionExistsError.
        """
        ...

    async def deletion_over(self, topic: TopicName, name: str) -> None:
        """Return when no deletion of a subscription of that name is on its way to the disk, at once if none is."""
        ...

    async def delete_subscription(self, topic: TopicName, name: str, *, force: bool) -> None:
        """Delete a subscription; unless ``force``, raises PreconditionFailedError if it has consumers."""
        ...

    async def skip(self, topic: TopicName, name: str, entries: int | None) -> None:
        """Acknowledge the next ``entries`` unacknowledged entries, or all for None."""
        ...

    async def skip_unreadable(self, topic: TopicName, name: str) -> int:
        """Acknowledge the damaged entries that stop the subscription; return how many."""
        ...

    async def expire(self, topic: TopicName, name: str, seconds: int) -> bool:
        """Acknowledge messages older than ``seconds``; return whether there was anything to look at (rule 11.5.6).

        Raises ConflictError for the cursor of compaction.
        """
        ...

    async def expire_until(self, topic: TopicName, name: str, position: Position, excluded: bool) -> bool:
        """Acknowledge messages up to ``position``, included unless ``excluded``; False: the topic ends before it.

        Raises ConflictError for the cursor of compaction.
        """
        ...

    async def reset_cursor(self, topic: TopicName, name: str, publish_time_ms: int) -> None:
        """Move the cursor to the first entry published at or after that time."""
        ...

    async def reset_to(
        self, topic: TopicName, name: str, position: Position, excluded: bool, batch_index: int = -1
    ) -> None:
        """Make that message the next one, or the one after it if ``excluded``; of a batch from 0 on, else its entry."""
        ...

    def is_replicated(self, topic: TopicName, name: str) -> bool:
        """Whether the subscription's state is to be replicated (rule 14.3)."""
        ...

    async def set_replicated(self, topic: TopicName, name: str, *, replicated: bool) -> None:
        """Keep or forget that wish; durable on return."""
        ...

    def subscription_properties(self, topic: TopicName, name: str) -> dict[str, str]:
        """The user's properties of a subscription."""
        ...

    async def set_subscription_properties(self, topic: TopicName, name: str, properties: Mapping[str, str]) -> None:
        """Replace the properties; durable on return."""
        ...


class MessagesPort(Protocol):
    """Message ids and single stored entries of a topic."""

    async def last_message_id(self, topic: TopicName) -> JsonObject:
        """The id of the last message (rule 11.4.5)."""
        ...

    async def message_id_since(self, topic: TopicName, publish_time_ms: int) -> JsonObject:
        """The id of the first entry published at or after that time (rule 11.4.5)."""
        ...

    async def peek(self, topic: TopicName, name: str, number: int) -> StoredMessage:
        """The ``number``-th unacknowledged entry of a subscription. Raises SubscriptionNotFoundError, NotFoundError."""
        ...

    async def examine(self, topic: TopicName, number: int, *, from_start: bool) -> StoredMessage:
        """The ``number``-th stored entry from one end. Raises PreconditionFailedError, NotFoundError."""
        ...

    async def message(self, topic: TopicName, position: Position) -> StoredMessage:
        """The entry at ``position``. Raises NotFoundError."""
        ...


class StatisticsPort(Protocol):
    """Statistics of one topic or subscription, as JSON."""

    async def topic_stats(self, topic: TopicName, options: StatsOptions) -> JsonObject:
        """Statistics of a topic, which is loaded if necessary (rule 11.4.11)."""
        ...

    async def internal_stats(self, topic: TopicName) -> JsonObject:
        """Ledgers and cursors of a topic."""
        ...

    async def managed_ledger_info(self, topic: TopicName) -> JsonObject:
        """Ledgers and cursors as their metadata has them."""
        ...

    async def offline_backlog(self, topic: TopicName, parts: Sequence[TopicName]) -> JsonObject:
        """What is stored in ``parts`` and how much of it subscriptions have not acknowledged; nothing is read."""
        ...

    def backlog_size(self, topic: TopicName, position: Position) -> int:
        """Bytes of the entries after ``position``, estimated; all for one before the first entry."""
        ...

    async def analyze_backlog(self, topic: TopicName, name: str, start: Position | None) -> JsonObject:
        """Count unacknowledged messages by reading them, from ``start`` on. Raises SubscriptionNotFoundError."""
        ...

    async def explain(self, topic: TopicName, name: str) -> JsonObject:
        """Why nothing arrives on a subscription. Raises SubscriptionNotFoundError."""
        ...

    async def unacknowledged(self, topic: TopicName, name: str, slot: int | None, key: str | None) -> JsonObject:
        """Messages of a Key_Shared hash or of a key. Raises SubscriptionNotFoundError, PreconditionFailedError."""
        ...


class BrokerPort(Protocol):
    """The broker itself, and the numbers that /metrics shows."""

    def lookup(self, topic: TopicName, listener: str | None) -> LookupAnswer:
        """The broker that serves a topic. Raises ServiceNotReadyError "the broker do not have <listener> listener"."""
        ...

    def web_url(self) -> str:
        """The address of the REST interface, with TLS only if there is no other."""
        ...

    def broker_id(self) -> str:
        """``host:port`` of the REST interface, as /brokers lists it."""
        ...

    async def check_health(self, *, with_cluster: bool) -> None:
        """Send a message through this broker; raise if it is lost. ``with_cluster`` picks the heartbeat topic."""
        ...

    def measurements(self) -> Iterable[Measured]:
        """The numbers of the broker as a whole at this moment."""
        ...

    def counters(self, options: CounterOptions) -> AsyncIterator[TopicCounters]:
        """The numbers of every loaded topic, each counted when it is reached; others have turns meanwhile."""
        ...


class SchemasPort(Protocol):
    """The schemas of all topics; changes are durable on return."""

    def versions(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """The versions since the last deletion, oldest first."""
        ...

    def history(self, topic: TopicName) -> tuple[SchemaVersion, ...]:
        """All versions, deletions among them."""
        ...

    def latest(self, topic: TopicName) -> SchemaVersion | None:
        """The newest version, None for a topic without a schema."""
        ...

    def get(self, topic: TopicName, version: int) -> SchemaVersion | None:
        """The version with that number, unless it was deleted."""
        ...

    def find(self, topic: TopicName, definition: SchemaDefinition) -> SchemaVersion | None:
        """The version that has this schema."""
        ...

    def strategy(self, topic: TopicName) -> str:
        """The compatibility strategy that new versions have to meet."""
        ...

    async def require_compatible(self, topic: TopicName, definition: SchemaDefinition) -> None:
        """Check that :meth:`add` would accept the schema. Raises InvalidSchemaDataError, IncompatibleSchemaError."""
        ...

    async def add(self, topic: TopicName, definition: SchemaDefinition, *, by_client: bool) -> int:
        """Add a version and return its number, or that of the version that has this schema already (rule 10.4)."""
        ...

    async def delete(self, topic: TopicName) -> int:
        """Delete the schema; the deletion is a version, whose number is returned (rule 10.11)."""
        ...

    async def purge(self, topic: TopicName) -> None:
        """Remove all versions."""
        ...


class TransactionsPort(Protocol):
    """Transactions as JSON (:mod:`magnetar.admin.local_broker.transaction_views`)."""

    def coordinators(self) -> list[Json]: ...
    def coordinator_internals(self, coordinator: int) -> JsonObject: ...
    def pending_ack_internals(self, name: TopicName, subscription: str) -> JsonObject: ...
    def buffer_internals(self, name: TopicName) -> JsonObject: ...
    def coordinator_stats(self) -> JsonObject: ...
    def owner(self, txn: TxnId) -> str | None: ...
    def transaction(self, txn: TxnId) -> JsonObject: ...
    def slow(self, timeout_ms: int) -> JsonObject: ...
    async def abort(self, txn: TxnId) -> None: ...
    def buffer(self, name: TopicName, *, low_water_marks: bool) -> JsonObject: ...
    def in_buffer(self, name: TopicName, txn: TxnId) -> JsonObject: ...
    def pending_acks(self, name: TopicName, subscription: str, *, low_water_marks: bool) -> JsonObject: ...
    def in_pending_acks(self, name: TopicName, subscription: str, txn: TxnId) -> JsonObject: ...
    def position(self, name: TopicName, subscription: str, at: Position, batch_index: int | None) -> JsonObject: ...


class OffloadsPort(Protocol):
    """Offloaded ledgers (:mod:`magnetar.admin.local_broker.offload_views`)."""

    def begin(self, name: TopicName, until: Position) -> None: ...
    def scan(self, namespace: NamespaceName) -> AsyncIterator[JsonObject]: ...
    def status(self, name: TopicName) -> JsonObject: ...
    def ledgers(self, name: TopicName) -> JsonObject: ...
    async def adopt(self, name: TopicName, ledger: int, object_name: str) -> JsonObject: ...
    async def plan_compaction(self, name: TopicName) -> JsonObject: ...
    def adopt_view(self, name: TopicName, given: JsonObject) -> None: ...


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """All ports of one broker, for the application, which gives each group of routes those that it needs."""

    topics: TopicsPort
    operations: TopicOperationsPort
    subscriptions: SubscriptionsPort
    messages: MessagesPort
    statistics: StatisticsPort
    broker: BrokerPort
    control: BrokerControlPort
    schemas: SchemasPort
    offloads: OffloadsPort
    clients: InnerClientMaker
    transactions: TransactionsPort | None
    """None on a broker without transactions."""
