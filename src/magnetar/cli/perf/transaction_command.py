"""``magnetar perf transaction``: its flags, as ``pulsar-perf transaction`` has them."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from magnetar.cli.perf.flags import PARTITIONS, Flag, at_least, check_opened, connection_of, flagged, rest_of

FLAGS: Final = (
    Flag("consumed", "--topics-c", ["test-consume"], "Topics to take messages from; commas.", list[str]),
    Flag("produced", "--topics-p", ["test-produce"], "Topics to send messages to; commas.", list[str]),
    Flag("threads", "--num-test-threads -threads", 1, "Clients with connections of their own."),
    Flag("count", "--number-txn -ntxn", 0, "Transactions in all; 0: no end."),
    Flag("rate", "-txnRate", 0, "Transactions a second; 0: as fast as possible."),
    Flag("produce_each", "--numMessage-perTransaction-produce -nmp", 1, "Messages sent to each topic."),
    Flag("consume_each", "--numMessage-perTransaction-consume -nmc", 1, "Messages taken of each subscription."),
    Flag("txn_timeout", "--txn-timeout -tto", 5, "Seconds a transaction may take."),
    Flag("disabled", "--txn-disable", False, "Do the same without transactions."),
    Flag("abort", "-abort", False, "Abort them."),
    Flag("subscriptions", "--subscriptions -ss", ["sub"], "Names of subscriptions; commas.", list[str]),
    Flag("subscription_count", "--num-subscriptions -ns", 1, "Subscriptions; must be as many as names."),
    Flag("sub_type", "--subscription-type -st", "Shared", "Exclusive, Failover or Key_Shared."),
    Flag("position", "--subscription-position -sp", "Earliest", "Earliest or Latest."),
    Flag("queue_size", "--receiver-queue-size -q", 1000, "Messages fetched ahead."),
    Flag("replicated", "--replicated -rs", False, "Replicate the subscriptions."),
    *PARTITIONS,
)


@flagged(FLAGS, topics=False)
def transaction(given: Namespace) -> None:
    """Take, send and commit. Example: magnetar perf transaction --topics-c in --topics-p out -ntxn 100"""
    from magnetar.cli.messages.consume.subscription_options import subscription_options
    from magnetar.cli.messages.flags import memory
    from magnetar.cli.messages.produce.sender import usage
    from magnetar.cli.perf.run import run_load
    from magnetar.cli.perf.topics import make_partitions
    from magnetar.cli.perf.transaction_load import TransactionLoad, TransactionPlan
    from magnetar.model.errors import InvalidValueError

    with usage(1):
        flags, memory_limit = connection_of(given), memory(given.memory_limit)
        if min(given.count, given.rate, given.duration) < 0 or min(given.threads, given.connections) < 1:
            raise InvalidValueError("rates, numbers and times are not below 0; there is one thread at least")
        at_least(given, FLAGS, 0, "produce_each", "consume_each")
        at_least(given, FLAGS, 1, "txn_timeout")
        check_opened(given.threads, "clients")
        names = _names(given.subscriptions)
        if len(names) != given.subscription_count:
            raise InvalidValueError("The size of subscriptions list should be equal to --num-subscriptions")
        plan = TransactionPlan(
            consumed=_names(given.consumed), produced=_names(given.produced), subscriptions=names,
            consume_each=given.consume_each, produce_each=given.produce_each, count=given.count, rate=given.rate,
            timeout=given.txn_timeout, disabled=given.disabled, abort=given.abort,
            options=subscription_options(
                given.sub_type, given.position, "Durable", given.queue_size, 0, False, given.replicated
            ),
        )  # fmt: skip
        if given.partitions is not None:
            make_partitions(rest_of(flags, given.admin_url), plan.produced, given.partitions)
        load = TransactionLoad(plan, given.threads)
    run_load(
        flags, load, seconds=given.duration, clients=given.threads, connections=given.connections,
        listener_name=given.listener_name, memory_limit=memory_limit,
    )  # fmt: skip


def _names(texts: list[str]) -> list[str]:
    return [one for text in texts for one in text.split(",")]
