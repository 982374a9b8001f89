"""``magnetar perf consume``: its flags, as ``pulsar-perf consume`` has them."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from magnetar.cli.perf.flags import (
    HISTOGRAM_FILE,
    TOPIC_COUNT,
    TRANSACTIONS,
    Flag,
    at_least,
    check_opened,
    check_transactions,
    connection_of,
    flagged,
    without_meaning,
)

if TYPE_CHECKING:
    from magnetar.cli.perf.consumer_load import ConsumerPlan

_JAVA: Final = (
    Flag("auto_scaled", "--auto-scaled-receiver-queue-size -aq", False),
    Flag("pool", "--pool-messages -pm", "true"),
    Flag("expire", "--expire_time_incomplete_chunked_messages -e", 0),
)
FLAGS: Final = (
    Flag("subscriptions", "--subscriptions -ss", ["sub"], "Names of subscriptions; commas.", list[str]),
    Flag("subscription_count", "--num-subscriptions -ns", 1, "Subscriptions; of one name NAME-0, …"),
    Flag("sub_type", "--subscription-type -st", "Exclusive", "Shared, Failover or Key_Shared."),
    Flag("position", "--subscription-position -sp", "Latest", "Earliest or Latest."),
    Flag("consumers", "--num-consumers -n", 1, "Consumers of each subscription."),
    TOPIC_COUNT,
    Flag("messages", "--num-messages -m", 0, "Messages in all; 0: no end."),
    Flag("rate", "--rate -r", 0.0, "Messages a second of each consumer; 0: as fast as possible."),
    Flag("queue_size", "--receiver-queue-size -q", 1000, "Messages fetched ahead."),
    Flag("across", "--receiver-queue-size-across-partitions -p", 50_000, "The same of all partitions together."),
    Flag("replicated", "--replicated -rs", False, "Replicate the subscriptions."),
    Flag("acks_delay", "--acks-delay-millis", None, "Milliseconds for which acknowledgements gather.", int | None),
    Flag("batch_index_ack", "--batch-index-ack", False, "Acknowledge each message of a batch."),
    Flag("chunked_max", "--max_chunked_msg -mc", 0, "Incomplete messages; 0: 10."),
    Flag("ack_oldest", "--auto_ack_chunk_q_full -ac", False, "Acknowledge the oldest beyond that."),
    HISTOGRAM_FILE,
    *TRANSACTIONS,
    Flag("txn_count", "-ntxn", 0, "Transactions in all; 0: no end."),
    Flag("subscriber_name", "--subscriber-name -s", None),
    Flag("encryption_key_value_file", "--encryption-key-value-file -v", None),
    *_JAVA,
)


@flagged(FLAGS)
def consume(given: Namespace) -> None:
    """Receive and acknowledge. Example: magnetar perf consume orders -ss load -sp Earliest -m 100000"""
    from magnetar.cli.messages.flags import check_memory
    from magnetar.cli.messages.produce.sender import usage
    from magnetar.cli.perf.consumer_load import ConsumerLoad
    from magnetar.cli.perf.latencies import HistogramFile
    from magnetar.cli.perf.run import run_load

    with usage(1):
        connection = connection_of(given)
        check_memory(given.memory_limit)
        without_meaning(given, _JAVA)
        plan = _plan(given)
        file = None if given.histogram_file is None else HistogramFile(given.histogram_file)
        load = ConsumerLoad(plan, file)
    run_load(connection, load, seconds=given.duration, connections=given.connections, listener_name=given.listener_name)


def _plan(given: Namespace) -> ConsumerPlan:
    """Raises InvalidValueError."""
    from magnetar.cli.messages.consume.subscription_options import subscription_options
    from magnetar.cli.messages.flags import refuse
    from magnetar.cli.perf.consumer_load import ConsumerPlan
    from magnetar.cli.perf.topics import topic_names
    from magnetar.model.errors import InvalidValueError

    refuse(encryption_key_value_file=given.encryption_key_value_file)
    if (
        min(given.messages, given.rate, given.duration, given.acks_delay or 0) < 0
        or min(given.consumers, given.connections) < 1
    ):
        raise InvalidValueError("rates, numbers and times are not below 0; there is one consumer at least")
    at_least(given, FLAGS, 1, "subscription_count")
    at_least(given, FLAGS, 0, "txn_count")
    check_transactions(given)
    check_opened(given.topic_count * given.subscription_count * given.consumers, "consumers")
    names = [one for text in given.subscriptions for one in text.split(",")]
    if given.subscriber_name:
        names = [given.subscriber_name]
    if given.subscription_count != len(names):
        if len(names) != 1:
            raise InvalidValueError("The size of subscriptions list should be equal to --num-subscriptions")
        names = [f"{names[0]}-{number}" for number in range(given.subscription_count)]
    if given.sub_type.lower() == "exclusive" and given.consumers > 1:
        raise InvalidValueError("Only one consumer is allowed when subscriptionType is Exclusive")
    options = subscription_options(
        given.sub_type, given.position, "Durable", given.queue_size, given.chunked_max, given.ack_oldest,
        given.replicated,
    )  # fmt: skip
    options["max_total_receiver_queue_size_across_partitions"] = given.across
    if given.acks_delay is not None:
        options["ack_group_time_ms"] = given.acks_delay
    options["batch_index_ack_enabled"] = given.batch_index_ack
    return ConsumerPlan(
        topics=topic_names(given.topics, given.topic_count),
        subscriptions=names,
        consumers=given.consumers,
        messages=given.messages,
        rate=given.rate,
        options=options,
        transaction=(given.txn_size, given.txn_timeout, given.abort) if given.txn else None,
        transactions_max=given.txn_count,
    )
