"""Options: one table, errors with the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from magnetar.client.read_position import ReadPosition
from magnetar.columnar.single_entries.opener import CryptoFailureAction
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.compression import CompressionType
from magnetar.spark.data_source import PulsarSource
from magnetar.spark.options.limits import ReadLimits
from magnetar.spark.options.offsets import IndexOffset, NamedOffset, TimeOffset
from magnetar.spark.options.option_list import OPTIONS, STREAMS_ONLY
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import TopicOffsets, check_batch, for_batch, source_options
from magnetar.spark.options.topic_selection import check_known, matching
from tests.support.encrypted_entries import pair

BASE = {"service.url": "pulsar://localhost:6650", "topic": "t"}
T = "persistent://public/default/t"


def test_options_that_are_not_given_have_defaults() -> None:
    source = source_options(BASE)
    assert source.topics.names == (T,)
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
    assert source.topics.names == ("persistent://public/default/x", "persistent://tenant/ns/y")
    assert source.starting is not None
    first, second = source.topics.names
    assert source.starting.exceptions == {first: ReadPosition(3, 4), second: NamedOffset.EARLIEST}
    assert source.starting.of(f"{first}-partition-3") == ReadPosition(3, 4)
    assert (source.fail_on_data_loss, source.min_partitions, source.value.kind) == (False, 8, "string")
    sink = sink_options(
        {**BASE, "pulsar.producer.compressiontype": "zstd", "pulsar.producer.hashingscheme": "murmur3_32hash"}
    )
    assert (sink.compression, sink.murmur) == (CompressionType.ZSTD, True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"service.url": ""}, "'service.url' is missing"),
        ({"service.url": "localhost"}, "no scheme"),
        ({"topic": ""}, "exactly one of the options 'topic', 'topics', 'topicsPattern' and 'assign'$"),
        ({"topics": "u"}, "exactly one .*; given are topic, topics$"),
        ({"topic": "", "topicsPattern": "a/b/c("}, r"'c\(' is no regular expression"),
        ({"topic": "", "topicsPattern": "a/b/(?!c).*"}, "as RE2 has them: Invalid topics pattern: .*perl operator"),
        ({"topic": "", "topicsPattern": "a b/c/d"}, "'a b/c' is no namespace"),
        ({"topic": "", "assign": '{"t": 1}'}, "it must be JSON as"),
        ({"topic": "", "assign": "{}"}, "it must be JSON as"),
        ({"topic": "", "assign": "[" * 100_000}, "option 'assign' is '\\[+', which is no JSON"),
        ({"topic": "", "assign": "[0]"}, "which is no JSON object"),
        ({"topic": "", "assign": '{"t": [0], "t": [1]}'}, "option 'assign' names 't' twice"),
        ({"startingOffsets": "{"}, "which is no JSON"),
        ({"startingOffsets": '{"t": "earliest", "t": "latest"}'}, "option 'startingOffsets' names 't' twice"),
        ({"startingOffsets": '{"t": "earliest", "public/default/t": "latest"}'}, "in two spellings, with two offsets"),
        ({"startingOffsets": "@yesterday"}, "'yesterday' is no time"),
        ({"startingOffsets": "latest", "startingTime": "5"}, "either the option 'startingOffsets' or 'startingTime'"),
        ({"maxMessagesPerTrigger": "0"}, "a number from 1"),
        ({"topic": "a/b"}, "is no topic"),
        ({"startingofsets": "earliest"}, "did you mean 'startingOffsets'"),
        ({"zzz": "1"}, "option 'zzz' is not known; a source has assign"),
        ({"startingOffsets": "middle"}, "'middle' is no offset: write earliest, latest"),
        ({"startingOffsets": '{"t": -5}'}, "-5 is no offset"),
        ({"startingOffsets": '{"t": "x:y"}'}, "no position in a topic"),
        ({"endingOffsets": "earliest"}, "it can be latest or JSON"),
        ({"failOnDataLoss": "maybe"}, "it can be true, false"),
        ({"minPartitions": "-1"}, "a number from 0"),
        ({"value": "text"}, "it can be binary, string"),
        ({"delivery": "at-least-once"}, "no meaning for a source"),
        ({"maxTriggerDelayMs": "5"}, "no meaning without 'minMessagesPerTrigger'"),
    ],
)
def test_a_wrong_source_option_is_refused_with_the_way_out(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        source_options({**BASE, **wrong})


def test_a_batch_read_names_all_that_only_streams_have() -> None:
    shared = {**BASE, "subscription": "s", "MaxMessagesPerTrigger": "5", "startingOffsets": "earliest"}
    with pytest.raises(InvalidValueError, match=r"'subscription', 'maxMessagesPerTrigger' have no meaning for a batch"):
        check_batch(shared)
    with pytest.raises(InvalidValueError, match=r"option 'subscription' has no meaning"):
        PulsarSource({**BASE, "subscription": "s"}).reader(StructType())
    assert for_batch(shared) == {**BASE, "startingOffsets": "earliest"}
    check_batch({**for_batch(shared), "subscription": " "})
    per_trigger = {option.title for option in OPTIONS.values() if "Trigger" in option.title}
    assert set(STREAMS_ONLY) == {*per_trigger, "subscription"}


def test_a_wrong_sink_option_is_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidValueError, match="'subscription' has no meaning for a sink"):
        sink_options({**BASE, "subscription": "s"})
    with pytest.raises(InvalidValueError, match="NONE, LZ4, ZLIB, ZSTD, SNAPPY"):
        sink_options({**BASE, "pulsar.producer.compressionType": "gzip"})
    with pytest.raises(InvalidValueError, match="can be effectively-once, at-least-once"):
        sink_options({**BASE, "delivery": "exactly-once"})
    with pytest.raises(InvalidValueError, match="'txnAppId' and 'txnVersion' belong together"):
        sink_options({**BASE, "txnappid": "nightly"})
    sink_options({**BASE, "queryname": "q", "checkpointlocation": "/tmp/c"})
    with pytest.raises(InvalidValueError, match="'stagging' is not known; did you mean 'staging'"):
        sink_options({**BASE, "stagging": "/tmp/c"})
    with pytest.raises(InvalidValueError, match="'subscripton' is not known; a sink has clientConf, delivery"):
        sink_options({**BASE, "subscripton": "s"})
    with pytest.raises(InvalidValueError, match="'staging' is for effectively-once"):
        sink_options({**BASE, "staging": "/tmp/c", "delivery": "at-least-once"})


def test_offsets_and_topics_in_all_their_forms() -> None:
    given = {"a": 7, "b": "@1000", "c": "@2013-01-01T10:15:00.5Z", "d": "latest", "e": "1:2:3", "f": "@2013-01-01"}
    source = source_options({**BASE, "startingOffsets": json.dumps(given), "endingTime": "2013-01-01 00:00+01:00"})
    assert source.starting is not None and source.ending is not None
    found = [source.starting.of(f"persistent://public/default/{name}") for name in "abcdefg"]
    moments = TimeOffset(1_000), TimeOffset(1_357_035_300_500), TimeOffset(1_356_998_400_000)
    assert found == [
        IndexOffset(7),
        *moments[:2],
        NamedOffset.LATEST,
        ReadPosition(1, 2, 3),
        moments[2],
        NamedOffset.EARLIEST,
    ]
    assert source.ending.of(T) == TimeOffset(1_356_994_800_000)
    limited = source_options({**BASE, "maxMessagesPerTrigger": "5", "maxBytesPerTrigger": "6"})
    assert limited.limits == ReadLimits(5, 6)
    for scheme in ("", "persistent://", "^persistent://"):
        wanted = source_options({"service.url": BASE["service.url"], "topicsPattern": f"{scheme}a/b/t-[0-9]+"}).topics
        assert (wanted.namespace, wanted.expression) == ("a/b", "t-[0-9]+")
    topics = source_options({"service.url": BASE["service.url"], "assign": '{"t": [2, 0, 2]}'}).topics
    assert topics.partitions == ((T, (0, 2)),)


def test_names_that_match_and_names_that_nearly_do() -> None:
    names = [f"{T}-partition-0", f"{T}-partition-1", f"{T}2", "persistent://public/default/u"]
    assert matching(names, "public/default", "t.*") == [T, f"{T}2"]
    assert matching(names, "public/default", "t") == [T]
    check_known([T, f"{T}2", f"{T}-partition-1"], names, "startingOffsets")
    with pytest.raises(InvalidValueError, match="did you mean persistent://public/default/t-partition-1"):
        check_known([f"{T}-partiton-1"], names[1:2], "startingOffsets")


def test_delivery_is_effectively_once_where_it_can_be_unless_the_option_says_otherwise() -> None:
    assert sink_options({**BASE, "delivery": "Effectively-Once"}).once is True
    assert sink_options({**BASE, "delivery": "at-least-once"}).once is False
    assert sink_options({**BASE, "txnAppId": "nightly", "txnVersion": "7"}).app == ("nightly", 7)


def test_every_option_is_keyed_as_spark_will_and_in_the_documentation() -> None:
    text = (Path(__file__).parents[4] / "docs" / "spark.md").read_text()
    for key, option in OPTIONS.items():
        assert key == option.title.lower()
        sides = " and ".join(name for name, has in (("source", option.source), ("sink", option.sink)) if has)
        assert f"| `{option.title}` | {sides} | {option.help} |" in text


def test_private_keys_are_references_or_json_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = pair()[0]
    monkeypatch.setenv("THE_KEY", private)
    file = tmp_path / "key.pem"
    file.write_text(private)
    base = {"service.url": "pulsar://h", "topic": "t"}
    for given in (str(file), f"file://{file}", f"file:{file}", "env:THE_KEY", f"${{file:{file}}}"):
        found = source_options({**base, "decryption.privateKey": given}).decryption
        assert found is not None and found.keys[""].strip() == private.strip()
        assert private not in repr(found)
    both = source_options(
        {**base, "decryption.privateKey": json.dumps({"a": "env:THE_KEY", "b": str(file)})}
    ).decryption
    assert both is not None and set(both.keys) == {"a", "b"}
    skipping = source_options({**base, "decryption.onFailure": "SKIP"}).decryption
    assert skipping is not None and (skipping.keys, skipping.failure) == ({}, CryptoFailureAction.SKIP)
    for key, text, match in (
        ("decryption.privateKey", "/no/such/file", "is neither env:NAME, file:/path or command:PROGRAM"),
        ("decryption.privateKey", "env:NOT_THERE", "the environment has no variable NOT_THERE"),
        ("decryption.privateKey", private, "holds a private key itself, and Spark shows options"),
        ("decryption.privateKey", json.dumps({"a": private}), "holds a private key itself"),
        ("decryption.privateKey", "{}", "must be JSON of key names"),
        ("decryption.privateKey", "{nonsense", "begins like JSON"),
        ("decryption.onFailure", "ignore", "it can be fail, skip, consume"),
    ):
        with pytest.raises(InvalidValueError, match=match) as info:
            source_options({**base, key: text})
        assert "PRIVATE KEY" not in str(info.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"valueSchema": "x"}, "'valueSchema' has no meaning without schema=avro"),
        ({"schema": "string", "valueSchema": "x"}, "'valueSchema' has no meaning without schema=avro"),
        ({"schema": "avro", "valueMessage": "m"}, "'valueMessage' has no meaning without schema=protobuf"),
        ({"txnAppId": "a", "txnVersion": "1", "delivery": "at-least-once"}, "'txnAppId' is for effectively-once"),
    ],
)
def test_sink_options_that_would_be_left_out(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        sink_options({**BASE, **given})


def test_an_error_does_not_show_a_key() -> None:
    secret = "MIIEpAIBAAKCAQEA" * 300
    for text in (secret, secret[:40]):
        with pytest.raises(InvalidValueError, match=r"'decryption\.privateKey' is neither") as found:
            source_options({**BASE, "decryption.privateKey": text})
        assert secret[:16] not in str(found.value)


def test_a_staging_directory_is_the_drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert sink_options({**BASE, "staging": "stage/a"}).staging == str(tmp_path / "stage/a")
    for same in ("/stage", "s3a://bucket/stage", "file:/stage"):
        assert sink_options({**BASE, "staging": same}).staging == same


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "option 'subscription' is missing"),
        ({"subscription": "s", "pushDownFilters": "true"}, "'pushDownFilters' has no meaning"),
    ],
)
def test_options_that_a_stream_does_not_take(given: dict[str, str], message: str) -> None:
    from magnetar.spark.source.reading.stream_reader import StreamReader

    with pytest.raises(InvalidValueError, match=message):
        StreamReader(source_options({**BASE, **given}))


def test_an_index_is_a_number_in_an_option_which_is_a_text() -> None:
    for text in ("3", " 3 ", '{"t": 3}', '{"t": "3"}'):
        found = source_options({**BASE, "startingOffsets": text}).starting
        assert found is not None and found.of(T) == IndexOffset(3)
    assert source_options({**BASE, "endingOffsets": "7"}).ending == TopicOffsets(IndexOffset(7), {})
