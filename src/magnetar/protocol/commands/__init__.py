"""The commands of the wire (rules of 1.3), with the names of PulsarApi.proto, grouped by subject.

Reading order: ``ids`` (what commands are made of), ``connection`` (handshake, keep-alive, plain answers), ``lookups``,
``producer``, ``consumer``, ``schemas``, ``topic_list_watchers``, ``transactions``, ``unparsed`` (a command that is
too long to be read at once), ``runs`` (many that are alike) and ``names`` (what people call them).

A field without a default is always written. One whose default is None is written when it is not None, so "absent" and
"zero" stay different. Any other field is written when it differs from its default, which is the wire's default too.
"""

from __future__ import annotations

from typing import TypeAlias

from magnetar.model.subscription_types import IntRange, KeySharedMeta, KeySharedMode, SubType
from magnetar.protocol.commands.connection import (
    AuthData,
    AuthMethod,
    CommandAuthChallenge,
    CommandAuthResponse,
    CommandConnect,
    CommandConnected,
    CommandError,
    CommandPing,
    CommandPong,
    CommandSuccess,
    FeatureFlags,
)
from magnetar.protocol.commands.consumer import (
    AckType,
    BrokerEntryMetadata,
    CommandAck,
    CommandAckResponse,
    CommandActiveConsumerChange,
    CommandCloseConsumer,
    CommandConsumerStats,
    CommandConsumerStatsResponse,
    CommandFlow,
    CommandGetLastMessageId,
    CommandGetLastMessageIdResponse,
    CommandMessage,
    CommandReachedEndOfTopic,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSubscribe,
    CommandUnsubscribe,
    InitialPosition,
    ValidationError,
)
from magnetar.protocol.commands.ids import (
    KeyLongValues,
    KeyValues,
    MessageIdData,
    TxnId,
)
from magnetar.protocol.commands.lookups import (
    CommandGetTopicsOfNamespace,
    CommandGetTopicsOfNamespaceResponse,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    LookupType,
    MetadataType,
    NamespaceMode,
)
from magnetar.protocol.commands.producer import (
    CommandCloseProducer,
    CommandProducer,
    CommandProducerSuccess,
    CommandSend,
    CommandSendError,
    CommandSendReceipt,
    CommandTopicMigrated,
    ProducerAccessMode,
    ResourceType,
)
from magnetar.protocol.commands.runs import AckRun, SendRun
from magnetar.protocol.commands.schemas import (
    CommandGetOrCreateSchema,
    CommandGetOrCreateSchemaResponse,
    CommandGetSchema,
    CommandGetSchemaResponse,
    Schema,
    SchemaType,
)
from magnetar.protocol.commands.topic_list_watchers import (
    CommandWatchTopicList,
    CommandWatchTopicListClose,
    CommandWatchTopicListSuccess,
    CommandWatchTopicUpdate,
)
from magnetar.protocol.commands.transactions import (
    CommandAddPartitionToTxn,
    CommandAddPartitionToTxnResponse,
    CommandAddSubscriptionToTxn,
    CommandAddSubscriptionToTxnResponse,
    CommandEndTxn,
    CommandEndTxnOnPartition,
    CommandEndTxnOnPartitionResponse,
    CommandEndTxnOnSubscription,
    CommandEndTxnOnSubscriptionResponse,
    CommandEndTxnResponse,
    CommandNewTxn,
    CommandNewTxnResponse,
    CommandTcClientConnectRequest,
    CommandTcClientConnectResponse,
    TxnAction,
    TxnSubscription,
)
from magnetar.protocol.commands.unparsed import UnparsedCommand

Command: TypeAlias = (
    CommandConnect
    | CommandConnected
    | CommandAuthChallenge
    | CommandAuthResponse
    | CommandPing
    | CommandPong
    | CommandSuccess
    | CommandError
    | CommandPartitionedTopicMetadata
    | CommandPartitionedTopicMetadataResponse
    | UnparsedCommand
    | AckRun
    | SendRun
    | CommandLookupTopic
    | CommandLookupTopicResponse
    | CommandGetTopicsOfNamespace
    | CommandGetTopicsOfNamespaceResponse
    | CommandProducer
    | CommandProducerSuccess
    | CommandSend
    | CommandSendReceipt
    | CommandSendError
    | CommandCloseProducer
    | CommandTopicMigrated
    | CommandSubscribe
    | CommandMessage
    | CommandAck
    | CommandAckResponse
    | CommandActiveConsumerChange
    | CommandFlow
    | CommandUnsubscribe
    | CommandSeek
    | CommandReachedEndOfTopic
    | CommandCloseConsumer
    | CommandRedeliverUnacknowledgedMessages
    | CommandConsumerStats
    | CommandConsumerStatsResponse
    | CommandGetLastMessageId
    | CommandGetLastMessageIdResponse
    | CommandGetSchema
    | CommandGetSchemaResponse
    | CommandGetOrCreateSchema
    | CommandGetOrCreateSchemaResponse
    | CommandWatchTopicList
    | CommandWatchTopicListSuccess
    | CommandWatchTopicUpdate
    | CommandWatchTopicListClose
    | CommandTcClientConnectRequest
    | CommandTcClientConnectResponse
    | CommandNewTxn
    | CommandNewTxnResponse
    | CommandAddPartitionToTxn
    | CommandAddPartitionToTxnResponse
    | CommandAddSubscriptionToTxn
    | CommandAddSubscriptionToTxnResponse
    | CommandEndTxn
    | CommandEndTxnResponse
    | CommandEndTxnOnPartition
    | CommandEndTxnOnPartitionResponse
    | CommandEndTxnOnSubscription
    | CommandEndTxnOnSubscriptionResponse
)

__all__ = [
    "AckRun",
    "AckType",
    "AuthData",
    "AuthMethod",
    "BrokerEntryMetadata",
    "Command",
    "CommandAck",
    "CommandAckResponse",
    "CommandActiveConsumerChange",
    "CommandAddPartitionToTxn",
    "CommandAddPartitionToTxnResponse",
    "CommandAddSubscriptionToTxn",
    "CommandAddSubscriptionToTxnResponse",
    "CommandAuthChallenge",
    "CommandAuthResponse",
    "CommandCloseConsumer",
    "CommandCloseProducer",
    "CommandConnect",
    "CommandConnected",
    "CommandConsumerStats",
    "CommandConsumerStatsResponse",
    "CommandEndTxn",
    "CommandEndTxnOnPartition",
    "CommandEndTxnOnPartitionResponse",
    "CommandEndTxnOnSubscription",
    "CommandEndTxnOnSubscriptionResponse",
    "CommandEndTxnResponse",
    "CommandError",
    "CommandFlow",
    "CommandGetLastMessageId",
    "CommandGetLastMessageIdResponse",
    "CommandGetOrCreateSchema",
    "CommandGetOrCreateSchemaResponse",
    "CommandGetSchema",
    "CommandGetSchemaResponse",
    "CommandGetTopicsOfNamespace",
    "CommandGetTopicsOfNamespaceResponse",
    "CommandLookupTopic",
    "CommandLookupTopicResponse",
    "CommandMessage",
    "CommandNewTxn",
    "CommandNewTxnResponse",
    "CommandPartitionedTopicMetadata",
    "CommandPartitionedTopicMetadataResponse",
    "CommandPing",
    "CommandPong",
    "CommandProducer",
    "CommandProducerSuccess",
    "CommandReachedEndOfTopic",
    "CommandRedeliverUnacknowledgedMessages",
    "CommandSeek",
    "CommandSend",
    "CommandSendError",
    "CommandSendReceipt",
    "CommandSubscribe",
    "CommandSuccess",
    "CommandTcClientConnectRequest",
    "CommandTcClientConnectResponse",
    "CommandTopicMigrated",
    "CommandUnsubscribe",
    "CommandWatchTopicList",
    "CommandWatchTopicListClose",
    "CommandWatchTopicListSuccess",
    "CommandWatchTopicUpdate",
    "FeatureFlags",
    "InitialPosition",
    "IntRange",
    "KeyLongValues",
    "KeySharedMeta",
    "KeySharedMode",
    "KeyValues",
    "LookupType",
    "MessageIdData",
    "MetadataType",
    "NamespaceMode",
    "ProducerAccessMode",
    "ResourceType",
    "Schema",
    "SchemaType",
    "SendRun",
    "SubType",
    "TxnAction",
    "TxnId",
    "TxnSubscription",
    "UnparsedCommand",
    "ValidationError",
]
