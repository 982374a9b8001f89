"""``__change_events`` of a namespace: every change of a topic's own policies as a message (rules 8.1, 8.4).

The policies themselves stand in the metadata store (decision 006); nothing here is ever read back to find out which
policies a topic has. A reader of the topic receives each change in order, with readCompacted the last change of every
topic. Its key is the topic, with the prefix ``__G__`` for global policies; the value is JSON with the field names of
Apache Pulsar's event, the policies by the names of their REST routes; without a value (``null_value``) there are none
any more.

Theory of operation. A change is durable before its event is written, so a crash, or a disk that refuses, can leave it
without one. The digest of the last event of each key is kept beside the log, written in the block of the event (feature
state ``policy-events``). At start, and before the next event after a failure, the policies in the metadata store are
compared with the digests, and every difference gets an event. So a crash may leave out events of changes that followed
each other closely, never the last. The topic is created with the first change, and again with the next one if an
administrator deletes it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import mmh3
from typing_extensions import override

from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.broker.topic.topic import Topic
from magnetar.metadata.resources import Resources
from magnetar.model.errors import MagnetarError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import JsonObject
from magnetar.model.system_topics import CHANGE_EVENTS
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.runtime.clock import Clock
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore
from magnetar.transactions.operation_log import OperationLog
from magnetar.transactions.operations import Op, parse_snapshot, replay

log = logging.getLogger(__name__)

FEATURE_STATE: Final = "policy-events"
_GLOBAL: Final = "__G__"


class _EventDigests(dict[str, str]):
    """The digest of the last event of each key; absent: no event, or one without policies."""

    def apply(self, op: Op) -> None:
        key, digest = op
        if digest:
            self[key] = digest
        else:
            self.pop(key, None)

    def encode(self) -> Any:
        return dict(self)


class PolicyEventState(OperationLog[_EventDigests]):
    """The feature state of ``__change_events``: the digests of its last events."""

    def __init__(self, snapshot: bytes | None, changes: Sequence[bytes]) -> None:
        super().__init__(_EventDigests(), lambda op: None)
        self.settled.update(parse_snapshot(snapshot) or {})
        replay(self.settled, changes)
        self.incomplete = True
        """Whether a change may have no event yet."""

    @override
    def lost(self) -> None:
        super().lost()
        self.incomplete = True

    def digests(self) -> _EventDigests:
        """The digests with those in flight."""
        found = _EventDigests(self.settled)
        for op in self.in_flight():
            found.apply(op)
        return found


class _NoClient:
    """The producer of events, which is no client and needs no results."""

    open = False
    msg_in = 0
    bytes_in = 0

    @property
    def connection(self) -> _NoClient:
        return self

    def dropped(self, count: int) -> None: ...


class PolicyEvents:
    """The events of all namespaces; lives on the event loop. ``load`` creates the topic of a name, ``find`` only finds
    it."""

    def __init__(
        self,
        store: LedgerStore,
        resources: Resources,
        cluster: str,
        clock: Clock,
        find: Callable[[TopicName], Topic | None],
        load: Callable[[TopicName], Topic],
    ) -> None:
        self._store = store
        self._resources = resources
        self._cluster = cluster
        self._clock = clock
        self._find = find
        self._load = load
        self._producer: Any = _NoClient()

    def start(self) -> None:
        """Publish the changes that a crash left without an event; needs a running loop."""
        namespaces = {topic.namespace for topic in self._resources.topic_policies.topics()}
        for name in self._store.names():
            if name.endswith("/" + CHANGE_EVENTS):
                namespaces.add(TopicName.stored(name).namespace)
        for namespace in sorted(namespaces, key=str):
            self._publish(namespace, None)

    def changed(self, topic: TopicName) -> None:
        """The policies of a topic (never a partition) have changed."""
        self._publish(topic.namespace, topic)

    def _publish(self, namespace: NamespaceName, topic: TopicName | None) -> None:
        """Publish the change of ``topic``; without one, only changes that have no event yet."""
        name = namespace.topic(CHANGE_EVENTS)
        try:
            if self._resources.namespaces.exists(namespace):
                self._publish_in(name, topic)
        except MagnetarError as error:
            text = "%s does not have the last change of policies yet: %s"
            log.warning(text, name.fqn, error, extra={"topic": name.fqn})
            found = self._store.find_log(name.fqn)
            if found is not None:
                _state_of(found).incomplete = True

    def _publish_in(self, name: TopicName, topic: TopicName | None) -> None:
        there = self._store.find_log(name.fqn)
        state = None if there is None else _state_of(there)
        due: dict[str, tuple[TopicName, JsonObject]] = {}
        if topic is not None:
            due.update(self._levels(topic))
        if state is None or state.incomplete:
            due.update(self._without_event(name.namespace, _EventDigests() if state is None else state.digests()))
        if state is None:
            if not any(policies for _, policies in due.values()):
                return  # there never were any policies: no topic is created for that
            if not self._resources.namespaces.takes_topics(name.namespace):
                return  # it is being removed, and this topic of it was before
        if due:
            self._write(self._find(name) or self._load(name), due)
        elif state is not None:
            state.incomplete = False

    def _without_event(
        self, namespace: NamespaceName, digests: _EventDigests
    ) -> Iterator[tuple[str, tuple[TopicName, JsonObject]]]:
        gone = dict(digests)
        for topic in self._resources.topic_policies.topics(namespace):
            for key, (_, policies) in self._levels(topic):
                if gone.pop(key, "") != _digest(policies):
                    yield key, (topic, policies)
        for key in gone:
            yield key, (TopicName.stored(key.removeprefix(_GLOBAL)), {})

    def _levels(self, topic: TopicName) -> Iterator[tuple[str, tuple[TopicName, JsonObject]]]:
        records = self._resources.topic_policies
        yield topic.fqn, (topic, records.get(topic))
        yield _GLOBAL + topic.fqn, (topic, records.get(topic, is_global=True))

    def _write(self, home: Topic, due: dict[str, tuple[TopicName, JsonObject]]) -> None:
        """Append events and digests in one block: nothing gives the loop a turn in here."""
        feature_state = home.log.feature_state(FEATURE_STATE)
        state = feature_state.open(PolicyEventState)
        digests = state.digests()
        now = self._clock.now_ms()
        for key, (topic, policies) in due.items():
            digest = _digest(policies)
            if digest == digests.get(key, ""):
                continue  # of two levels only one has changed
            metadata = EntryMetadata(self._cluster, home.log.next, now, partition_key=key, null_value=not policies)
            value = event(topic, policies, self._cluster, is_global=key.startswith(_GLOBAL)) if policies else b""
            home.log.append(build_entry(metadata, value), 1, PendingEntry(self._producer, home.log.next, 0))
            state.note([key, digest])
            feature_state.touch()
        state.incomplete = False


def event(topic: TopicName, policies: JsonObject, cluster: str, *, is_global: bool) -> bytes:
    """The value of the message of one event."""
    about = {
        "domain": topic.domain,
        "tenant": topic.tenant,
        "namespace": topic.namespace.text.partition("/")[2],
        "topic": topic.local_name,
        "policies": {**policies, "isGlobal": is_global},
    }
    value = {
        "actionType": "UPDATE",
        "eventType": "TOPIC_POLICY",
        "replicateTo": None if is_global else [cluster],
        "topicPoliciesEvent": about,
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _state_of(found: ManagedLedger) -> PolicyEventState:
    return found.feature_state(FEATURE_STATE).open(PolicyEventState)


def _digest(policies: JsonObject) -> str:
    """The digest of policies; empty for none."""
    if not policies:
        return ""
    text = json.dumps(policies, ensure_ascii=False, sort_keys=True).encode()
    return mmh3.hash_bytes(text).hex()
