"""The broker as a whole: which topics exist and are loaded, and what all of them share."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from random import Random

from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.grants import Grants
from magnetar.broker.activity import Activity
from magnetar.broker.namespaces.creation_rules import CreationRules
from magnetar.broker.namespaces.lookup import BrokerAddresses, addresses
from magnetar.broker.namespaces.lookup_limit import LookupLimit
from magnetar.broker.namespaces.partition_creation import PartitionCreator
from magnetar.broker.namespaces.topic_changes import TopicChanges
from magnetar.broker.namespaces.topic_directory import TopicDirectory
from magnetar.broker.namespaces.watched_lists import WatchedLists
from magnetar.broker.offloader import Offloader
from magnetar.broker.policies.broker_policies import broker_rates
from magnetar.broker.policies.effective_policies import EffectivePolicies
from magnetar.broker.policies.policy_events import PolicyEvents
from magnetar.broker.policies.policy_notification import PolicyNotification
from magnetar.broker.policies.subscribe_rate_limiter import SubscribeRateLimiter
from magnetar.broker.policies.topic_settings import dispatch_settings, publish_settings
from magnetar.broker.schema_registry import SchemaRegistry
from magnetar.broker.surroundings import Surroundings
from magnetar.broker.throttling.shared_limits import SharedLimits
from magnetar.broker.topic.nonpersistent.nonpersistent_topics import NonPersistentTopics
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.topic import Topic
from magnetar.broker.topic.topic_api import TopicApi
from magnetar.broker.transaction_coordinator import TransactionCoordinator
from magnetar.config.advertised_listeners import advertised_listeners
from magnetar.config.settings import Settings
from magnetar.metadata.measured_store import MeasuredStore
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    ConflictError,
    MagnetarError,
    NotAllowedError,
    NotFoundError,
    PreconditionFailedError,
    ServiceNotReadyError,
)
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.system_topics import ASSIGN_TOPIC, is_system_topic
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.runtime.clock import Clock
from magnetar.runtime.eager import run_eagerly
from magnetar.runtime.log import RateLimitedLog
from magnetar.runtime.rotated_lines import RotatedLines
from magnetar.runtime.tasks import TaskGroup
from magnetar.security.authentication.service import AuthenticationService
from magnetar.storage.store import LedgerStore

log = logging.getLogger(__name__)


class BrokerService:
    """The one service of a broker; lives on the event loop. ``store`` is open already."""

    def __init__(
        self, store: LedgerStore, resources: Resources, settings: Settings, clock: Clock, rng: Random,
        archive: ParquetArchive,
    ) -> None:  # fmt: skip
        self.store = store
        self.resources = resources
        self.settings = settings
        self.clock = clock
        self.rng = rng
        self.authorizer: Authorizer | None = None
        """Who may do what; ``None``: every client everything, without a check."""
        if settings.authorizationEnabled:
            self.authorizer = Authorizer(Grants(resources.tenants, resources.namespaces, settings))
        self.audit: RotatedLines | None = None
        """The file of the audit log."""
        self.grants_in_force: Callable[[], Awaitable[None]] = _at_once
        """Returns when what is open has been judged by the grants of now."""
        self._instance = self._producer_names = 0
        self._leaving: set[str] = set()
        """Topics whose deletion waits for the metadata store: they are not loaded meanwhile."""
        self.tasks = TaskGroup("broker")
        """What commands wait for that cannot be answered at once."""
        self.activity = Activity(clock.now_ms())
        self.metadata: MeasuredStore | None = None
        """Counts the writes of metadata; None where they are not counted."""
        self.stuck_total = 0
        """Subscriptions that stood still and were healed (:mod:`magnetar.broker.upkeep.liveness`)."""
        self.topics: dict[str, Topic] = {}
        self.complaints = RateLimitedLog(logging.getLogger("magnetar.broker.clients"), clock=clock)
        """Connections log here what their clients did wrong; a client cannot fill the disk with it."""
        self.authentication: AuthenticationService | None = None
        """Judges credentials; None while authentication is off."""
        self.listeners = advertised_listeners(settings.advertisedListeners, settings.internalListenerName)
        # where this broker is reached; empty: that port is not open
        self.service_url = ""
        self.service_url_tls = ""
        self.web_service_url = ""
        self.web_service_url_tls = ""
        self.surroundings = Surroundings()
        self.pending_publishes_high = settings.maxPendingPublishRequestsPerConnection or 1 << 62
        self.pending_bytes_high = settings.publish_buffer_bytes
        self.pending_publishes_low = self.pending_publishes_high // 2
        self._dispatch = dispatch_settings(settings)
        self._publishing = publish_settings(settings)
        self.policies = EffectivePolicies(resources, settings)
        self.policy_notification = PolicyNotification(self.policies.of)
        self.policies.on_namespace = self._namespace_policies_changed
        self.policies.on_topic = self._topic_policies_changed
        self.partitions = PartitionCreator(resources.partitioned, store, self.topics, self._enter)
        self._policy_events = PolicyEvents(store, resources, settings.clusterName, clock, self.find, self._load)
        self.subscribe_rate_limiter = SubscribeRateLimiter()
        self.changes = TopicChanges()
        """Notifies watchers of lists of topics of new and deleted ones."""
        self.shared_limits = SharedLimits(broker_rates(settings))
        self.nonpersistent_topics = NonPersistentTopics(
            self._dispatch, clock, settings.maxConcurrentNonPersistentMessagePerConnection, self.policies.of,
            self._publishing, self.shared_limits,
        )  # fmt: skip
        self.directory = TopicDirectory()
        """The topics that exist, of both domains."""
        self.lookups = LookupLimit(settings)
        self.creation = CreationRules(resources, settings, self.policies, self.directory, self.exists)
        self.watched_lists = WatchedLists(self.directory, self.changes)
        self.nonpersistent_topics.on_change = self._nonpersistent_changed
        self.schemas = SchemaRegistry(resources.schemas, self.policies, clock, self.activity.schemas)

        self.offloader = Offloader(store, archive, settings, clock, rng)
        self.coordinator = TransactionCoordinator(
            store, clock, self.find, settings.maxActiveTransactionsPerCoordinator, self.activity.transactions
        )

    async def start(self, instance: int) -> None:
        """Continue where the previous run of the broker ended; needs a running loop."""
        self._instance = instance
        self.directory.fill(self.store.names())
        enabled = self.settings.transactionCoordinatorEnabled
        assign = TopicName.parse(ASSIGN_TOPIC)
        if enabled and not self.resources.partitioned.count(assign):
            with suppress(ConflictError):  # another broker was first
                await self.resources.partitioned.create(assign, 1)
        self.coordinator.start(enabled=enabled)
        if self.creation.publishes_policies:
            self._policy_events.start()

    # names and time ----------------------------------------------------------------------------------------------

    def new_producer_name(self) -> str:
        """A producer name that is unique in the cluster: ``<cluster>-<instance>-<counter>`` (rule 3.1.1)."""
        name = f"{self.settings.clusterName}-{self._instance}-{self._producer_names}"
        self._producer_names += 1
        return name

    def timestamp(self) -> str:
        """The time now, as statistics show it."""
        now = datetime.datetime.fromtimestamp(self.clock.now_ms() / 1000, datetime.UTC)
        return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    # topics ------------------------------------------------------------------------------------------------------

    def find(self, name: TopicName) -> Topic | None:
        """The topic if it exists, loaded; never creates."""
        topic = self.topics.get(name.fqn)
        if topic is None and name.fqn in self.store:
            topic = self._load(name)
        return topic

    def exists(self, name: TopicName) -> bool:
        """Whether the topic itself (not a partitioned parent) exists."""
        return name.fqn in self.topics or name.fqn in self.store or name.fqn in self.nonpersistent_topics.by_name

    def _known(self, name: TopicName) -> bool:
        return self.exists(name) or self.resources.partitioned.count(name) > 0

    def topic_for(self, name: TopicName, *, create: bool) -> Topic:
        """The topic that a producer or consumer asked for.

        Raises TopicNotFoundError, ServiceNotReadyError, NotAllowedError (rules 2.9 to 2.13).
        """
        topic = self.topics.get(name.fqn)
        if topic is not None:
            return topic
        self.creation.require_namespace(name, self.broker_id)
        if not name.persistent:
            raise NotAllowedError(f"{name.fqn} is a non-persistent topic, which stores nothing")
        if name.fqn in self.store:
            return self._load(name)
        self.creation.require_use(name, create=create)
        self.partitions.used(name)
        return self._load(name)

    def served(self, name: TopicName, *, create: bool) -> TopicApi:
        """The topic of either domain that a producer or consumer asked for. Raises as :meth:`topic_for` does."""
        if name.persistent:
            return self.topic_for(name, create=create)
        topic = self.nonpersistent_topics.by_name.get(name.fqn)
        if topic is not None:
            return topic
        self.creation.require_namespace(name, self.broker_id)
        self.creation.require_domain(name)
        self.creation.require_use(name, create=create)
        return self.nonpersistent_topics.make(name)

    def create(self, name: TopicName) -> Topic:
        """Create a topic for REST. Raises ConflictError, NotFoundError, PreconditionFailedError (rule 11.4.1)."""
        self.creation.require_creation(name)
        return self._load(name)

    def create_nonpersistent(self, name: TopicName) -> None:
        """Create a non-persistent topic for REST. Raises as :meth:`create` does, ConflictError also if they are
        disabled."""
        self.creation.require_creation(name)
        self.nonpersistent_topics.make(name)

    def _enter(self, name: TopicName) -> None:
        """Have a topic among those that exist. Raises ServiceNotReadyError while it is being deleted."""
        if name.fqn in self._leaving:
            raise ServiceNotReadyError("Topic is being deleted")
        if self.directory.add(name):
            self.changes.created(name)

    def _load(self, name: TopicName) -> Topic:
        self._enter(name)
        policies, shared = self.policies.of(name), None if is_system_topic(name) else self.shared_limits
        with self.activity.load():
            topic = Topic(name, self.store, self._dispatch, self.clock, self.rng, policies, self._publishing, shared)
        self.topics[name.fqn] = topic
        topic.when_durable(partial(self._made, topic))  # before whoever asked for it is answered
        self.coordinator.loaded(topic)
        return topic

    def _made(self, topic: Topic, refused: Exception | None) -> None:
        """A new topic that the disk refused does not exist, as those are told who asked for it."""
        name = topic.name
        if refused is None or self.topics.get(name.fqn, topic) is not topic:
            return
        if self.store.forget_unborn(topic.log):
            self.topics.pop(name.fqn, None)
            topic.close()
            self.directory.remove(name)
            self.changes.deleted(name)

    def _nonpersistent_changed(self, name: TopicName, there: bool) -> None:
        change: Callable[[TopicName], object] = self.directory.add if there else self.directory.remove
        change(name)

    def take_settings(self) -> None:
        """Take what was copied from the settings anew; loaded topics get it in turns of the loop."""
        self.set_unacked_share(self._dispatch.unacked_share)

    def set_unacked_share(self, share: int) -> None:
        """Let each subscription have so many messages out at most, besides its own limit; 0: as its own limit says.

        Settings are taken anew as :meth:`take_settings` does.
        """
        self.pending_bytes_high = self.settings.publish_buffer_bytes
        dispatch = dispatch_settings(self.settings, share)
        differ = self.policies.take_settings()
        if dispatch != self._dispatch:
            self._dispatch, differ = dispatch, True
            for topic in self.topics.values():
                topic.set_broker_settings(dispatch)
        if differ:
            self.policy_notification.notify(self.topics.values())
            self.nonpersistent_topics.policies_changed(lambda _: True)

    def _namespace_policies_changed(self, namespace: NamespaceName) -> None:
        self.policy_notification.notify(topic for topic in self.topics.values() if topic.name.namespace == namespace)
        self.nonpersistent_topics.policies_changed(lambda name: name.namespace == namespace)

    def _topic_policies_changed(self, name: TopicName) -> None:
        for each in (name, *self.directory.partitions_of(name)):
            topic = self.topics.get(each.fqn)
            if topic is not None:
                self.policy_notification.give(topic)
        self.nonpersistent_topics.policies_changed(lambda topic: topic.parent == name)
        if self.creation.publishes_policies:
            self._policy_events.changed(name)

    def system_topic(self, name: TopicName) -> Topic:
        """A topic that the broker itself uses, created if it is missing."""
        return self.find(name) or self._load(name)

    def addresses(self, listener: str | None) -> BrokerAddresses:
        """Where clients of a network reach this broker. Raises ServiceNotReadyError (rule 2.4)."""
        return addresses(self.listeners, BrokerAddresses(self.service_url, self.service_url_tls), listener)

    @property
    def broker_id(self) -> str:
        """Host and HTTP port, as Pulsar names a broker; the binary port where HTTP is not served."""
        urls = (self.web_service_url, self.web_service_url_tls, self.service_url, self.service_url_tls)
        return next(filter(None, urls), "").partition("://")[2]

    def names_in(self, namespace: NamespaceName) -> list[str]:
        """All topics of a namespace, each partition as one, sorted."""
        return [name for piece in self.directory.pieces(namespace, system=True) for name in piece]

    def partitions_of(self, topic: TopicName) -> list[TopicName]:
        """The partitions that exist, in order and of both domains; the metadata may name more."""
        return self.directory.partitions_of(topic)

    async def delete(self, name: TopicName, *, force: bool) -> None:
        """Delete a topic with its subscriptions (rule 4.7.2). Raises NotFoundError, PreconditionFailedError."""
        topic = self.find(name)
        if topic is None:
            raise NotFoundError(f"Topic {name.fqn} not found")
        connected = len(topic.producers) + topic.consumer_count()
        if connected and not force:
            raise PreconditionFailedError(f"Topic has {connected} connected producers/consumers")
        # whatever fails from here on, no client is given a closed topic
        self.topics.pop(name.fqn, None)
        topic.close()
        if topic.compactor is not None:
            topic.compactor.forget()
        self.offloader.forget(name)
        self._leaving.add(name.fqn)
        try:
            # first: a topic of this name that comes later must not find any of it after a crash in between
            await self.resources.forget_topic(name)
            self.store.delete_log(name.fqn, partial(self._schema_goes, name))
        finally:
            self._leaving.discard(name.fqn)
        self.directory.remove(name)
        self.changes.deleted(name)

    async def delete_nonpersistent(self, name: TopicName) -> None:
        """Delete a non-persistent topic with its clients; no error if there is none (rule 13.11)."""
        await self.resources.change_together(lambda: self.resources.namespaces.without_grants([name]))
        self.nonpersistent_topics.remove(name)
        self._schema_goes(name)

    def _schema_goes(self, name: TopicName) -> None:
        """The topic is gone, and its schema goes with it."""
        run_eagerly(self.schemas.topic_deleted(name, self._known), _ignore, self.tasks, "schema")

    def unload(self, name: TopicName) -> None:
        """Unload a topic: clients look it up again, and its state is rebuilt (rule 4.2.5)."""
        topic = self.find(name)
        if topic is None:
            raise NotFoundError(f"Topic {name.fqn} not found")
        del self.topics[name.fqn]
        topic.close()

    def producer_left(self, producer: Producer) -> None:
        """Remove a producer that its client closed, or whose connection is lost."""
        producer.close()
        name = producer.log.name
        topic = self.topics.get(name) or self.nonpersistent_topics.by_name.get(name)
        if topic is not None:
            topic.producers.remove(producer)

    def close(self) -> None:
        """Disconnect every client from its topics."""
        self.coordinator.close()
        for topic in list(self.topics.values()):
            topic.close()
        self.topics.clear()
        self.nonpersistent_topics.close()


def _ignore(_: None, error: MagnetarError | None) -> None: ...


async def _at_once() -> None: ...
