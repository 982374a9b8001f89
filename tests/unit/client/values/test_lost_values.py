"""What came back as another value than was sent, or not at all: unions in JSON, sets, defaults, names of fields."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from magnetar import schema
from magnetar.client.errors import SchemaError, ValueTypeError
from magnetar.client.values.records.declared_record import RecordMeta
from magnetar.client.values.written_schema import WrittenSchema


@dataclass
class Cat:
    name: str
    lives: int = 9


@dataclass
class Dog:
    name: str
    breed: str = "mixed"


@dataclass
class Pet:
    pet: Cat | Dog
    tags: set[str] = field(default_factory=set)
    groups: dict[str, frozenset[int] | None] = field(default_factory=dict)
    more: list[set[int]] = field(default_factory=list)


@dataclass
class Odd:
    best: float = float("inf")
    worst: float = float("nan")
    code: int | str = "none"


BOTH = pytest.mark.parametrize("kind", [schema.JsonSchema, schema.AvroSchema])


def record(name: str, fields: dict[str, Any]) -> Any:
    return RecordMeta(name, (schema.Record,), fields)


@BOTH
@pytest.mark.parametrize("pet", [Cat("a", 3), Dog("b", "poodle")])
def test_a_union_of_classes_gives_the_class_that_was_sent(kind: Any, pet: Cat | Dog) -> None:
    """In JSON the first class whose required fields were there took all of them, and left the others out."""
    of = kind(Pet)
    value = Pet(pet, {"x", "y"}, {"a": frozenset({1, 2}), "b": None}, [{3}, set()])
    assert of.decode(of.encode(value)) == value


def test_a_value_with_names_of_no_class_is_of_the_first_that_takes_it() -> None:
    found = schema.JsonSchema(Pet).decode(b'{"pet":{"name":"c","age":4},"tags":[],"groups":{},"more":[]}')
    assert found.pet == Cat("c")


@BOTH
def test_a_default_that_json_cannot_say_is_left_out(kind: Any) -> None:
    """Infinity and NaN are no JSON: the registry refused the definition."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    definition = json.loads(kind(Odd).schema_info().schema(), parse_constant=refuse)
    assert [one.get("default") for one in definition["fields"]] == [None, None, "none"]
    with pytest.raises(SchemaError):
        fields = [{"name": "a", "type": "double", "default": float("nan")}]
        kind(None, {"type": "record", "name": "R", "fields": fields})


def test_the_type_of_a_default_is_first_in_its_union() -> None:
    """A missing field was None, which the class does not allow, since the default was that of no first branch."""
    assert schema.JsonSchema(Odd).decode(b'{"best":1.0,"worst":2.0}').code == "none"


def test_a_missing_field_whose_default_is_none_of_its_type_is_an_error() -> None:
    said = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long", "default": "x"}]}
    with pytest.raises(SchemaError, match="a: it is not there"):
        schema.JsonSchema(None, said).decode(b"{}")


class Inner(schema.Record):
    tags = schema.Array(schema.String(), default=[])


class Outer(schema.Record):
    inner = Inner()
    lists = schema.Map(schema.Array(schema.Integer()), default={"a": []})


def test_new_records_share_nothing() -> None:
    """What was appended to a list of one record stood in all that were made later."""
    one: Any = Outer()
    one.inner.tags.append("mine")
    one.lists["a"].append(1)
    assert Outer() == Outer(inner=Inner(tags=[]), lists={"a": []})


@BOTH
@pytest.mark.parametrize("name", ["type", "default", "required", "required_default"])
def test_fields_with_the_names_of_options_have_their_values(kind: Any, name: str) -> None:
    """Their values were taken for what says how a record is a field, and so were lost."""
    plain = record("Plain", {name: schema.String(), "a": schema.Boolean(default=True)})
    around = record("Around", {"plain": plain(None, False, True)})
    value = around(plain=plain(**{name: "said"}))
    of = kind(around)
    found = of.decode(of.encode(value))
    assert getattr(found.plain, name) == "said"
    assert found == value
    assert of.schema_info().schema().count('"null"') == 2, "the option of the inner record is its position"


@pytest.mark.parametrize("name", ["schema", "schema_info", "validate_type", "_fields", "_required"])
def test_a_field_that_would_hide_the_definition_is_refused(name: str) -> None:
    with pytest.raises(ValueTypeError, match=f"can be called {name}"):
        record("Plain", {name: schema.String()})


def test_two_records_of_one_name_are_refused() -> None:
    """The definition of the first one counted for both."""
    first = record("Address", {"street": schema.String()})
    second = record("Address", {"street": schema.String(), "city": schema.String()})
    both = record("Order", {"billed": first(), "sent": second()})
    with pytest.raises(ValueTypeError, match="two classes are Address"):
        schema.AvroSchema(both)


class _Content:
    def __init__(self, key: bytes | None, data: bytes, *, null: bool) -> None:
        self._key, self._data, self._null = key, data, null

    def data(self) -> bytes:
        return self._data

    def has_key(self) -> bool:
        return self._key is not None

    def key_bytes(self) -> bytes:
        return self._key or b""

    def has_null_value(self) -> bool:
        return self._null

    def topic_name(self) -> str:
        return "t"

    def message_id(self) -> object:
        return "id"

    def schema_version(self) -> bytes | None:
        return None


@pytest.mark.parametrize("automatic", [False, True])
def test_a_pair_without_a_value_keeps_its_key(automatic: bool) -> None:
    """`KeyValue("k", None)` was sent, and None came."""
    of = schema.KeyValueSchema(schema.StringSchema(), schema.Int32Schema(), schema.KeyValueEncodingType.SEPARATED)
    reader: schema.Schema[Any] = schema.AutoConsumeSchema() if automatic else of
    read = WrittenSchema(reader.content_decoder(of.schema_info().definition))
    assert read.value_of(_Content(b"k", b"", null=True)) == schema.KeyValue("k", None)
    assert read.value_of(_Content(b"k", b"\0\0\0\7", null=False)) == schema.KeyValue("k", 7)
    assert read.value_of(_Content(None, b"", null=True)) is None
