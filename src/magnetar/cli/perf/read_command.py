"""``magnetar perf read``: its flags, as ``pulsar-perf read`` has them."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from magnetar.cli.perf.flags import TOPIC_COUNT, Flag, check_opened, connection_of, flagged

FLAGS: Final = (
    Flag("start", "--start-message-id -m", "earliest", "earliest, latest or LEDGER:ENTRY."),
    TOPIC_COUNT,
    Flag("messages", "--num-messages -n", 0, "Messages in all; 0: no end."),
    Flag("rate", "--rate -r", 0.0, "Messages a second of each reader; 0: as fast as possible."),
    Flag("queue_size", "--receiver-queue-size -q", 1000, "Messages fetched ahead."),
    Flag("use_tls", "--use-tls", False, "The service URL must be pulsar+ssl://."),
)


@flagged(FLAGS)
def read(given: Namespace) -> None:
    """Read without a subscription. Example: magnetar perf read orders -m earliest -n 100000"""
    from magnetar.cli.messages.flags import check_memory
    from magnetar.cli.messages.produce.sender import usage
    from magnetar.cli.messages.read.start_id import start_id
    from magnetar.cli.perf.consumer_load import ConsumerLoad, ConsumerPlan
    from magnetar.cli.perf.run import run_load
    from magnetar.cli.perf.topics import topic_names
    from magnetar.model.errors import InvalidValueError

    with usage(1):
        connection = connection_of(given)
        check_memory(given.memory_limit)
        if given.use_tls and not (given.url or "").startswith("pulsar+ssl://"):
            raise InvalidValueError("--use-tls: write the service URL as pulsar+ssl://host:6651")
        if min(given.messages, given.rate, given.duration, given.queue_size) < 0 or given.connections < 1:
            raise InvalidValueError("rates, numbers and times are not below 0")
        check_opened(given.topic_count, "readers")
        plan = ConsumerPlan(
            topics=topic_names(given.topics, given.topic_count), messages=given.messages, rate=given.rate,
            options={"receiver_queue_size": given.queue_size}, start=start_id(given.start),
        )  # fmt: skip
        load = ConsumerLoad(plan)
    run_load(connection, load, seconds=given.duration, connections=given.connections, listener_name=given.listener_name)
