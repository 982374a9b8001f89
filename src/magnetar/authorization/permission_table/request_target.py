"""What the path of an HTTP request names, decoded and checked: the object whose permissions count."""

from __future__ import annotations

from dataclasses import dataclass

from magnetar.model.names import NamespaceName, TopicName


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The parts of a path that decide who may ask; those that the path has not are empty."""

    tenant: str = ""
    named_namespace: NamespaceName | None = None
    named_topic: TopicName | None = None
    """A topic of either domain, or a partition, as the path names it."""
    subscription: str = ""
    word: str = ""
    """The policy, for routes of policies."""

    @property
    def namespace(self) -> NamespaceName:
        """The namespace that the path names. Raises LookupError for a path without one."""
        if self.named_namespace is None:
            raise LookupError("the path names no namespace")
        return self.named_namespace

    @property
    def topic(self) -> TopicName:
        """The topic that the path names. Raises LookupError for a path without one."""
        if self.named_topic is None:
            raise LookupError("the path names no topic")
        return self.named_topic
