"""Defaults that rules of the book name are the defaults of the settings."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.config.settings import Settings

NAMED: dict[str, dict[str, Any]] = {
    "consistent hashing of Key_Shared (rule 0.6), its points (rule 5.6.7) and look-ahead (rule 5.6.11)": {
        "subscriptionKeySharedUseConsistentHashing": True,
        "subscriptionKeySharedConsistentHashingReplicaPoints": 100,
        "keySharedLookAheadMsgInReplayThresholdPerConsumer": 2_000,
        "keySharedLookAheadMsgInReplayThresholdPerSubscription": 20_000,
        "subscriptionKeySharedEnable": True,
    },
    "acknowledging single messages of a batch (rule 0.16)": {"acknowledgmentAtBatchIndexLevelEnabled": False},
    "policies of topics (rules 0.17, 8.3)": {"topicLevelPoliciesEnabled": True, "systemTopicEnabled": True},
    "the greatest message (rules 1.1.7, 1.1.8)": {"maxMessageSize": 5_242_880},
    "automatic creation (rules 2.12, 2.15)": {
        "allowAutoTopicCreation": True,
        "allowAutoTopicCreationType": "non-partitioned",
        "defaultNumPartitions": 1,
        "allowAutoSubscriptionCreation": True,
    },
    "patterns (rule 2.17)": {
        "subscriptionPatternMaxLength": 50,
        "enableBrokerSideSubscriptionPatternEvaluation": True,
    },
    "pending publishes of a connection (rule 3.3.10)": {"maxPendingPublishRequestsPerConnection": 1_000},
    "deduplication (rules 3.4.1, 3.4.8)": {
        "brokerDeduplicationEnabled": False,
        "brokerDeduplicationMaxNumberOfProducers": 10_000,
        "brokerDeduplicationProducerInactivityTimeoutMinutes": 360,
    },
    "rollover of ledgers (rule 4.2.1)": {
        "managedLedgerMaxEntriesPerLedger": 50_000,
        "managedLedgerMaxSizePerLedgerMbytes": 2_048,
        "managedLedgerMinLedgerRolloverTimeMinutes": 10,
        "managedLedgerMaxLedgerRolloverTimeMinutes": 240,
    },
    "retention (rules 4.4.1, 4.4.4)": {
        "defaultRetentionTimeInMinutes": 0,
        "defaultRetentionSizeInMB": 0,
        "retentionCheckIntervalInSeconds": 120,
    },
    "time to live (rule 4.5.1) and idle subscriptions (rule 4.5.6)": {
        "ttlDurationDefaultInSeconds": 0,
        "messageExpiryCheckIntervalInMinutes": 5,
        "subscriptionExpirationTimeMinutes": 0,
    },
    "backlog quotas (rules 4.6.1, 4.6.3)": {
        "backlogQuotaDefaultLimitGB": -1.0,
        "backlogQuotaDefaultRetentionPolicy": "producer_request_hold",
        "backlogQuotaCheckIntervalInSeconds": 60,
    },
    "inactive topics (rule 4.7.3)": {
        "brokerDeleteInactiveTopicsEnabled": True,
        "brokerDeleteInactiveTopicsFrequencySeconds": 60,
        "brokerDeleteInactiveTopicsMode": "delete_when_no_subscriptions",
        "brokerDeleteInactivePartitionedTopicMetadataEnabled": False,
    },
    "compaction (rule 4.7.4)": {"topicCompactionRetainNullKey": False},
    "one read (rule 5.2.5)": {
        "dispatcherMaxReadBatchSize": 100,
        "dispatcherMaxReadSizeBytes": 5 << 20,
        "dispatcherMaxRoundRobinBatchSize": 20,
    },
    "Failover (rules 5.4.3, 5.4.6)": {
        "activeConsumerFailoverConsistentHashing": False,
        "activeConsumerFailoverDelayTimeMillis": 1_000,
    },
    "unacknowledged messages (rule 5.9.10)": {
        "maxUnackedMessagesPerConsumer": 50_000,
        "maxUnackedMessagesPerSubscription": 200_000,
    },
    "delayed delivery (rules 7.3, 7.10)": {
        "delayedDeliveryEnabled": True,
        "delayedDeliveryTickTimeMillis": 1_000,
        "isDelayedDeliveryDeliverAtTimeStrict": False,
        "delayedDeliveryMaxDelayInMillis": 0,
    },
    "transactions (rule 9.1)": {"transactionCoordinatorEnabled": False},
    "schemas (rules 10.4, 10.6)": {
        "isAllowAutoUpdateSchemaEnabled": True,
        "schemaCompatibilityStrategy": "FULL",
    },
    "rates in statistics (rule 11.4.13)": {"statsUpdateFrequencyInSecs": 60},
    "keep-alive (rule 12.10)": {"keepAliveIntervalSeconds": 30},
    "non-persistent topics (rules 13.1, 13.3)": {
        "enableNonPersistentTopics": True,
        "maxConcurrentNonPersistentMessagePerConnection": 1_000,
    },
}


@pytest.mark.parametrize("subject", NAMED)
def test_default_is_that_of_the_rule(subject: str) -> None:
    settings = Settings()
    assert {name: getattr(settings, name) for name in NAMED[subject]} == NAMED[subject]
