"""Everything that can be said on the wire (SEMANTICS 1.3), grouped by what it is about.

A field without a default is always written. One whose default is None is written when it is not None, so "absent" and
"zero" stay different. Any other field is written when it differs from its default, which is the wire's default too.
"""

from __future__ import annotations

from typing import TypeAlias

from magnetar.protocol.commands.connecting import (
    AuthChallenge,
    AuthData,
    AuthMethod,
    AuthResponse,
    Connect,
    Connected,
    Error,
    FeatureFlags,
    Ping,
    Pong,
    Success,
)
from magnetar.protocol.commands.consuming import (
    Ack,
    AckResponse,
    AckType,
    ActiveConsumerChange,
    BrokerEntryMetadata,
    CloseConsumer,
    ConsumerStats,
    ConsumerStatsResponse,
    Flow,
    GetLastMessageId,
    GetLastMessageIdResponse,
    InitialPosition,
    IntRange,
    KeySharedMeta,
    KeySharedMode,
    Message,
    ReachedEndOfTopic,
    RedeliverUnacknowledged,
    Seek,
    Subscribe,
    SubType,
    Unsubscribe,
    ValidationError,
)
from magnetar.protocol.commands.ids import (
    LongPairs,
    MessageIdData,
    Pairs,
    TxnId,
)
from magnetar.protocol.commands.lengthy import Lengthy
from magnetar.protocol.commands.lookups import (
    GetTopicsOfNamespace,
    GetTopicsOfNamespaceResponse,
    Lookup,
    LookupResponse,
    LookupType,
    MetadataType,
    NamespaceMode,
    PartitionedMetadata,
    PartitionedMetadataResponse,
)
from magnetar.protocol.commands.producing import (
    CloseProducer,
    Producer,
    ProducerAccessMode,
    ProducerSuccess,
    ResourceType,
    Send,
    SendError,
    SendReceipt,
    TopicMigrated,
)
from magnetar.protocol.commands.schemas import (
    GetOrCreateSchema,
    GetOrCreateSchemaResponse,
    GetSchema,
    GetSchemaResponse,
    Schema,
    SchemaType,
)
from magnetar.protocol.commands.transactions import (
    AddPartitionToTxn,
    AddPartitionToTxnResponse,
    AddSubscriptionToTxn,
    AddSubscriptionToTxnResponse,
    EndTxn,
    EndTxnOnPartition,
    EndTxnOnPartitionResponse,
    EndTxnOnSubscription,
    EndTxnOnSubscriptionResponse,
    EndTxnResponse,
    NewTxn,
    NewTxnResponse,
    TcClientConnectRequest,
    TcClientConnectResponse,
    TxnAction,
    TxnSubscription,
)
from magnetar.protocol.commands.watching import (
    WatchTopicList,
    WatchTopicListClose,
    WatchTopicListSuccess,
    WatchTopicUpdate,
)

Command: TypeAlias = (
    Connect
    | Connected
    | AuthChallenge
    | AuthResponse
    | Ping
    | Pong
    | Success
    | Error
    | PartitionedMetadata
    | PartitionedMetadataResponse
    | Lengthy
    | Lookup
    | LookupResponse
    | GetTopicsOfNamespace
    | GetTopicsOfNamespaceResponse
    | Producer
    | ProducerSuccess
    | Send
    | SendReceipt
    | SendError
    | CloseProducer
    | TopicMigrated
    | Subscribe
    | Message
    | Ack
    | AckResponse
    | ActiveConsumerChange
    | Flow
    | Unsubscribe
    | Seek
    | ReachedEndOfTopic
    | CloseConsumer
    | RedeliverUnacknowledged
    | ConsumerStats
    | ConsumerStatsResponse
    | GetLastMessageId
    | GetLastMessageIdResponse
    | GetSchema
    | GetSchemaResponse
    | GetOrCreateSchema
    | GetOrCreateSchemaResponse
    | WatchTopicList
    | WatchTopicListSuccess
    | WatchTopicUpdate
    | WatchTopicListClose
    | TcClientConnectRequest
    | TcClientConnectResponse
    | NewTxn
    | NewTxnResponse
    | AddPartitionToTxn
    | AddPartitionToTxnResponse
    | AddSubscriptionToTxn
    | AddSubscriptionToTxnResponse
    | EndTxn
    | EndTxnResponse
    | EndTxnOnPartition
    | EndTxnOnPartitionResponse
    | EndTxnOnSubscription
    | EndTxnOnSubscriptionResponse
)

__all__ = [
    "Ack",
    "AckResponse",
    "AckType",
    "ActiveConsumerChange",
    "AddPartitionToTxn",
    "AddPartitionToTxnResponse",
    "AddSubscriptionToTxn",
    "AddSubscriptionToTxnResponse",
    "AuthChallenge",
    "AuthData",
    "AuthMethod",
    "AuthResponse",
    "BrokerEntryMetadata",
    "CloseConsumer",
    "CloseProducer",
    "Command",
    "Connect",
    "Connected",
    "ConsumerStats",
    "ConsumerStatsResponse",
    "EndTxn",
    "EndTxnOnPartition",
    "EndTxnOnPartitionResponse",
    "EndTxnOnSubscription",
    "EndTxnOnSubscriptionResponse",
    "EndTxnResponse",
    "Error",
    "FeatureFlags",
    "Flow",
    "GetLastMessageId",
    "GetLastMessageIdResponse",
    "GetOrCreateSchema",
    "GetOrCreateSchemaResponse",
    "GetSchema",
    "GetSchemaResponse",
    "GetTopicsOfNamespace",
    "GetTopicsOfNamespaceResponse",
    "InitialPosition",
    "IntRange",
    "KeySharedMeta",
    "KeySharedMode",
    "Lengthy",
    "LongPairs",
    "Lookup",
    "LookupResponse",
    "LookupType",
    "Message",
    "MessageIdData",
    "MetadataType",
    "NamespaceMode",
    "NewTxn",
    "NewTxnResponse",
    "Pairs",
    "PartitionedMetadata",
    "PartitionedMetadataResponse",
    "Ping",
    "Pong",
    "Producer",
    "ProducerAccessMode",
    "ProducerSuccess",
    "ReachedEndOfTopic",
    "RedeliverUnacknowledged",
    "ResourceType",
    "Schema",
    "SchemaType",
    "Seek",
    "Send",
    "SendError",
    "SendReceipt",
    "SubType",
    "Subscribe",
    "Success",
    "TcClientConnectRequest",
    "TcClientConnectResponse",
    "TopicMigrated",
    "TxnAction",
    "TxnId",
    "TxnSubscription",
    "Unsubscribe",
    "ValidationError",
    "WatchTopicList",
    "WatchTopicListClose",
    "WatchTopicListSuccess",
    "WatchTopicUpdate",
]
