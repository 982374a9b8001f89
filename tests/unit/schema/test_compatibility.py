"""Which definition may follow which, by strategy and by type (SEMANTICS 10.4-10.7)."""

from __future__ import annotations

import json

import pytest

from magnetar.model.errors import IncompatibleSchemaError
from magnetar.model.schemas import SchemaDefinition, SchemaType, SchemaVersion
from magnetar.schema.compatibility import require_follows_all, require_follows_latest, same
from magnetar.schema.key_value import join
from magnetar.schema.strategies import Strategy, of_consumers

READS = "org.apache.avro.SchemaValidationException: Unable to read schema: "


def avro(*fields: tuple[str, str] | tuple[str, str, object], kind: SchemaType = SchemaType.AVRO) -> SchemaDefinition:
    shown = [{"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields]
    return SchemaDefinition(kind, json.dumps({"type": "record", "name": "R", "fields": shown}).encode())


def versions(*definitions: SchemaDefinition) -> list[SchemaVersion]:
    return [SchemaVersion(number, definition, 0) for number, definition in enumerate(definitions)]


A = avro(("a", "int"))
MORE = avro(("a", "int"), ("b", "int"))
MORE_DEFAULT = avro(("a", "int"), ("b", "int", 0))


def refusal(old: SchemaDefinition, new: SchemaDefinition, strategy: Strategy) -> str:
    with pytest.raises(IncompatibleSchemaError) as refused:
        require_follows_latest(versions(old)[0], new, strategy)
    return str(refused.value)


def follows(old: list[SchemaVersion], new: SchemaDefinition, strategy: Strategy) -> bool:
    try:
        if strategy.transitive:
            require_follows_all(old, new, strategy)
        else:
            require_follows_latest(old[-1], new, strategy)
    except IncompatibleSchemaError:
        return False
    return True


@pytest.mark.parametrize(
    ("strategy", "adds", "adds_default", "removes"),
    [
        # a field without default is added; one with; one without is removed
        (Strategy.UNDEFINED, False, False, False),
        (Strategy.ALWAYS_INCOMPATIBLE, False, False, False),
        (Strategy.ALWAYS_COMPATIBLE, True, True, True),
        (Strategy.BACKWARD, False, True, True),
        (Strategy.BACKWARD_TRANSITIVE, False, True, True),
        (Strategy.FORWARD, True, True, False),
        (Strategy.FORWARD_TRANSITIVE, True, True, False),
        (Strategy.FULL, False, True, False),
        (Strategy.FULL_TRANSITIVE, False, True, False),
    ],
)
@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_strategies(kind: SchemaType, strategy: Strategy, adds: bool, adds_default: bool, removes: bool) -> None:
    def of(definition: SchemaDefinition) -> SchemaDefinition:
        return SchemaDefinition(kind, definition.data)

    assert follows(versions(of(A)), of(MORE), strategy) is adds
    assert follows(versions(of(A)), of(MORE_DEFAULT), strategy) is adds_default
    assert follows(versions(of(MORE)), of(A), strategy) is removes


def test_transitive_strategies_look_at_every_version() -> None:
    """b comes, loses its default, ..."""
    past = versions(A, MORE_DEFAULT)
    assert follows(past, MORE, Strategy.BACKWARD)
    assert not follows(past, MORE, Strategy.BACKWARD_TRANSITIVE)
    removed = versions(MORE, MORE_DEFAULT)
    assert follows(removed, A, Strategy.FORWARD)
    assert not follows(removed, A, Strategy.FORWARD_TRANSITIVE)


def test_the_refusal_names_version_field_and_rule() -> None:
    text = refusal(A, MORE, Strategy.FULL)
    assert text.startswith(f"Error during schema compatibility check with strategy FULL: {READS}")
    assert "the new schema cannot read version 0: field b: was not written and the reader has no default" in text
    assert "(rule: a field that was not written needs a default)" in text
    text = refusal(MORE, A, Strategy.FORWARD)
    assert "version 0 cannot read the new schema: field b:" in text


@pytest.mark.parametrize("strategy", [each for each in Strategy if each is not Strategy.ALWAYS_COMPATIBLE])
def test_another_type_never_follows(strategy: Strategy) -> None:
    """10.5"""
    for new in (SchemaDefinition(SchemaType.STRING), SchemaDefinition(SchemaType.JSON, A.data)):
        text = f"Incompatible schema: exists schema type AVRO, new schema type {new.type.name}"
        assert refusal(A, new, strategy) == text
        with pytest.raises(IncompatibleSchemaError, match=text):
            require_follows_all(versions(A), new, strategy)


def test_the_same_bytes_follow_unless_all_versions_are_asked() -> None:
    """As observed: ALWAYS_INCOMPATIBLE takes them from a producer and refuses a consumer."""
    require_follows_latest(versions(A)[0], A, Strategy.ALWAYS_INCOMPATIBLE)
    with pytest.raises(IncompatibleSchemaError, match="with strategy ALWAYS_INCOMPATIBLE"):
        require_follows_all(versions(A), A, Strategy.ALWAYS_INCOMPATIBLE)


def test_what_consumers_are_checked_by() -> None:
    """10.7"""
    latest = {Strategy.BACKWARD, Strategy.FORWARD, Strategy.FORWARD_TRANSITIVE, Strategy.FULL}
    for strategy in Strategy:
        expected = (Strategy.BACKWARD, False) if strategy in latest else (strategy, True)
        assert of_consumers(strategy) == expected


def test_protobuf_by_avro_follows_anything() -> None:
    """Pulsar has no check for this type unless nothing may follow at all."""
    old, new = avro(("a", "int"), kind=SchemaType.PROTOBUF), avro(("b", "int"), kind=SchemaType.PROTOBUF)
    assert follows(versions(old), new, Strategy.FULL)
    assert refusal(old, new, Strategy.ALWAYS_INCOMPATIBLE) == "Schema compatibility strategy is ALWAYS_INCOMPATIBLE"


def old_json(name: str, properties: str = "{}") -> SchemaDefinition:
    text = f'{{"type":"object","id":"{name}","properties":{properties}}}'
    return SchemaDefinition(SchemaType.JSON, text.encode())


def test_json_in_its_old_form() -> None:
    """10.14"""
    new_form = SchemaDefinition(SchemaType.JSON, A.data)
    changed = old_json("urn:x", '{"a":{"type":"string"}}')
    assert follows(versions(old_json("urn:x")), changed, Strategy.FULL)
    assert "must keep its id" in refusal(old_json("urn:x"), old_json("urn:y"), Strategy.FULL)
    assert follows(versions(old_json("urn:x")), new_form, Strategy.FULL)
    assert follows(versions(new_form), old_json("urn:x"), Strategy.FULL_TRANSITIVE)
    assert not follows(versions(new_form), old_json("urn:x"), Strategy.ALWAYS_INCOMPATIBLE)


def pair(value: SchemaDefinition, key_type: str = "STRING") -> SchemaDefinition:
    properties = {"key.schema.type": key_type, "value.schema.type": value.type.name}
    return SchemaDefinition(SchemaType.KEY_VALUE, join(b"", value.data), properties)


def test_pairs_are_compared_part_by_part() -> None:
    """10.6"""
    assert follows(versions(pair(A)), pair(MORE_DEFAULT), Strategy.FULL)
    text = refusal(pair(A), pair(MORE), Strategy.FULL)
    assert "the new schema cannot read the value of version 0: field b" in text
    text = refusal(pair(A), pair(MORE, "INT32"), Strategy.FULL)
    assert text == "Incompatible schema: exists key schema type STRING, new key schema type INT32"


def test_which_are_the_same() -> None:
    """10.4: as Avro where there is one, else byte by byte, and always of one type."""
    spaced = SchemaDefinition(SchemaType.AVRO, json.dumps(json.loads(A.data), indent=2).encode())
    found = same(versions(MORE, A), spaced)
    assert found is not None
    assert found.version == 1
    assert same(versions(A), SchemaDefinition(SchemaType.JSON, A.data)) is None
    assert same(versions(A), MORE) is None
    string = SchemaDefinition(SchemaType.STRING)
    assert same(versions(string), string) is not None
    assert same(versions(string), SchemaDefinition(SchemaType.STRING, b"null")) is None
    broken = SchemaDefinition(SchemaType.AVRO, b"{")
    assert same(versions(broken, A), A) is not None
    assert same(versions(A), broken) is None
    assert same(versions(pair(A)), SchemaDefinition(SchemaType.KEY_VALUE, pair(A).data)) is not None
