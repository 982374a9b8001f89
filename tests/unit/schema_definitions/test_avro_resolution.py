"""Which schema reads whose data: Apache Pulsar's verdicts, the specification's tables, fastavro as a second reader."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_many
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.schema_definitions.avro import AvroSchemaError, parse_document
from magnetar.schema_definitions.avro_resolution import ResolutionRule, incompatibility

OBSERVED = json.loads((Path(__file__).parent / "resolution.json").read_text())
"""Random pairs with the answer of Apache Pulsar 4.0.8 under BACKWARD; "invalid": the reader's is no schema."""

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTED = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"),
    ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def broken(writer: Any, reader: Any) -> ResolutionRule | None:
    found = incompatibility(parse_document(writer), parse_document(reader))
    return None if found is None else found.rule


def test_apache_pulsar_says_the_same() -> None:
    assert len(OBSERVED) > 250
    for pair in OBSERVED:
        try:
            ours: object = broken(pair["writer"], pair["reader"]) is None
        except AvroSchemaError:
            ours = "invalid"
        assert ours == pair["readable"], pair


@pytest.mark.parametrize("writer", PRIMITIVES)
@pytest.mark.parametrize("reader", PRIMITIVES)
def test_primitives_stay_or_are_promoted(writer: str, reader: str) -> None:
    expected = None if writer == reader or (writer, reader) in PROMOTED else ResolutionRule.TYPE
    assert broken(record(field("f", writer)), record(field("f", reader))) is expected
    in_union = None if expected is None else ResolutionRule.BRANCH
    assert broken(writer, [reader]) is in_union
    assert broken([writer], reader) is expected


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
INT = record(field("x", "int"), name="A")


@pytest.mark.parametrize(
    ("writer", "reader", "rule"),
    [
        (record(), record(field("b", "int")), ResolutionRule.MISSING_DEFAULT),
        (record(), record(field("b", "int", default=0)), None),
        (record(field("b", "int")), record(), None),
        (record(), record(field("b", "int", default="x")), ResolutionRule.BAD_DEFAULT),
        (record(field("b", "int")), record(field("b", "int", default="x")), None),
        (record(), record(field("b", ["null", "int"], default=None)), None),
        (record(), record(field("b", ["int", "null"], default=None)), ResolutionRule.BAD_DEFAULT),
        (ENUM, {**ENUM, "symbols": ["A"]}, None),
        (ENUM, {**ENUM, "name": "G"}, ResolutionRule.NAME),
        (ENUM, {**ENUM, "name": "n.E"}, None),
        (ENUM, {**ENUM, "name": "G", "aliases": ["E"]}, None),
        (FIXED, {**FIXED, "size": 8}, ResolutionRule.SIZE),
        (FIXED, {**FIXED, "name": "G"}, ResolutionRule.NAME),
        (INT, {**INT, "name": "B"}, None),
        (record(field("x", "int")), record(field("y", "int", aliases=["x"])), None),
        (record(field("y", "int")), record(field("x", "int")), ResolutionRule.MISSING_DEFAULT),
        (record(field("x", "int"), field("y", "int")), record(field("y", "int", aliases=["x"])), ResolutionRule.ALIAS),
        (["null", "int", "string"], ["null", "int"], ResolutionRule.BRANCH),
        (["null", "int"], ["int", "null"], None),
        (["null", "int"], "int", ResolutionRule.TYPE),
        (INT, ["null", {**INT, "name": "B"}], None),
        (INT, ["null", record(field("y", "int"), name="B")], ResolutionRule.BRANCH),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, None),
        ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}, ResolutionRule.TYPE),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, ResolutionRule.TYPE),
        ([], "int", None),
        ("int", [], ResolutionRule.BRANCH),
        ({"type": "int", "logicalType": "date"}, "int", None),
    ],
)
def test_each_rule_of_resolution(writer: Any, reader: Any, rule: ResolutionRule | None) -> None:
    """Each of these was asked of Apache Pulsar 4.0.8, too."""
    assert broken(writer, reader) is rule


def node(*more: dict[str, Any]) -> dict[str, Any]:
    return record(field("next", ["null", "N"]), *more, name="N")


def test_a_type_may_contain_itself() -> None:
    assert broken(node(), node(field("v", "int", default=0))) is None
    assert broken(node(), node(field("v", "int"))) is ResolutionRule.MISSING_DEFAULT


def test_an_error_names_the_field_and_the_rule() -> None:
    def nested(kind: str) -> dict[str, Any]:
        return record(field("a", {"type": "array", "items": record(field("b", kind), name="In")}))

    found = incompatibility(parse_document(nested("string")), parse_document(nested("int")))
    assert str(found).startswith("field a[].b: string was written, the reader has int (rule: a type must stay")


def test_references_without_end_are_an_answer() -> None:
    """A chain of named types is as deep as it likes in a flat text."""

    def chain(kind: str) -> Any:
        fields = [field("f0", record(field("v", kind), name="R0"))]
        fields += [field(f"f{i}", record(field("v", f"R{i - 1}"), name=f"R{i}")) for i in range(1, 2000)]
        return parse_document(record(*reversed(fields), name="Top") if kind == "never" else record(*fields, name="Top"))

    assert incompatibility(chain("int"), chain("int")) is None

    def deep(levels: int) -> Any:
        first = chain("int")
        return first.fields[levels].type

    found = incompatibility(deep(1999), deep(1999))
    assert found is not None
    assert found.rule is ResolutionRule.DEPTH


types = st.recursive(
    st.sampled_from(["null", "boolean", "int", "long", "float", "double", "string"]),
    lambda inner: st.one_of(
        inner.map(lambda kind: {"type": "array", "items": kind}),
        inner.map(lambda kind: {"type": "map", "values": kind}),
        st.just(["null", "int", "string"]),
        st.just(["null", "string"]),
    ),
    max_leaves=3,
)
records = st.dictionaries(st.sampled_from("abcd"), types, max_size=4).map(
    lambda found: record(*(field(name, kind) for name, kind in found.items()))
)


@settings(max_examples=300, deadline=None)
@given(records, records)
def test_what_we_call_readable_fastavro_reads(writer: dict[str, Any], reader: dict[str, Any]) -> None:
    if broken(writer, reader) is not None:
        return
    for value in generate_many(writer, 3):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, writer, value)
        out.seek(0)
        fastavro.schemaless_reader(out, writer, reader)
