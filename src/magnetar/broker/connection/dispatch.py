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
        c.Send: publishing.send,
        c.Ack: consuming.acknowledge,
        c.Flow: consuming.flow,
        c.Lengthy: consuming.lengthy,
        c.RedeliverUnacknowledged: consuming.redeliver,
        c.Connect: lookups.connect,
        c.Ping: lookups.ping,
        c.Pong: lookups.pong,
        c.Lookup: lookups.look_up,
        c.PartitionedMetadata: lookups.partitioned_metadata,
        c.GetTopicsOfNamespace: lookups.topics_of_namespace,
        c.WatchTopicList: watching.watch_topic_list,
        c.WatchTopicListClose: watching.close_watch,
        c.GetSchema: schemas.get_schema,
        c.GetOrCreateSchema: schemas.get_or_create_schema,
        c.Producer: publishing.open_producer,
        c.CloseProducer: publishing.close_producer,
        c.Subscribe: subscribing.subscribe,
        c.CloseConsumer: consuming.close_consumer,
        c.Unsubscribe: consuming.unsubscribe,
        c.Seek: consuming.seek,
        c.GetLastMessageId: consuming.last_message_id,
        c.ConsumerStats: consuming.consumer_stats,
        c.TcClientConnectRequest: transacting.connect_coordinator,
        c.NewTxn: transacting.begin,
        c.AddPartitionToTxn: transacting.add_partitions,
        c.AddSubscriptionToTxn: transacting.add_subscriptions,
        c.EndTxn: transacting.end,
        c.EndTxnOnPartition: transacting.end_on_partition,
        c.EndTxnOnSubscription: transacting.end_on_subscription,
    }
)
