"""Topics: making, listing, partitions, statistics, messages, and what ends them or their data."""

from __future__ import annotations

from typing import Final, Literal

from magnetar.admin_api.models.internal_stats import PartitionedTopicInternalStatistics, TopicInternalStatistics
from magnetar.admin_api.models.ledger_info import (
    ManagedLedgerInfo,
    OfflineTopicStatistics,
    PartitionedManagedLedgerInfo,
)
from magnetar.admin_api.models.messages import MessagePlace, ProducerMessages, PublishedMessages
from magnetar.admin_api.models.topic_stats import PartitionedTopicStatistics, TopicStatistics
from magnetar.admin_api.models.topics import LookupData, PartitionedTopicMetadata
from magnetar.admin_api.operation import Operation, Parameter, PlainText, RawMessage
from magnetar.admin_api.operations.namespaces import SYSTEM_TOPICS

TOPICS_OF: Final = "/admin/v2/{domain}/{tenant}/{namespace}"
TOPIC: Final = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
_PARTITIONS: Final = TOPIC + "/partitions"
_PROPERTIES: Final = TOPIC + "/properties"
_PUBLISH: Final = "/topics/{domain}/{tenant}/{namespace}/{topic}"
_MESSAGES: Final = {"messages": [{"payload": "order 1", "key": "customer 7"}]}
_NOT_PUBLISHED: Final = {409: "The topic takes no such message", 422: "The schema is not valid"}
_LOOKUP: Final = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
_STATS: Final = (
    Parameter("getPreciseBacklog", bool, "Count the backlog by message.", False),
    Parameter("subscriptionBacklogSize", bool, "Count the bytes of each backlog.", True),
    Parameter("getEarliestTimeInBacklog", bool, "Read when the oldest message was published.", False),
    Parameter("excludePublishers", bool, "Leave producers out.", False),
    Parameter("excludeConsumers", bool, "Leave consumers out.", False),
)
_FORCE: Final = Parameter("force", bool, "Disconnect its clients.", False)
_PERSISTENT_ONLY: Final = "The topic is not persistent"
_PLAIN_ONLY: Final = "The topic is partitioned or not persistent"
_EXISTS: Final = {
    409: "This topic already exists", 412: "The name is that of a partition, or there are too many topics",
}  # fmt: skip

TOPICS: Final = (
    Operation(
        "topics.list", "GET", TOPICS_OF, "List the topics of a namespace", answer=list[str],
        query=(SYSTEM_TOPICS, Parameter("bundle", str, "Those of one bundle only.")),
        description="Partitions are listed one by one.",
    ),
    Operation(
        "topics.list_partitioned", "GET", TOPICS_OF + "/partitioned", "List the partitioned topics of a namespace",
        answer=list[str], query=(SYSTEM_TOPICS,),
    ),
    Operation(
        "topics.create", "PUT", TOPIC, "Create a topic without partitions", body=dict[str, str], body_required=False,
        example={"team": "payments"}, description="The body is the properties of the topic.", errors=_EXISTS,
    ),
    Operation(
        "topics.delete", "DELETE", TOPIC, "Delete a topic with its subscriptions and messages", query=(_FORCE,),
        errors={409: "It is a partitioned topic", 412: "Topic has connected producers/consumers"},
    ),
    Operation(
        "topics.get_partitions", "GET", _PARTITIONS, "Show how many partitions a topic has",
        answer=PartitionedTopicMetadata,
        query=(Parameter("checkAllowAutoCreation", bool, "Create the topic if clients may.", False),),
    ),
    Operation(
        "topics.create_partitioned", "PUT", _PARTITIONS, "Create a partitioned topic",
        body=int | PartitionedTopicMetadata, example=4, errors={**_EXISTS, 406: "It takes 1 to 10000 partitions"},
    ),
    Operation(
        "topics.update_partitions", "POST", _PARTITIONS, "Add partitions to a topic", body=int, example=8,
        description="The body is how many there are afterwards; there are never fewer than before.",
        errors={406: "There are as many already, or too many", 409: "It is not partitioned"},
    ),
    Operation(
        "topics.delete_partitioned", "DELETE", _PARTITIONS, "Delete a partitioned topic", query=(_FORCE,),
        errors={409: "It is not partitioned", 412: "Topic has connected producers/consumers"},
    ),
    Operation(
        "topics.create_missed_partitions", "POST", TOPIC + "/createMissedPartitions",
        "Make the partitions of a topic that are missing", errors={406: "It has more partitions than a broker serves"},
    ),
    Operation("topics.unload", "PUT", TOPIC + "/unload", "Unload a topic; its clients come back"),
    Operation(
        "topics.terminate", "POST", TOPIC + "/terminate", "End a topic: no message follows", answer=MessagePlace,
        errors={405: "It is partitioned", 406: _PERSISTENT_ONLY}, description="Answers the id of the last message.",
    ),
    Operation(
        "topics.terminate_partitioned", "POST", TOPIC + "/terminate/partitions", "End all partitions of a topic",
        answer=dict[str, MessagePlace], errors={405: "It is not partitioned or not persistent"},
    ),
    Operation(
        "topics.truncate", "DELETE", TOPIC + "/truncate", "Acknowledge and delete everything that is stored",
        errors={412: _PERSISTENT_ONLY},
    ),
    Operation(
        "topics.trim", "POST", TOPIC + "/trim", "Delete what retention does not keep, now", success=200,
        errors={405: _PERSISTENT_ONLY},
    ),
    Operation(
        "topics.get_properties", "GET", _PROPERTIES, "Show the properties of a topic", answer=dict[str, str],
        errors={406: _PERSISTENT_ONLY},
    ),
    Operation(
        "topics.update_properties", "PUT", _PROPERTIES, "Add properties to a topic", body=dict[str, str],
        example={"team": "payments"}, errors={406: _PERSISTENT_ONLY},
    ),
    Operation(
        "topics.remove_properties", "DELETE", _PROPERTIES, "Remove a property of a topic, or all",
        query=(Parameter("key", str, "Its name; without it all are removed."),), errors={406: _PERSISTENT_ONLY},
    ),
    Operation(
        "topics.get_stats", "GET", TOPIC + "/stats", "Show statistics of a topic", query=_STATS, answer=TopicStatistics
    ),
    Operation(
        "topics.get_internal_stats", "GET", TOPIC + "/internalStats", "Show how a topic is stored",
        answer=TopicInternalStatistics,
    ),
    Operation(
        "topics.get_partitioned_stats", "GET", TOPIC + "/partitioned-stats", "Show statistics of a partitioned topic",
        query=(*_STATS, Parameter("perPartition", bool, "Show each partition as well.", True)),
        answer=PartitionedTopicStatistics,
    ),
    Operation(
        "topics.get_partitioned_internal_stats", "GET", TOPIC + "/partitioned-internalStats",
        "Show how the partitions of a topic are stored", answer=PartitionedTopicInternalStatistics,
    ),
    Operation(
        "topics.get_last_message_id", "GET", TOPIC + "/lastMessageId", "Show the id of the last message",
        answer=MessagePlace, errors={405: _PERSISTENT_ONLY},
    ),
    Operation(
        "topics.get_message_id_by_timestamp", "GET", TOPIC + "/messageid/{timestamp}",
        "Show the id of the first message published at or after a time", answer=MessagePlace, errors={405: _PLAIN_ONLY},
    ),
    Operation(
        "topics.examine_message", "GET", TOPIC + "/examinemessage", "Show a stored message, counted from one end",
        answer=RawMessage, errors={405: _PLAIN_ONLY, 412: "There is no such message"},
        query=(
            Parameter("initialPosition", Literal["earliest", "latest"], "The end that is counted from.", "latest"),
            Parameter("messagePosition", int, "Which message, from 1.", 1),
        ),
    ),
    Operation(
        "topics.get_message_by_id", "GET", TOPIC + "/ledger/{ledger}/entry/{entry}", "Show the message of an id",
        answer=RawMessage, errors={405: _PLAIN_ONLY},
    ),
    Operation(
        "topics.get_internal_info", "GET", TOPIC + "/internal-info", "Show the metadata of ledgers and cursors",
        answer=PartitionedManagedLedgerInfo | ManagedLedgerInfo, errors={405: _PERSISTENT_ONLY},
    ),
    Operation(
        "topics.get_offline_backlog", "GET", TOPIC + "/backlog", "Count backlogs from the metadata",
        answer=OfflineTopicStatistics,
    ),
    Operation(
        "topics.get_backlog_size_by_message_id", "PUT", TOPIC + "/backlogSize",
        "Count the bytes after a message id", body=MessagePlace, answer=int, example={"ledgerId": 12, "entryId": 0},
        errors={405: _PLAIN_ONLY},
    ),
    Operation(
        "topics.get_shadow_topics", "GET", TOPIC + "/shadowTopics", "List the shadow topics of a topic",
        answer=list[str], unset=200,
    ),
    Operation(
        "topics.set_shadow_topics", "PUT", TOPIC + "/shadowTopics", "Set the shadow topics of a topic",
        body=list[str], example=[], description="Refused, because shadow topics would stay empty.",
        errors={405: _PERSISTENT_ONLY, 412: "A list of none, or a topic that does not exist", 501: "Not available"},
    ),
    Operation(
        "topics.remove_shadow_topics", "DELETE", TOPIC + "/shadowTopics", "Remove the shadow topics of a topic",
        errors={405: _PERSISTENT_ONLY},
    ),
    Operation(
        "topics.publish", "POST", _PUBLISH, "Publish messages", body=ProducerMessages, answer=PublishedMessages,
        example=_MESSAGES, errors=_NOT_PUBLISHED,
    ),
    Operation(
        "topics.publish_to_partition", "POST", _PUBLISH + "/partitions/{partition}", "Publish messages to a partition",
        body=ProducerMessages, answer=PublishedMessages, example=_MESSAGES, errors=_NOT_PUBLISHED,
    ),
    Operation(
        "topics.list_of_bundle", "GET", "/admin/v2/non-persistent/{tenant}/{namespace}/{bundle}",
        "List the non-persistent topics of a bundle", answer=list[str],
    ),
    Operation(
        "lookups.lookup_topic", "GET", _LOOKUP, "Find the broker that serves a topic", answer=LookupData,
        query=(Parameter("listenerName", str, "Which of the broker's advertised listeners."),),
        errors={500: "The broker has no such listener"},
    ),
    Operation("lookups.get_bundle_range", "GET", _LOOKUP + "/bundle", "Name the bundle of a topic", answer=PlainText),
)  # fmt: skip
"""The operations of this group."""
