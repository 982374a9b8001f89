"""``magnetar perf produce``: its flags, as ``pulsar-perf produce`` has them."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from magnetar.cli.perf.flags import (
    HISTOGRAM_FILE,
    PARTITIONS,
    TOPIC_COUNT,
    TRANSACTIONS,
    Flag,
    check_opened,
    check_transactions,
    connection_of,
    flagged,
    rest_of,
)

if TYPE_CHECKING:
    from magnetar.cli.perf.producer_load import ProducerPlan

_OUTSTANDING: Final = 10_000
_ACROSS: Final = 50_000
FLAGS: Final = (
    Flag("rate", "--rate -r", 100, "Messages a second; 0: as fast as possible."),
    Flag("size", "--size -s", 1024, "Bytes of a message."),
    TOPIC_COUNT,
    Flag("producers", "--num-producers -n", 1, "Producers of each topic."),
    Flag("threads", "--num-test-threads -threads", 1, "Clients with connections of their own."),
    Flag("messages", "--num-messages -m", 0, "Messages in all; 0: no end."),
    Flag("separator", "--separator", "-", "What stands between a name and its number."),
    Flag("send_timeout", "--send-timeout", 0, "Seconds; 0: none."),
    Flag("name", "--producer-name -pn", None, "A name; a number is added."),
    Flag("outstanding", "--max-outstanding -o", 0, f"Messages without receipt; 0: {_OUTSTANDING}."),
    Flag("across", "--max-outstanding-across-partitions -p", 0, "The same of all partitions together; 0: 50000."),
    *PARTITIONS,
    Flag("compression", "--compression -z", "NONE", "LZ4, ZLIB, ZSTD or SNAPPY."),
    Flag("payload_file", "--payload-file -f", None, "A file of payloads, one a line."),
    Flag("delimiter", "--payload-delimiter -e", "\\n", "What stands between them instead."),
    Flag("disable_batching", "--disable-batching -db", False, "Make an entry of each message."),
    Flag("batch_time", "--batch-time-window -b", 1.0, "Milliseconds that a batch waits."),
    Flag("batch_messages", "--batch-max-messages -bm", 1000, "Messages of a batch."),
    Flag("batch_bytes", "--batch-max-bytes -bb", 4 << 20, "Bytes of a batch."),
    Flag("chunking", "--chunking -ch", False, "Cut messages that are too large; without batches."),
    Flag("key_mode", "--message-key-generation-mode -mk", None, "autoIncrement or random."),
    Flag("delay", "--delay -d", 0, "Milliseconds until delivery."),
    Flag("delay_range", "--delay-range -dr", None, "The shortest and longest of them: 5,10."),
    Flag("event_time", "--set-event-time -set", False, "Set the event time to now."),
    Flag("exit_on_failure", "--exit-on-failure -ef", False, "End with 1 when a message fails."),
    Flag("access_mode", "--access-mode -am", "Shared", "Exclusive, ExclusiveWithFencing, WaitForExclusive."),
    Flag("warm_up", "--warmup-time", 1.0, "Seconds at the beginning without latencies."),
    HISTOGRAM_FILE,
    *TRANSACTIONS,
    Flag("format_payload", "--format-payload -fp", False),
    Flag("format_class", "--format-class -fc", ""),
    Flag("encryption_key_name", "--encryption-key-name -k", None),
    Flag("encryption_key_value_file", "--encryption-key-value-file -v", None),
)


@flagged(FLAGS)
def produce(given: Namespace) -> None:
    """Publish at a rate. Example: magnetar perf produce orders -r 1000 -s 100 -time 30 --histogram-file latency.hlog"""
    from magnetar.cli.messages.flags import memory
    from magnetar.cli.messages.produce.sender import usage
    from magnetar.cli.perf.latencies import HistogramFile
    from magnetar.cli.perf.producer_load import ProducerLoad
    from magnetar.cli.perf.run import run_load
    from magnetar.cli.perf.topics import make_partitions

    with usage(1):
        connection, memory_limit = connection_of(given), memory(given.memory_limit)
        plan = _plan(given)
        if given.partitions is not None:
            make_partitions(rest_of(connection, given.admin_url), plan.topics, given.partitions)
        file = None if given.histogram_file is None else HistogramFile(given.histogram_file)
        load = ProducerLoad(plan, file, given.threads)
    run_load(
        connection, load, seconds=given.duration, clients=given.threads, connections=given.connections,
        listener_name=given.listener_name, memory_limit=memory_limit,
    )  # fmt: skip


def _plan(given: Namespace) -> ProducerPlan:
    """Raises InvalidValueError, OSError."""
    from magnetar.cli.messages.flags import refuse
    from magnetar.cli.perf.payloads import delay_range, payloads
    from magnetar.cli.perf.producer_load import ProducerPlan
    from magnetar.cli.perf.topics import topic_names
    from magnetar.model.errors import InvalidValueError

    refuse(
        encryption_key_name=given.encryption_key_name, encryption_key_value_file=given.encryption_key_value_file,
        format_payload=given.format_payload or given.format_class,
    )  # fmt: skip
    if given.key_mode not in (None, "autoIncrement", "random"):
        raise InvalidValueError("messageKeyGenerationMode only support [autoIncrement, random]")
    if min(given.rate, given.messages, given.duration, given.warm_up, given.outstanding, given.across, given.delay) < 0:
        raise InvalidValueError("rates, numbers and times are not below 0")
    if min(given.threads, given.producers, given.connections) < 1:
        raise InvalidValueError("--num-test-threads, --num-producers and --max-connections are 1 at least")
    check_transactions(given)
    check_opened(given.topic_count * given.producers * given.threads, "producers")
    return ProducerPlan(
        topics=topic_names(given.topics, given.topic_count, given.separator),
        producers=given.producers,
        rate=given.rate,
        messages=given.messages,
        payloads=payloads(given.size, given.payload_file, given.delimiter),
        warm_up=given.warm_up,
        options=_producer_options(given),
        name=given.name,
        separator=given.separator,
        key_mode=given.key_mode,
        delays=delay_range(given.delay_range, given.delay),
        event_time=given.event_time,
        exit_on_failure=given.exit_on_failure,
        transaction=(given.txn_size, given.txn_timeout, given.abort) if given.txn else None,
    )


def _producer_options(given: Namespace) -> dict[str, Any]:
    from magnetar.cli.messages.consume.subscription_options import chosen
    from magnetar.protocol.commands import ProducerAccessMode
    from magnetar.protocol.compression import CompressionType

    batching = not (given.disable_batching or given.chunking or (given.batch_time <= 0 and given.batch_messages <= 0))
    return {
        "send_timeout_millis": given.send_timeout * 1000,
        "compression_type": chosen("--compression", given.compression, CompressionType.__members__),
        "max_pending_messages": given.outstanding or _OUTSTANDING,
        "max_pending_messages_across_partitions": given.across or _ACROSS,
        "block_if_queue_full": True,
        "batching_enabled": batching,
        "batching_max_messages": given.batch_messages,
        "batching_max_allowed_size_in_bytes": given.batch_bytes,
        "batching_max_publish_delay_ms": max(given.batch_time, 0.0),
        "chunking_enabled": given.chunking,
        "access_mode": chosen("--access-mode", given.access_mode, ProducerAccessMode.__members__),
    }
