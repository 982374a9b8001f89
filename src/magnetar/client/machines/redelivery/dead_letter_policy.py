"""After how many redeliveries a message goes where, and what it waits on (rules 6.4.1, 6.4.5, 6.5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from magnetar.client.arguments import kinds
from magnetar.client.arguments.expected_argument import ExpectedArgument
from magnetar.client.errors import ArgumentError
from magnetar.model.names import TopicName

RETRIES_DEFAULT: Final = 16
"""Of a consumer with retry letters and without a policy (rule 6.4.5)."""
_COUNT: Final = kinds.whole(1, kinds.INT32_MAX)
_TOPIC: Final = ExpectedArgument("the name of a topic", lambda given: bool(TopicName.parse(given))).or_none()
_NAME: Final = kinds.text("the name of a subscription").or_none()
_PARAMETERS: Final = kinds.instance("a mapping of parameters of create_producer", Mapping)


@dataclass(frozen=True, slots=True)
class ConsumerDeadLetterPolicy:
    """``max_redeliver_count``: redeliveries, or retries, after which a message goes to ``dead_letter_topic``.

    Without names the topics are ``<topic>-<subscription>-DLQ`` and ``-RETRY``, of a partitioned topic without its
    partition. ``initial_subscription_name`` is made with the dead letter topic, so that it keeps its messages.
    """

    max_redeliver_count: int
    dead_letter_topic: str | None = None
    initial_subscription_name: str | None = None
    retry_letter_topic: str | None = None
    letter_producer: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of `Client.create_producer` for the producers of both topics, such as those of encryption."""

    def __post_init__(self) -> None:
        """Raises ArgumentError."""
        _COUNT.check("max_redeliver_count", self.max_redeliver_count)
        _NAME.check("initial_subscription_name", self.initial_subscription_name)
        _PARAMETERS.check("letter_producer", self.letter_producer)
        for what, topic in (
            ("dead_letter_topic", self.dead_letter_topic),
            ("retry_letter_topic", self.retry_letter_topic),
        ):
            _TOPIC.check(what, topic)
            if topic is not None and TopicName.parse(topic).is_partition:
                raise ArgumentError(f"{what} {topic} names one partition; give the topic")

    def policy(self) -> ConsumerDeadLetterPolicy:
        """Return the policy itself, which the official client has within another object."""
        return self


def base_topic(topic: str) -> str:
    """Return the full name without a partition."""
    name = TopicName.parse(topic)
    return name.parent.fqn if name.is_partition else name.fqn


def dead_letter_topic(topic: str, subscription: str) -> str:
    """Return the default name. Raises ArgumentError where that would be no topic of the namespace."""
    return f"{base_topic(topic)}-{_in_a_name(subscription, 'dead_letter_topic')}-DLQ"


def retry_letter_topic(topic: str, subscription: str) -> str:
    """Return the default name. Raises ArgumentError where that would be no topic of the namespace."""
    return f"{base_topic(topic)}-{_in_a_name(subscription, 'retry_letter_topic')}-RETRY"


def _in_a_name(subscription: str, what: str) -> str:
    # persistent://public/default/t-a/b-DLQ reads as a topic b-DLQ of a namespace of the older form
    if "/" in subscription:
        raise ArgumentError(
            f"the subscription {subscription[:80]!r} has a slash in its name, which the name of a topic cannot have: "
            f"give a {what} in dead_letter_policy"
        )
    return subscription


def older_name(topic: str, subscription: str, suffix: str) -> str:
    """Return the name that clients before 2.8 gave such a topic, ``suffix`` being DLQ or RETRY (rule 6.4.2)."""
    name = TopicName.parse(topic)
    return f"{name.fqn.rsplit('/', 1)[0]}/{subscription}-{suffix}"
