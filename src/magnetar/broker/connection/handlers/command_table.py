"""The tables that say which handler answers which command: as they are, and asking for permission first."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from magnetar.broker.connection.handlers import (
    consumer_commands,
    handshake,
    lookup_commands,
    producer_commands,
    schema_commands,
    send_command,
    subscribe_command,
    topic_list_watch,
    transaction_commands,
)
from magnetar.broker.connection.handlers.guarded_commands import guarded
from magnetar.broker.connection.session import Handler
from magnetar.protocol import commands as c

HANDLERS: Final = MappingProxyType[type, Handler](
    {
        c.CommandSend: send_command.send,
        c.SendRun: send_command.send_run,
        c.CommandAck: consumer_commands.acknowledge,
        c.AckRun: consumer_commands.acknowledge_run,
        c.CommandFlow: consumer_commands.flow,
        c.UnparsedCommand: consumer_commands.lengthy,
        c.CommandRedeliverUnacknowledgedMessages: consumer_commands.redeliver,
        c.CommandConnect: handshake.connect,
        c.CommandAuthResponse: handshake.auth_response,
        c.CommandPing: handshake.ping,
        c.CommandPong: handshake.pong,
        c.CommandLookupTopic: lookup_commands.look_up,
        c.CommandPartitionedTopicMetadata: lookup_commands.partitioned_metadata,
        c.CommandGetTopicsOfNamespace: lookup_commands.topics_of_namespace,
        c.CommandWatchTopicList: topic_list_watch.watch_topic_list,
        c.CommandWatchTopicListClose: topic_list_watch.close_watch,
        c.CommandGetSchema: schema_commands.get_schema,
        c.CommandGetOrCreateSchema: schema_commands.get_or_create_schema,
        c.CommandProducer: producer_commands.open_producer,
        c.CommandCloseProducer: producer_commands.close_producer,
        c.CommandSubscribe: subscribe_command.subscribe,
        c.CommandCloseConsumer: consumer_commands.close_consumer,
        c.CommandUnsubscribe: consumer_commands.unsubscribe,
        c.CommandSeek: consumer_commands.seek,
        c.CommandGetLastMessageId: consumer_commands.last_message_id,
        c.CommandConsumerStats: consumer_commands.consumer_stats,
        c.CommandTcClientConnectRequest: transaction_commands.connect_coordinator,
        c.CommandNewTxn: transaction_commands.begin,
        c.CommandAddPartitionToTxn: transaction_commands.add_partitions,
        c.CommandAddSubscriptionToTxn: transaction_commands.add_subscriptions,
        c.CommandEndTxn: transaction_commands.end,
        c.CommandEndTxnOnPartition: transaction_commands.end_on_partition,
        c.CommandEndTxnOnSubscription: transaction_commands.end_on_subscription,
    }
)

GUARDED_HANDLERS: Final = MappingProxyType[type, Handler](guarded(HANDLERS))
"""What the sessions of a broker with authorization have."""
