"""Which handler answers which command: the one table of the wire protocol on the broker's side."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from magnetar.broker.connection import (
    consuming,
    lookups,
    publishing,
    schemas,
    subscribing,
    transacting,
    watching,
)
from magnetar.broker.connection.session import Handler
from magnetar.protocol import commands as c

HANDLERS: Final = MappingProxyType[type, Handler](
    {
        c.CommandSend: publishing.send,
        c.CommandAck: consuming.acknowledge,
        c.CommandFlow: consuming.flow,
        c.UnparsedCommand: consuming.lengthy,
        c.CommandRedeliverUnacknowledgedMessages: consuming.redeliver,
        c.CommandConnect: lookups.connect,
        c.CommandPing: lookups.ping,
        c.CommandPong: lookups.pong,
        c.CommandLookupTopic: lookups.look_up,
        c.CommandPartitionedTopicMetadata: lookups.partitioned_metadata,
        c.CommandGetTopicsOfNamespace: lookups.topics_of_namespace,
        c.CommandWatchTopicList: watching.watch_topic_list,
        c.CommandWatchTopicListClose: watching.close_watch,
        c.CommandGetSchema: schemas.get_schema,
        c.CommandGetOrCreateSchema: schemas.get_or_create_schema,
        c.CommandProducer: publishing.open_producer,
        c.CommandCloseProducer: publishing.close_producer,
        c.CommandSubscribe: subscribing.subscribe,
        c.CommandCloseConsumer: consuming.close_consumer,
        c.CommandUnsubscribe: consuming.unsubscribe,
        c.CommandSeek: consuming.seek,
        c.CommandGetLastMessageId: consuming.last_message_id,
        c.CommandConsumerStats: consuming.consumer_stats,
        c.CommandTcClientConnectRequest: transacting.connect_coordinator,
        c.CommandNewTxn: transacting.begin,
        c.CommandAddPartitionToTxn: transacting.add_partitions,
        c.CommandAddSubscriptionToTxn: transacting.add_subscriptions,
        c.CommandEndTxn: transacting.end,
        c.CommandEndTxnOnPartition: transacting.end_on_partition,
        c.CommandEndTxnOnSubscription: transacting.end_on_subscription,
    }
)
