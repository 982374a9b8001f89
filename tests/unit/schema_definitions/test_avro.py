"""Which texts are Avro schemas, and when two schemas are the same."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.schema_definitions.avro import AvroSchemaError, parse, parse_document
from magnetar.schema_definitions.avro_canonical import canonical

R: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}


def with_field(**attributes: Any) -> dict[str, Any]:
    return {**R, "fields": [{"name": "a", "type": "string", **attributes}]}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"{bad", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"5", "a type is a name, an object or a list, not 5"),
        (b'"nope"', '"nope" is not a type'),
        (b'{"type":{"type":"string"}}', 'no "type"'),
        (b'{"type":"record","name":"R"}', "record R has no fields"),
        (b'{"type":"record","fields":[]}', 'a record needs a "name"'),
        (b'{"type":"record","name":"a b","fields":[]}', '"a b" is not a name'),
        (b'{"type":"record","name":"1a","fields":[]}', '"1a" is not a name'),
        (b'{"type":"record","name":"int","fields":[]}', "Avro's own"),
        (b'{"type":"record","name":"R","fields":[{"name":"a"}]}', "field R.a: no type"),
        (b'{"type":"record","name":"R","fields":[{"type":"int"}]}', 'a field is an object with a "name"'),
        (b'{"type":"record","name":"R","fields":[7]}', 'a field is an object with a "name"'),
        (json.dumps(with_field(order="up")).encode(), 'field R.a: order "up"'),
        (json.dumps(with_field(aliases="b")).encode(), "field R.a: aliases"),
        (json.dumps(with_field(type="double", default="x")).encode(), 'field R.a: default "x" is no number'),
        (b'{"type":"enum","name":"E","symbols":"A"}', "no list of symbols"),
        (b'{"type":"enum","name":"E","symbols":["A","A"]}', "stands twice"),
        (b'{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "not one of its symbols"),
        (b'{"type":"enum","name":"E","symbols":["A"],"default":[1]}', "not one of its symbols"),
        (b'{"type":"fixed","name":"F"}', "has no size"),
        (b'{"type":"fixed","name":"F","size":-1}', "has no size"),
        (b'{"type":"array"}', 'a array needs "items"'),
        (b'["int","int"]', "int twice"),
        (b'["int",["null"]]', "a union directly inside a union"),
        (b'[{"type":"fixed","name":"F","size":1},{"type":"enum","name":"F","symbols":[]}]', "F is defined twice"),
    ],
)
def test_what_is_no_schema_is_refused_with_the_reason(data: bytes, says: str) -> None:
    with pytest.raises(AvroSchemaError) as refused:
        parse(data)
    assert says in str(refused.value)


def test_a_field_twice_is_named() -> None:
    with pytest.raises(AvroSchemaError, match=r"field R\.a: defined twice"):
        parse_document({**R, "fields": R["fields"] * 2})


def test_depth_has_a_limit() -> None:
    nested: Any = "int"
    for _ in range(150):
        nested = {"type": "array", "items": nested}
    with pytest.raises(AvroSchemaError, match="more than 100 types"):
        parse_document(nested)


def test_names_are_found_in_their_namespace() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    outer = {
        "type": "record",
        "name": "n.R",
        "fields": [{"name": "a", "type": inner}, {"name": "b", "type": "E"}, {"name": "c", "type": "n.E"}],
    }
    found: Any = parse_document(outer)
    assert [each.type.name for each in found.fields] == ["n.E"] * 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["int", "record", "R", "enum"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "fields", "items", "values", "symbols", "size", "default", "aliases"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_a_schema_or_an_error(document: Any) -> None:
    """Any JSON is a schema or an error, and what is taken here fastavro takes."""
    try:
        canonical(parse_document(document))
    except AvroSchemaError:
        return
    fastavro.parse_schema(document)


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        ({**R, "doc": "text"}, True),
        ({**R, "aliases": ["Q"]}, True),
        (with_field(doc="text"), True),
        (with_field(aliases=["b"]), True),
        (with_field(order="ascending"), True),
        ({**R, "fields": [{"name": "a", "type": {"type": "string"}}]}, True),
        ({**R, "namespace": "n"}, False),
        ({**R, "name": "Q"}, False),
        ({**R, "extra": 1}, False),
        (with_field(default="x"), False),
        (with_field(order="ignore"), False),
        (with_field(type={"type": "string", "logicalType": "uuid"}), False),
    ],
)
def test_what_counts_for_being_the_same(other: dict[str, Any], equal: bool) -> None:
    assert (canonical(parse_document(R)) == canonical(parse_document(other))) is equal


def test_a_type_that_contains_itself_has_a_canonical_form() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    assert canonical(parse_document(node)) == canonical(parse_document(json.loads(json.dumps(node))))
