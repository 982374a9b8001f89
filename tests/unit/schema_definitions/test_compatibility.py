"""Which definition may follow which, by strategy and by type (rules 10.4 to 10.7)."""

from __future__ import annotations

import json

import pytest

from magnetar.model.errors import IncompatibleSchemaError
from magnetar.model.schemas import SchemaDefinition, SchemaType, SchemaVersion
from magnetar.schema_definitions.compatibility import require_follows_all, require_follows_latest, same
from magnetar.schema_definitions.key_value import join
from magnetar.schema_definitions.strategies import CompatibilityStrategy, of_consumers

READS = "org.apache.avro.SchemaValidationException: Unable to read schema: "


def avro(*fields: tuple[str, str] | tuple[str, str, object], kind: SchemaType = SchemaType.AVRO) -> SchemaDefinition:
    shown = [{"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields]
    return SchemaDefinition(kind, json.dumps({"type": "record", "name": "R", "fields": shown}).encode())


def versions(*definitions: SchemaDefinition) -> list[SchemaVersion]:
    return [SchemaVersion(number, definition, 0) for number, definition in enumerate(definitions)]


A = avro(("a", "int"))
MORE = avro(("a", "int"), ("b", "int"))
MORE_DEFAULT = avro(("a", "int"), ("b", "int", 0))


def refusal(old: SchemaDefinition, new: SchemaDefinition, strategy: CompatibilityStrategy) -> str:
    with pytest.raises(IncompatibleSchemaError) as refused:
        require_follows_latest(versions(old)[0], new, strategy)
    return str(refused.value)


def follows(old: list[SchemaVersion], new: SchemaDefinition, strategy: CompatibilityStrategy) -> bool:
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
        (CompatibilityStrategy.UNDEFINED, False, False, False),
        (CompatibilityStrategy.ALWAYS_INCOMPATIBLE, False, False, False),
        (CompatibilityStrategy.ALWAYS_COMPATIBLE, True, True, True),
        (CompatibilityStrategy.BACKWARD, False, True, True),
        (CompatibilityStrategy.BACKWARD_TRANSITIVE, False, True, True),
        (CompatibilityStrategy.FORWARD, True, True, False),
        (CompatibilityStrategy.FORWARD_TRANSITIVE, True, True, False),
        (CompatibilityStrategy.FULL, False, True, False),
        (CompatibilityStrategy.FULL_TRANSITIVE, False, True, False),
    ],
)
@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_what_each_strategy_lets_follow(
    kind: SchemaType, strategy: CompatibilityStrategy, adds: bool, adds_default: bool, removes: bool
) -> None:
    def of(definition: SchemaDefinition) -> SchemaDefinition:
        return SchemaDefinition(kind, definition.data)

    assert follows(versions(of(A)), of(MORE), strategy) is adds
    assert follows(versions(of(A)), of(MORE_DEFAULT), strategy) is adds_default
    assert follows(versions(of(MORE)), of(A), strategy) is removes


def test_transitive_strategies_look_at_every_version() -> None:
    """A field that came with a default and lost it later is only refused against all versions."""
    past = versions(A, MORE_DEFAULT)
    assert follows(past, MORE, CompatibilityStrategy.BACKWARD)
    assert not follows(past, MORE, CompatibilityStrategy.BACKWARD_TRANSITIVE)
    removed = versions(MORE, MORE_DEFAULT)
    assert follows(removed, A, CompatibilityStrategy.FORWARD)
    assert not follows(removed, A, CompatibilityStrategy.FORWARD_TRANSITIVE)


def test_the_refusal_names_version_field_and_rule() -> None:
    text = refusal(A, MORE, CompatibilityStrategy.FULL)
    assert text.startswith(f"Error during schema compatibility check with strategy FULL: {READS}")
    assert "the new schema cannot read version 0: field b: was not written and the reader has no default" in text
    assert "(rule: a field that was not written needs a default)" in text
    text = refusal(MORE, A, CompatibilityStrategy.FORWARD)
    assert "version 0 cannot read the new schema: field b:" in text


@pytest.mark.parametrize(
    "strategy", [each for each in CompatibilityStrategy if each is not CompatibilityStrategy.ALWAYS_COMPATIBLE]
)
def test_another_type_never_follows(strategy: CompatibilityStrategy) -> None:
    """A schema of another type is never compatible (rule 10.5)."""
    for new in (SchemaDefinition(SchemaType.STRING), SchemaDefinition(SchemaType.JSON, A.data)):
        text = f"Incompatible schema: exists schema type AVRO, new schema type {new.type.name}"
        assert refusal(A, new, strategy) == text
        with pytest.raises(IncompatibleSchemaError, match=text):
            require_follows_all(versions(A), new, strategy)


def test_the_same_bytes_follow_unless_all_versions_are_asked() -> None:
    """ALWAYS_INCOMPATIBLE, as observed, takes them from a producer and refuses a consumer."""
    require_follows_latest(versions(A)[0], A, CompatibilityStrategy.ALWAYS_INCOMPATIBLE)
    with pytest.raises(IncompatibleSchemaError, match="with strategy ALWAYS_INCOMPATIBLE"):
        require_follows_all(versions(A), A, CompatibilityStrategy.ALWAYS_INCOMPATIBLE)


def test_what_consumers_are_checked_by() -> None:
    """A consumer's schema is checked by the strategy's own rule for consumers (rule 10.7)."""
    latest = {
        CompatibilityStrategy.BACKWARD,
        CompatibilityStrategy.FORWARD,
        CompatibilityStrategy.FORWARD_TRANSITIVE,
        CompatibilityStrategy.FULL,
    }
    for strategy in CompatibilityStrategy:
        expected = (CompatibilityStrategy.BACKWARD, False) if strategy in latest else (strategy, True)
        assert of_consumers(strategy) == expected


def test_protobuf_by_avro_follows_anything() -> None:
    """Pulsar has no check for this type unless nothing may follow at all."""
    old, new = avro(("a", "int"), kind=SchemaType.PROTOBUF), avro(("b", "int"), kind=SchemaType.PROTOBUF)
    assert follows(versions(old), new, CompatibilityStrategy.FULL)
    assert (
        refusal(old, new, CompatibilityStrategy.ALWAYS_INCOMPATIBLE)
        == "Schema compatibility strategy is ALWAYS_INCOMPATIBLE"
    )


def old_json(name: str, properties: str = "{}") -> SchemaDefinition:
    text = f'{{"type":"object","id":"{name}","properties":{properties}}}'
    return SchemaDefinition(SchemaType.JSON, text.encode())


def test_json_in_its_old_form() -> None:
    """JSON schemas in the form before protocol version 13 are compared, too (rule 10.14)."""
    new_form = SchemaDefinition(SchemaType.JSON, A.data)
    changed = old_json("urn:x", '{"a":{"type":"string"}}')
    assert follows(versions(old_json("urn:x")), changed, CompatibilityStrategy.FULL)
    assert "must keep its id" in refusal(old_json("urn:x"), old_json("urn:y"), CompatibilityStrategy.FULL)
    assert follows(versions(old_json("urn:x")), new_form, CompatibilityStrategy.FULL)
    assert follows(versions(new_form), old_json("urn:x"), CompatibilityStrategy.FULL_TRANSITIVE)
    assert not follows(versions(new_form), old_json("urn:x"), CompatibilityStrategy.ALWAYS_INCOMPATIBLE)


def pair(value: SchemaDefinition, key_type: str = "STRING") -> SchemaDefinition:
    properties = {"key.schema.type": key_type, "value.schema.type": value.type.name}
    return SchemaDefinition(SchemaType.KEY_VALUE, join(b"", value.data), properties)


def test_pairs_are_compared_part_by_part() -> None:
    """KEY_VALUE schemas are compared part by part (rule 10.6)."""
    assert follows(versions(pair(A)), pair(MORE_DEFAULT), CompatibilityStrategy.FULL)
    text = refusal(pair(A), pair(MORE), CompatibilityStrategy.FULL)
    assert "the new schema cannot read the value of version 0: field b" in text
    text = refusal(pair(A), pair(MORE, "INT32"), CompatibilityStrategy.FULL)
    assert text == "Incompatible schema: exists key schema type STRING, new key schema type INT32"


def test_which_definitions_are_the_same() -> None:
    """Schemas are the same as parsed Avro where there is any, otherwise byte by byte, and always of one type (rule
    10.4)."""
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
