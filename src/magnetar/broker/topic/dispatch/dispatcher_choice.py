"""Which dispatcher a subscription gets from its first consumer, and whether later ones fit to it."""

from __future__ import annotations

from typing import NamedTuple

from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.exclusive import Exclusive
from magnetar.broker.delivery.dispatchers.failover import Failover
from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.delivery.dispatchers.shared_chunks import SharedChunks
from magnetar.broker.delivery.sticky_keys.hash_ranges import HashRanges
from magnetar.broker.delivery.sticky_keys.hash_ring import HashRing
from magnetar.broker.delivery.sticky_keys.selector import Selector
from magnetar.broker.delivery.sticky_keys.sticky_ranges import StickyRanges
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.model.errors import ConsumerBusyError
from magnetar.model.subscription_types import KeySharedMeta, KeySharedMode, SubType


class TopicIdentity(NamedTuple):
    """What the choice of an active consumer depends on (rules 5.4.1, 5.4.2)."""

    name: str
    partition: int = -1


def make_dispatcher(
    sub_type: SubType, meta: KeySharedMeta, settings: DispatchSettings, topic: TopicIdentity, chunks: bool
) -> Dispatcher:
    """A fresh dispatcher without consumers; ``chunks``: the topic has chunked messages."""
    match sub_type:
        case SubType.Exclusive:
            return Exclusive(settings.dispatcher_max_read_batch_size)
        case SubType.Failover:
            return Failover(
                topic.name,
                topic.partition,
                ring_for_partitions=settings.active_consumer_failover_consistent_hashing,
                delayed=settings.active_consumer_failover_delay_ms > 0,
                read_max=settings.dispatcher_max_read_batch_size,
            )
        case SubType.Shared:
            return (SharedChunks if chunks else Shared)(settings.limits())
        case SubType.Key_Shared:
            return KeyShared(_selector(meta, settings), settings.limits(), ordered=not meta.allow_out_of_order_delivery)


def _selector(meta: KeySharedMeta, settings: DispatchSettings) -> Selector:
    if meta.mode is KeySharedMode.STICKY:
        return StickyRanges()
    if settings.subscription_key_shared_use_consistent_hashing:
        return HashRing(settings.subscription_key_shared_consistent_hashing_replica_points)
    return HashRanges()


def check_joins(active: SubType, active_meta: KeySharedMeta, joining: SubType, meta: KeySharedMeta) -> None:
    """Raise unless the connecting consumer wants what the subscription is (rules 5.1.2, 5.1.3)."""
    prefix = "Subscription is of different type. Active subscription"
    if active is not joining:
        raise ConsumerBusyError(
            f"{prefix} type of '{active.name}' is different than the connecting consumer's type '{joining.name}'."
        )
    if active is not SubType.Key_Shared:
        return
    if active_meta.mode is not meta.mode:
        raise ConsumerBusyError(
            f"{prefix} key_shared mode of '{active_meta.mode.name}' is different than the connecting consumer's "
            f"key_shared mode '{meta.mode.name}'."
        )
    if active_meta.allow_out_of_order_delivery != meta.allow_out_of_order_delivery:
        allowed = active_meta.allow_out_of_order_delivery
        does, other = ("allows", "does not allow") if allowed else ("does not allow", "allows")
        raise ConsumerBusyError(f"{prefix} {does} out of order delivery while the connecting consumer {other} it.")
