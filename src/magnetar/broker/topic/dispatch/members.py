"""The consumers of one subscription, persistent or not, and the dispatcher that chooses among them."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.delivery.instructions import Instruction
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity, check_joins, make_dispatcher
from magnetar.broker.topic.ports import ConsumerConnection
from magnetar.model.errors import ConsumerBusyError
from magnetar.model.subscription_types import AUTO_SPLIT, KeySharedMeta, SubType


class Members:
    """Who has joined, in join order. The first consumer decides the subscription's type."""

    __slots__ = ("by_state", "dispatcher", "key_shared", "sub_type", "subscription", "topic")

    def __init__(self, topic: TopicIdentity, subscription: str) -> None:
        self.topic = topic
        self.subscription = subscription
        self.by_state: dict[ConsumerState, Consumer] = {}
        self.dispatcher: Dispatcher | None = None
        """None before the first consumer; the last one stays while there is none."""
        self.sub_type: SubType | None = None
        """None before the first consumer; the last type while there is none (rule 5.1.1)."""
        self.key_shared = AUTO_SPLIT

    @override
    def __str__(self) -> str:
        """Name the subscription, as lines of the log do."""
        return f"{self.topic.name}/{self.subscription}"

    @property
    def consumers(self) -> list[Consumer]:
        """The consumers in join order."""
        return list(self.by_state.values())

    @property
    def active(self) -> Consumer | None:
        """The consumer that Exclusive and Failover serve now."""
        dispatcher = self.dispatcher
        if isinstance(dispatcher, SingleActiveConsumer) and dispatcher.active is not None:
            return self.by_state[dispatcher.active]
        return None

    def join(
        self,
        connection: ConsumerConnection,
        settings: DispatchSettings,
        *,
        name: str,
        consumer_id: int,
        sub_type: SubType,
        priority: int,
        key_shared: KeySharedMeta | None = None,
        epoch: int | None = None,
        info: dict[str, Any] | None = None,
        chunks: bool = False,
    ) -> tuple[Consumer, list[Instruction]]:
        """Add a consumer with 0 permits; what the dispatcher wants done is to be carried out.

        Raises ConsumerBusyError or ConsumerAssignError, then nothing changed.
        """
        meta = key_shared or AUTO_SPLIT
        dispatcher = self.dispatcher
        if dispatcher is None or not self.by_state:
            dispatcher = make_dispatcher(sub_type, meta, settings, self.topic, chunks)
        elif self.sub_type is not None:
            check_joins(self.sub_type, self.key_shared, sub_type, meta)
        limit = settings.max_consumers_per_subscription
        if limit and len(self.by_state) >= limit:
            raise ConsumerBusyError("Subscription reached max consumers limit")
        state = ConsumerState(name, connection, priority, meta.hash_ranges or None)
        if meta.hash_ranges:
            state.description = (
                f"Consumer{{subscription={self.subscription}, consumerId={consumer_id}, consumerName={name}, "
                f"topic={self.topic.name}}}"
            )
        instructions = dispatcher.add(state)
        consumer = self.by_state[state] = Consumer(state, connection, consumer_id, epoch, info or {})
        if self.dispatcher is not dispatcher:
            self.dispatcher = dispatcher
            self.sub_type, self.key_shared = sub_type, meta
        return consumer, instructions

    def leave(self, consumer: Consumer) -> list[Instruction] | None:
        """Take a consumer out; what the dispatcher wants done, None if it is no member."""
        dispatcher, state = self.dispatcher, consumer.state
        if dispatcher is None or state not in self.by_state:
            return None
        instructions = dispatcher.remove(state)
        del self.by_state[state]
        if not self.by_state:
            self.by_state.clear()  # an emptied dictionary keeps its table: most of what a resting one takes
        return instructions
