"""Protobuf to columns, against upb."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from google.protobuf import descriptor_pb2 as d
from google.protobuf import timestamp_pb2
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.columnar.protobuf import Protobuf, ProtobufWriter
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType, version_bytes
from magnetar.schema_definitions import protobuf_native
from tests.support.avro_cases import TEXTS, rows

Field = d.FieldDescriptorProto


def files() -> bytes:
    """One message with a field of each sort."""
    file = d.FileDescriptorProto(name="m.proto", package="p", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    file.enum_type.add(name="E").value.extend(
        [d.EnumValueDescriptorProto(name=n, number=i) for i, n in enumerate("AB")]
    )
    message = file.message_type.add(name="M")
    inner = message.nested_type.add(name="N")
    inner.field.add(name="x", number=1, type=Field.TYPE_DOUBLE, label=1)
    entry = message.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=Field.TYPE_UINT32, label=1)
    for number, (name, kind, label, type_name) in enumerate(
        (
            ("i", Field.TYPE_SINT64, 1, None),
            ("u", Field.TYPE_UINT64, 1, None),
            ("s", Field.TYPE_STRING, 1, None),
            ("many", Field.TYPE_INT32, 3, None),
            ("e", Field.TYPE_ENUM, 1, ".p.E"),
            ("n", Field.TYPE_MESSAGE, 1, ".p.M.N"),
            ("counts", Field.TYPE_MESSAGE, 3, ".p.M.CountsEntry"),
            ("t", Field.TYPE_MESSAGE, 1, ".google.protobuf.Timestamp"),
        ),
        1,
    ):
        message.field.add(name=name, number=number, type=kind, label=label, type_name=type_name)
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="left", number=1, type=Field.TYPE_MESSAGE, label=1, type_name=".p.Tree")
    found = d.FileDescriptorSet()
    found.file.add().ParseFromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    found.file.append(file)
    return found.SerializeToString()


def reader(message: str = "p.M", **options: Any) -> tuple[Protobuf, Any]:
    descriptor = protobuf_native.descriptor(protobuf_native.definition(files(), message))
    return Protobuf(descriptor, **options), GetMessageClass(descriptor)


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.integers(-(2**63), 2**63 - 1),
            "u": st.integers(0, 2**64 - 1),
            "s": TEXTS,
            "many": st.lists(st.integers(-5, 5), max_size=3),
            "e": st.sampled_from(["A", "B"]),
            "n": st.one_of(st.none(), st.floats(allow_nan=False)),
            "counts": st.dictionaries(TEXTS, st.integers(0, 2**32 - 1), max_size=2),
        }
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(MESSAGES)
def test_what_upb_writes_is_read(given_rows: list[dict[str, Any]]) -> None:
    decoder, message = reader()
    values = []
    for row in given_rows:
        made = message(i=row["i"], u=row["u"], s=row["s"], many=row["many"], e=row["e"], counts=row["counts"])
        if row["n"] is not None:
            made.n.x = row["n"]
        made.t.FromSeconds(7)
        values.append(made.SerializeToString())
    columns, unreadable = decoder.read(pa.array(values, pa.binary()), [(len(values), None)])
    assert not unreadable
    for found, row in zip(rows(decoder.schema, columns), given_rows, strict=True):
        assert found.pop("t") == dt.datetime(1970, 1, 1, 0, 0, 7, tzinfo=dt.UTC)
        inner = None if row["n"] is None else {"x": row["n"]}
        assert dict(found.pop("counts")) == row["counts"]
        assert found == {**{k: row[k] for k in ("i", "s", "many", "e")}, "u": Decimal(row["u"]), "n": inner}


def test_tombstones_and_what_is_no_protobuf() -> None:
    decoder, message = reader()
    good = message(i=3).SerializeToString()
    values = pa.array([good, None, b"\xff", b"", b"\x1a\x01\xff"], pa.binary())
    columns, unreadable = decoder.read(values, [(5, None)])
    assert columns[0].to_pylist() == [3, None, None, 0, None]
    assert [one.row for one in unreadable] == [2, 4]
    assert unreadable[0].reason.startswith("does not fit p.M (given): ")


def test_columns_are_written_so_that_they_are_read_again() -> None:
    decoder, message = reader()
    made = message(i=-3, u=2**64 - 1, s="x", many=[1, 2], e="B", counts={"k": 1})
    made.n.x = 0.5
    values = pa.array([made.SerializeToString(), None, b""], pa.binary())
    columns, _ = decoder.read(values, [(3, None)])
    writer = ProtobufWriter(type(made).DESCRIPTOR, decoder.schema.names)
    again = writer.write(dict(zip(decoder.schema.names, columns, strict=True)), np.array([True, False, True]))
    assert message.FromString(again[0].as_py()) == made
    assert again.to_pylist()[1:] == [None, b""]
    only = ProtobufWriter(type(made).DESCRIPTOR, ["i"]).write({"i": pa.array([7, None])}, np.array([True, True]))
    assert [message.FromString(one).i for one in only.to_pylist()] == [7, 0]
    with pytest.raises(InvalidValueError, match=r"column 'z' is no field of p\.M"):
        ProtobufWriter(type(made).DESCRIPTOR, ["z"])


def test_other_types_and_messages_without_columns() -> None:
    decoder, _ = reader(writers=lambda _: SchemaDefinition(SchemaType.AVRO))
    (found,) = decoder.read(pa.array([b""], pa.binary()), [(1, version_bytes(2))]).unreadable
    assert found.new_schema
    assert "schema version 2" in found.reason
    with pytest.raises(InvalidValueError, match=r"p\.Tree contains itself"):
        reader("p.Tree")
    encoded = base64.b64encode(files()).decode()
    assert f'"fileDescriptorSet":"{encoded}"' in protobuf_native.definition(files(), "p.M").decode()
