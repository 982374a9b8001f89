"""Options: one table, errors with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.client.place import START, Place
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.compression import CompressionType
from magnetar.spark.options import OPTIONS, sink_options, source_options

BASE = {"service.url": "pulsar://localhost:6650", "topic": "t"}
T = "persistent://public/default/t"


def test_defaults() -> None:
    source = source_options(BASE)
    assert source.topics == (T,)
    assert (source.starting, source.ending, source.subscription) == (None, None, None)
    assert source.fail_on_data_loss
    assert source.poll_timeout == 120
    sink = sink_options(BASE)
    assert (sink.topic, sink.compression, sink.once, sink.app, sink.murmur) == (
        T,
        CompressionType.NONE,
        None,
        None,
        False,
    )


def test_keys_in_any_case_as_spark_hands_them_over() -> None:
    given = {
        "service.url": "pulsar://a,b:1",
        "topics": "x, tenant/ns/y",
        "startingoffsets": '{"x": "3:4", "tenant/ns/y": "earliest"}',
        "failondataloss": "FALSE",
        "minpartitions": "8",
        "value": "String",
    }
    source = source_options(given)
    assert source.topics == ("persistent://public/default/x", "persistent://tenant/ns/y")
    assert source.starting is not None
    assert source.starting.places == {source.topics[0]: Place(3, 4), source.topics[1]: START}
    assert (source.fail_on_data_loss, source.min_partitions, source.value) == (False, 8, "string")
    sink = sink_options(
        {**BASE, "pulsar.producer.compressiontype": "zstd", "pulsar.producer.hashingscheme": "murmur3_32hash"}
    )
    assert (sink.compression, sink.murmur) == (CompressionType.ZSTD, True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"service.url": ""}, "'service.url' is missing"),
        ({"service.url": "localhost"}, "no scheme"),
        ({"topic": ""}, "exactly one of the options 'topic' and 'topics'"),
        ({"topics": "u"}, "exactly one"),
        ({"topic": "a/b"}, "is no topic"),
        ({"startingofsets": "earliest"}, "did you mean 'startingOffsets'"),
        ({"zzz": "1"}, "option 'zzz' is not known; known are"),
        ({"startingOffsets": "middle"}, "earliest or latest or JSON"),
        ({"startingOffsets": '{"t": 5}'}, "earliest or latest or JSON"),
        ({"startingOffsets": '{"t": "x"}'}, "no place in a topic"),
        ({"endingOffsets": "earliest"}, "it can be latest or JSON"),
        ({"failOnDataLoss": "maybe"}, "it can be true, false"),
        ({"minPartitions": "-1"}, "a number from 0"),
        ({"value": "avro"}, "it can be binary, string"),
        ({"delivery": "at-least-once"}, "no meaning for a source"),
    ],
)
def test_bad_source_options(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        source_options({**BASE, **wrong})


def test_bad_sink_options() -> None:
    with pytest.raises(InvalidValueError, match="'subscription' has no meaning for a sink"):
        sink_options({**BASE, "subscription": "s"})
    with pytest.raises(InvalidValueError, match="NONE, LZ4, ZLIB, ZSTD, SNAPPY"):
        sink_options({**BASE, "pulsar.producer.compressionType": "gzip"})
    with pytest.raises(InvalidValueError, match="can be effectively-once, at-least-once"):
        sink_options({**BASE, "delivery": "exactly-once"})
    with pytest.raises(InvalidValueError, match="'txnAppId' and 'txnVersion' belong together"):
        sink_options({**BASE, "txnappid": "nightly"})
    sink_options({**BASE, "queryname": "q", "checkpointlocation": "/tmp/c"})


def test_delivery() -> None:
    assert sink_options({**BASE, "delivery": "Effectively-Once"}).once is True
    assert sink_options({**BASE, "delivery": "at-least-once"}).once is False
    assert sink_options({**BASE, "txnAppId": "nightly", "txnVersion": "7"}).app == ("nightly", 7)


def test_every_option_is_keyed_as_spark_will_and_in_the_documentation() -> None:
    text = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()
    for key, option in OPTIONS.items():
        assert key == option.title.lower()
        sides = " and ".join(name for name, has in (("source", option.source), ("sink", option.sink)) if has)
        assert f"| `{option.title}` | {sides} | {option.help} |" in text
