"""``__change_events`` of a namespace: every change of a topic's own policies, told as a message (rules 8.1, 8.4).

The policies themselves stand in the metadata store (decision 006); nothing here is ever read back to find out what
holds. The topic is for those who watch: a reader gets each change in order, with readCompacted the last word on every
topic. Its key is the topic, with ``__G__`` in front for global policies; the value is JSON with the field names of
Apache Pulsar's event, the policies by the names of their REST routes; without a value (``null_value``) there are none
any more.

Theory of operation. A change is durable before it is told, so a crash, or a disk that refuses, can leave it untold.
What was told last stands beside the log as one digest per key, written in the block of the event (annex
``policy-events``). At start, and before the next event after a failure, what is in the metadata store is compared with
it and every difference is told. So events of changes that followed each other closely may be left out by a crash, the
last never. The topic comes into being with the first change; deleted by an administrator it comes again with the next.
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


class _Told(dict[str, str]):
    """Key to digest of what was told last; absent: nothing, or that there are no policies."""

    def apply(self, op: Op) -> None:
        key, digest = op
        if digest:
            self[key] = digest
        else:
            self.pop(key, None)

    def encode(self) -> Any:
        return dict(self)


class EventsBesideLog(OperationLog[_Told]):
    """What the annex makes of its bytes."""

    def __init__(self, snapshot: bytes | None, changes: Sequence[bytes]) -> None:
        super().__init__(_Told(), lambda op: None)
        self.settled.update(parse_snapshot(snapshot) or {})
        replay(self.settled, changes)
        self.behind = True
        """Whether something may be untold."""

    @override
    def lost(self) -> None:
        super().lost()
        self.behind = True

    def told(self) -> _Told:
        """What is in flight included."""
        found = _Told(self.settled)
        for op in self.in_flight():
            found.apply(op)
        return found


class _Nobody:
    """Events are sent by no client, and what becomes of them is told to none."""

    open = False
    msg_in = 0
    bytes_in = 0

    @property
    def connection(self) -> _Nobody:
        return self

    def dropped(self, count: int) -> None: ...


class PolicyEvents:
    """Of all namespaces; lives on the event loop. ``load`` makes the topic of a name, ``find`` only finds it."""

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
        self._nobody: Any = _Nobody()

    def start(self) -> None:
        """Tell what a crash kept from being told; needs a running loop."""
        namespaces = {topic.namespace for topic in self._resources.topic_policies.topics()}
        for name in self._store.names():
            if name.endswith("/" + CHANGE_EVENTS):
                namespaces.add(TopicName.stored(name).namespace)
        for namespace in sorted(namespaces, key=str):
            self._tell(namespace, None)

    def changed(self, topic: TopicName) -> None:
        """The policies of a topic (never a partition) have changed."""
        self._tell(topic.namespace, topic)

    def _tell(self, namespace: NamespaceName, topic: TopicName | None) -> None:
        """``topic``: told in any case; without one only what is untold."""
        name = namespace.topic(CHANGE_EVENTS)
        try:
            if self._resources.namespaces.exists(namespace):
                self._tell_in(name, topic)
        except MagnetarError as error:
            log.warning("%s does not have the last change of policies yet: %s", name.fqn, error)
            found = self._store.find_log(name.fqn)
            if found is not None:
                _beside(found).behind = True

    def _tell_in(self, name: TopicName, topic: TopicName | None) -> None:
        there = self._store.find_log(name.fqn)
        beside = None if there is None else _beside(there)
        due: dict[str, tuple[TopicName, JsonObject]] = {}
        if topic is not None:
            due.update(self._levels(topic))
        if beside is None or beside.behind:
            due.update(self._untold(name.namespace, _Told() if beside is None else beside.told()))
        if beside is None and not any(policies for _, policies in due.values()):
            return  # there never were any: no topic is made to say so
        if due:
            self._write(self._find(name) or self._load(name), due)
        elif beside is not None:
            beside.behind = False

    def _untold(self, namespace: NamespaceName, told: _Told) -> Iterator[tuple[str, tuple[TopicName, JsonObject]]]:
        gone = dict(told)
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
        """Events and digests in one block: nothing gives the loop a turn in here."""
        feature_state = home.log.feature_state(FEATURE_STATE)
        beside = feature_state.open(EventsBesideLog)
        told = beside.told()
        now = self._clock.now_ms()
        for key, (topic, policies) in due.items():
            digest = _digest(policies)
            if digest == told.get(key, ""):
                continue  # of two levels only one has changed
            metadata = EntryMetadata(self._cluster, home.log.next, now, partition_key=key, null_value=not policies)
            value = event(topic, policies, self._cluster, is_global=key.startswith(_GLOBAL)) if policies else b""
            home.log.append(build_entry(metadata, value), 1, PendingEntry(self._nobody, home.log.next, 0))
            beside.note([key, digest])
            feature_state.touch()
        beside.behind = False


def event(topic: TopicName, policies: JsonObject, cluster: str, *, is_global: bool) -> bytes:
    """The value of one message."""
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


def _beside(found: ManagedLedger) -> EventsBesideLog:
    return found.feature_state(FEATURE_STATE).open(EventsBesideLog)


def _digest(policies: JsonObject) -> str:
    """Empty for none."""
    if not policies:
        return ""
    text = json.dumps(policies, ensure_ascii=False, sort_keys=True).encode()
    return mmh3.hash_bytes(text).hex()
