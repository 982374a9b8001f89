"""The policies that are in effect for each topic and namespace now (rule 8.4, decision 006).

:class:`EffectivePolicies` remembers the answers, one object for all topics of a namespace that have no policies of
their own, and notifies the broker which topics may have new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magnetar.broker.activity import ResourceGroupActivity
from magnetar.broker.policies.broker_policies import for_system_topics, of_broker
from magnetar.broker.policies.policy_rules import count_of, resolve
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import AutoTopicCreation, JsonObject, NamespacePolicies
from magnetar.model.system_topics import CHANGE_EVENTS, is_system_topic
from magnetar.model.topic_policies import (
    TopicPolicies,
)

_CHANGE_EVENTS_COMPACTED_BYTES: Final = 1 << 20
"""Compaction keeps the last event of each topic, so that ``__change_events`` does not grow with every change."""


class EffectivePolicies:
    """The effective policies of all topics and namespaces; its callbacks are notified which may have new ones."""

    def __init__(self, resources: Resources, settings: Settings) -> None:
        self._resources = resources
        self._settings = settings
        self._take(of_broker(settings))
        self._by_namespace: dict[NamespaceName, TopicPolicies] = {}
        self._by_topic: dict[TopicName, TopicPolicies] = {}
        self.on_namespace: Callable[[NamespaceName], None] = _no_callback
        """The policies of all topics of a namespace may have changed."""
        self.groups = ResourceGroupActivity(resources.resource_groups.names())
        self.on_topic: Callable[[TopicName], None] = _no_callback
        """Those of one topic (the parent, for all its partitions) may have changed."""
        resources.namespaces.changed = self._namespace_changed
        resources.topic_policies.changed = self._topic_changed
        resources.resource_groups.changed = self._group_changed

    def _take(self, broker: TopicPolicies) -> None:
        self.broker = broker
        self._system = for_system_topics(broker, self._settings)
        self._change_events = self._system._replace(compaction_threshold=_CHANGE_EVENTS_COMPACTED_BYTES)

    def take_settings(self) -> bool:
        """Take the broker's own policies from the settings, which may have changed; return whether they differ."""
        broker = of_broker(self._settings)
        if broker == self.broker:
            return False
        self._take(broker)
        self._by_namespace.clear()
        self._by_topic.clear()
        return True

    def of(self, topic: TopicName) -> TopicPolicies:
        """The policies of a topic or partition now. Never raises: an unknown namespace has none of its own."""
        parent = topic.parent
        found = self._by_topic.get(parent)
        if found is not None:
            return found
        if is_system_topic(parent):
            return self._change_events if parent.local_name == CHANGE_EVENTS else self._system
        records = self._resources.topic_policies
        own = records.get(parent), records.get(parent, is_global=True)
        if not self._settings.topicLevelPoliciesEnabled or not any(own):
            return self.of_namespace(parent.namespace)
        namespace = self._namespace_policies(parent.namespace)
        found = self._grouped(
            parent.namespace, namespace, resolve(self.broker, namespace, *own, cluster=self._settings.clusterName)
        )
        self._by_topic[parent] = found
        return found

    def without_local(self, topic: TopicName) -> TopicPolicies:
        """The policies that a topic would have without local ones of its own: ``?isGlobal=true&applied=true``."""
        parent = topic.parent
        above = self._resources.topic_policies.get(parent, is_global=True)
        if is_system_topic(parent) or not self._settings.topicLevelPoliciesEnabled:
            return self.of(topic)
        return resolve(
            self.broker, self._namespace_policies(parent.namespace), above, cluster=self._settings.clusterName
        )

    def of_namespace(self, namespace: NamespaceName) -> TopicPolicies:
        """The policies of those topics of a namespace that have none of their own."""
        found = self._by_namespace.get(namespace)
        if found is None:
            policies = self._namespace_policies(namespace)
            found = self._grouped(
                namespace, policies, resolve(self.broker, policies, cluster=self._settings.clusterName)
            )
            self._by_namespace[namespace] = found
        return found

    def auto_topic_creation(self, namespace: NamespaceName) -> AutoTopicCreation:
        """Whether and how a topic of this namespace is created automatically (rule 2.12)."""
        override = NamespacePolicies(self._namespace_policies(namespace)).auto_topic_creation
        if override is not None:
            return override
        settings = self._settings
        if settings.allowAutoTopicCreationType != "partitioned":
            return AutoTopicCreation(settings.allowAutoTopicCreation, 0)
        count, most = settings.defaultNumPartitions, settings.maxNumPartitionsPerPartitionedTopic
        allowed = settings.allowAutoTopicCreation and count > 0
        return AutoTopicCreation(allowed, min(count, most) if most else count)

    def max_topics(self, namespace: NamespaceName) -> int:
        """The maximum number of topics of a namespace, each partition counted; 0 without limit."""
        given = count_of(self._namespace_policies(namespace).get("max_topics_per_namespace"))
        return self._settings.maxTopicsPerNamespace if given is None else given

    def _namespace_policies(self, namespace: NamespaceName) -> JsonObject:
        namespaces = self._resources.namespaces
        return namespaces.policies(namespace) if namespaces.exists(namespace) else {}

    def _namespace_changed(self, namespace: NamespaceName) -> None:
        self._by_namespace.pop(namespace, None)
        for topic in [topic for topic in self._by_topic if topic.namespace == namespace]:
            del self._by_topic[topic]
        self.groups.belongs(namespace, self._namespace_policies(namespace).get("resource_group_name"))
        self.on_namespace(namespace)

    def _grouped(self, namespace: NamespaceName, policies: JsonObject, found: TopicPolicies) -> TopicPolicies:
        name = policies.get("resource_group_name")
        self.groups.belongs(namespace, name)
        group = None if name is None else self._resources.resource_groups.find(name)
        return found if group is None else found._replace(resource_group=group)

    def _group_changed(self, group: str) -> None:
        self.groups.changed(group, exists=self._resources.resource_groups.exists(group))
        asked = {*self._by_namespace, *(topic.namespace for topic in self._by_topic)}
        for namespace in asked:
            if self._namespace_policies(namespace).get("resource_group_name") == group:
                self._namespace_changed(namespace)

    def _topic_changed(self, topic: TopicName) -> None:
        self._by_topic.pop(topic, None)
        self.on_topic(topic)


def _no_callback(_: object) -> None: ...
