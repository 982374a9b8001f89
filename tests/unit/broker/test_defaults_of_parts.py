"""What a part does that is told nothing is what the broker's settings make of it: there is one set of defaults."""

from __future__ import annotations

import pytest

from magnetar.app.node import store_settings
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.policies.topic_settings import dispatch_settings, publish_settings
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.publish.deduplication import DeduplicationSettings
from magnetar.broker.topic.publish.producers import ProducerLimits
from magnetar.broker.topic.publish.publish_checks import PublishSettings
from magnetar.config.settings import Settings
from magnetar.storage.store_settings import StoreSettings


@pytest.mark.parametrize(
    ("alone", "of_the_broker"),
    [
        (DispatchSettings(), dispatch_settings(Settings())),
        (DispatchLimits(), DispatchSettings().limits()),
        (PublishSettings(), publish_settings(Settings())),
        (DeduplicationSettings(), publish_settings(Settings()).deduplication),
        (StoreSettings(), store_settings(Settings())),
        (ProducerLimits(), ProducerLimits(Settings().maxProducersPerTopic, Settings().maxSameAddressProducersPerTopic)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_part_has_the_defaults_of_the_broker(alone: object, of_the_broker: object) -> None:
    assert alone == of_the_broker


@pytest.mark.parametrize(
    ("part", "documented"),
    [
        (DispatchSettings(), {"dispatcher_max_read_batch_size": 100, "dispatcher_max_read_size_bytes": 5 << 20}),
        (DispatchSettings(), {"dispatcher_max_round_robin_batch_size": 20, "max_consumers_per_subscription": 0}),
        (
            DispatchSettings(),
            {"max_unacked_messages_per_consumer": 50_000, "max_unacked_messages_per_subscription": 200_000},
        ),
        (
            DispatchSettings(),
            {"active_consumer_failover_delay_ms": 1_000, "active_consumer_failover_consistent_hashing": False},
        ),
        (
            DispatchSettings(),
            {
                "subscription_key_shared_use_consistent_hashing": True,
                "subscription_key_shared_consistent_hashing_replica_points": 100,
                "key_shared_look_ahead_per_consumer": 2_000,
                "key_shared_look_ahead_per_subscription": 20_000,
            },
        ),
        (DeduplicationSettings(), {"producers_max": 10_000, "inactivity_ms": 6 * 3_600_000}),
        (StoreSettings(), {"ledger_entries_max": 50_000, "ledger_bytes_max": 2_048 << 20}),
        (StoreSettings(), {"ledger_min_rollover_ms": 600_000, "ledger_max_rollover_ms": 4 * 3_600_000}),
        (StoreSettings(), {"segment_bytes": 128 << 20, "reserve_bytes": 16 << 20, "sync_data": True}),
    ],
    ids=lambda one: ", ".join(one) if isinstance(one, dict) else type(one).__name__,
)
def test_they_are_those_of_apache_pulsar_and_of_the_documents(part: object, documented: dict[str, object]) -> None:
    """Rules 3.4.6, 4.1.3, 5.2.5, 5.4.6, 5.6.11, 5.9.10; docs/disk.md for segments and the reserve."""
    assert {name: getattr(part, name) for name in documented} == documented
