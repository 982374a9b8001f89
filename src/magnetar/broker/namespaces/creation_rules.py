"""Which topics may be created: by a client that uses one, or by REST (rules 2.9 to 2.13, 11.4.1).

Nothing is created here, and a topic that exists already is not asked about.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.broker.namespaces.topic_directory import TopicDirectory
from magnetar.broker.policies.effective_policies import EffectivePolicies
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    ConflictError,
    NotAllowedError,
    NotFoundError,
    PreconditionFailedError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.system_topics import is_change_events, is_heartbeat, is_reserved, is_system_topic


class CreationRules:
    """The rules of one broker; ``exists`` says whether a topic itself, not a partitioned parent, is there."""

    def __init__(
        self, resources: Resources, settings: Settings, policies: EffectivePolicies, directory: TopicDirectory,
        exists: Callable[[TopicName], bool],
    ) -> None:  # fmt: skip
        self._resources = resources
        self._settings = settings
        self._policies = policies
        self._directory = directory
        self._exists = exists

    @property
    def publishes_policies(self) -> bool:
        """Whether the broker writes changed policies of topics to ``__change_events``."""
        return self._settings.topicLevelPoliciesEnabled and self._settings.systemTopicEnabled

    def require_namespace(self, name: TopicName, broker_id: str) -> None:
        """Raises ServiceNotReadyError, as a broker answers that does not serve the topic's namespace."""
        if not is_heartbeat(name) and not self._resources.namespaces.takes_topics(name.namespace):
            raise ServiceNotReadyError(
                f"Namespace bundle ({name.namespace}/0x00000000_0xffffffff) for topic ({name.fqn}) not served by this "
                f"instance:{broker_id}. Please redo the lookup."
            )

    def require_domain(self, name: TopicName) -> None:
        """Raises NotAllowedError for a non-persistent topic where there are none."""
        if not name.persistent and not self._settings.enableNonPersistentTopics:
            raise NotAllowedError("Broker is unable to load non-persistent topic")

    def require_use(self, name: TopicName, *, create: bool) -> None:
        """Let a client that uses a topic create it.

        ``create``: the client wants that. Raises TopicNotFoundError, NotAllowedError.
        """
        if not self._may_create(name, create):
            raise TopicNotFoundError(f"Topic {name.fqn} does not exist")

    def _may_create(self, name: TopicName, create: bool) -> bool:
        partitioned = self._resources.partitioned
        if name.is_partition:
            partitions = partitioned.count(name.parent)
            if partitions:
                return name.partition_index < partitions and not partitioned.leaving(name.parent)
        if create and is_change_events(name):
            return self.publishes_policies
        if not create or not self._policies.auto_topic_creation(name.namespace).allowed:
            return False
        if is_reserved(name):
            raise NotAllowedError(f"Can not create transaction system topic {name.fqn}")
        if is_system_topic(name):
            return False
        if not self.room_for(name.namespace, 1):
            raise NotAllowedError("Exceed maximum number of topics in namespace.")
        return True

    def require_creation(self, name: TopicName) -> None:
        """Let REST create a topic. Raises ConflictError, NotFoundError, PreconditionFailedError."""
        if not name.persistent and not self._settings.enableNonPersistentTopics:
            raise ConflictError("Broker is unable to load non-persistent topic (enableNonPersistentTopics=false)")
        if not self._resources.tenants.exists(name.tenant):
            raise NotFoundError("Tenant does not exist")
        self._resources.require_namespace(name)
        if self._exists(name) or self._resources.partitioned.count(name):
            raise ConflictError("This topic already exists")
        if is_change_events(name):
            if not self.publishes_policies:
                raise ConflictError(f"{name.fqn} is a system topic, and this broker has no policies of topics")
            return
        if not self.room_for(name.namespace, 1):
            raise ConflictError("Exceed maximum number of topics in namespace.")
        if name.is_partition and not self._resources.partitioned.count(name.parent):
            raise PreconditionFailedError(
                f"Can't create topic {name.local_name} with \"-partition-\" followed by numeric value if there isn't a "
                f"partitioned topic {name.parent.local_name} created."
            )

    def room_for(self, namespace: NamespaceName, topics: int) -> bool:
        """Whether the namespace may have so many more topics; every partition counts, system topics do not."""
        most = self._policies.max_topics(namespace)
        return not most or self._directory.count(namespace) + topics <= most
