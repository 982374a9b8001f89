"""The options about values: what goes together, and which columns the sink takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaType
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from magnetar.spark.options.value_options import schema_text
from magnetar.spark.sink.value_writer import check_value_columns
from magnetar.spark.source.reading.value_schemas import column_texts, resolved

BASE = {"service.url": "pulsar://localhost:6650", "topic": "t"}
RECORD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'


def test_a_schema_that_is_given_needs_no_broker(tmp_path: Path) -> None:
    (tmp_path / "r.avsc").write_text(RECORD)
    for given in (RECORD, str(tmp_path / "r.avsc")):
        found = resolved(source_options({**BASE, "value": "avro", "valueSchema": given, "metadata": "__partition"}))
        assert found.value.definition is not None
        assert found.value.definition.type is SchemaType.AVRO
        assert column_texts(found) == ["a int", "__partition int"]
    number = resolved(source_options({**BASE, "value": "LOCAL_DATE", "metadata": "none", "onDecodeError": "column"}))
    assert column_texts(number) == ["value date", "__decodeError string", "__rawValue binary"]
    with pytest.raises(InvalidValueError, match="neither JSON nor a file"):
        schema_text("missing.avsc")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"value": "string", "schemaVersion": "1"}, "'schemaVersion' has no meaning with value=string"),
        ({"value": "auto", "valueSchema": RECORD}, "say whether it is value=avro"),
        ({"value": "avro", "valueSchema": RECORD, "schemaVersion": "1"}, "give either"),
        ({"value": "protobuf", "valueSchema": "x"}, "name one with 'valueMessage'"),
        ({"value": "avro", "valueMessage": "x"}, "with value=protobuf only"),
        ({"onDecodeError": "drop"}, "it can be fail, null, column"),
        ({"onNewSchema": "drop"}, "it can be fail, ignore, raw"),
        ({"onDecodeError": "column"}, "'onDecodeError' has no meaning with value=binary"),
        ({"onNewSchema": "raw", "value": "int32"}, "'onNewSchema' has no meaning with value=int32"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidValueError, match=text):
        source_options({**BASE, **options})


def test_a_value_option_that_repeats_the_default_is_accepted() -> None:
    found = source_options({**BASE, "onDecodeError": "fail", "onNewSchema": "fail"}).value
    assert (found.on_error, found.on_new_schema) == ("fail", "fail")
    assert source_options({**BASE, "value": "string", "onDecodeError": "null"}).value.on_error == "null"


def test_columns_that_do_not_fit_the_schema_are_refused() -> None:
    types = {"a": "int", "b": "string", "__key": "binary"}
    assert check_value_columns(sink_options({**BASE, "schema": "avro"}), types) == {
        "value": "binary",
        "__key": "binary",
    }
    for options, text in (
        ({"schema": "int32"}, "takes one column 'value', these are a, b"),
        ({"schema": "protobuf"}, "needs 'valueSchema'"),
        ({"schema": "int32", "valueSchema": RECORD}, "'valueSchema' has no meaning without schema=avro or"),
        ({"schema": "auto", "topic": ""}, "needs the option 'topic'"),
        ({"schema": "keyvalue"}, "takes the columns 'key' and 'value', these are a, b"),
        ({"schema": "avro", "keySchema": RECORD}, "'keySchema' has no meaning without schema=keyvalue"),
        ({"keyvalue.encoding": "INLINE"}, "'keyvalue.encoding' has no meaning without schema=keyvalue"),
        ({"schema": "keyvalue", "keyvalue.key": "protobuf"}, "'keyvalue.key' is 'protobuf'; it can be avro, json"),
    ):
        with pytest.raises(InvalidValueError, match=text):
            check_value_columns(sink_options({**BASE, **options}), types)
    with pytest.raises(InvalidValueError, match="no column for the value"):
        check_value_columns(sink_options({**BASE, "schema": "avro"}), {"__key": "binary"})
    pair = {"key": "int", "value": "struct<a:int>", "__key": "binary"}
    assert check_value_columns(sink_options({**BASE, "schema": "keyvalue"}), pair) == {
        "value": "binary",
        "__key": "binary",
    }
    apart = sink_options({**BASE, "schema": "keyvalue", "keyvalue.encoding": "separated"})
    with pytest.raises(InvalidValueError, match="drop '__key'"):
        check_value_columns(apart, pair)
