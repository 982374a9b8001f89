"""Public callables have the parameters of the official client: the same names, at the same places, as its prefix."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pulsar.schema as official_schema  # type: ignore[import-untyped]
import pytest

import magnetar
import magnetar.schema

CLASSES = [
    "Client", "Producer", "Consumer", "Reader", "TableView", "Message", "MessageId", "ServiceInfo",
    "AutoClusterFailover", "Authentication", "AuthenticationTLS", "AuthenticationToken", "AuthenticationAthenz",
    "AuthenticationOauth2", "AuthenticationBasic", "ConsumerDeadLetterPolicy", "ConsumerBatchReceivePolicy",
    "ConsumerKeySharedPolicy", "CryptoKeyReader", "EncryptionContext", "ConsoleLogger", "FileLogger",
]  # fmt: skip
SCHEMAS = [
    "Record", "Array", "Map", "Schema", "BytesSchema", "StringSchema", "JsonSchema", "AvroSchema",
    "ProtobufNativeSchema", "Null", "Boolean", "Integer", "Long", "Float", "Double", "Bytes", "String", "CustomEnum",
]  # fmt: skip
MADE_BY_THE_CLIENT = "made by the client, and not by programs"
WITHIN = "a step inside the official client"
DIFFERENT = {
    "Producer.__init__": MADE_BY_THE_CLIENT,
    "Consumer.__init__": MADE_BY_THE_CLIENT,
    "Reader.__init__": MADE_BY_THE_CLIENT,
    "TableView.__init__": MADE_BY_THE_CLIENT,
    "Message.__init__": MADE_BY_THE_CLIENT,
    "EncryptionContext.__init__": MADE_BY_THE_CLIENT,
    "ServiceInfo.wrap": "makes one of an object of the C++ client",
    "Record.__init__": "the fields themselves are taken as keyword arguments, and other positional ones the same",
    "Array.__init__": "the first parameter has another name",
    "Map.__init__": "the first parameter has another name",
    "Schema.__init__": "schemas of one's own implement its abstract methods",
    "BytesSchema.encode": "the parameter is named as in all other schemas",
    **{f"{one}.{step}": WITHIN for one in SCHEMAS for step in ("attach_client", "decode_message")},
    "AvroSchema.encode_dict": WITHIN,
}
"""What remains, each with its reason."""
DEFAULTS = {
    "Client.__init__.stats_interval_in_seconds": "statistics are logged by who asks for it",
    "Client.__init__.tls_validate_hostname": "the secure choice; False is given by who needs it",
    "Producer.send.disable_replication": "None is False",
    "Producer.send_async.disable_replication": "None is False",
}
"""Parameters with another default, each with its reason."""


def callables() -> list[Any]:
    homes = [(pulsar, magnetar, CLASSES), (official_schema, magnetar.schema, SCHEMAS)]
    return [
        pytest.param(vars(getattr(theirs, kind)), getattr(ours, kind), name, id=f"{kind}.{name}")
        for theirs, ours, kinds in homes
        for kind in kinds
        for name, one in vars(getattr(theirs, kind)).items()
        if (name == "__init__" or not name.startswith("_")) and isinstance(one, Callable | staticmethod | classmethod)  # type: ignore[arg-type]
    ]


def signature(kind: type, name: str) -> list[inspect.Parameter]:
    method = getattr(kind, name) if getattr(kind, name) is not object.__init__ else _nothing
    return list(inspect.signature(method).parameters.values())


def _nothing(self: object) -> None:
    """What ``object.__init__`` is: it takes no more than the object."""


@pytest.mark.parametrize(("theirs", "ours", "name"), callables())
def test_parameters(theirs: Any, ours: type, name: str, request: pytest.FixtureRequest) -> None:
    which = request.node.callspec.id
    official = getattr(theirs[name], "__func__", theirs[name])
    expected = list(inspect.signature(official).parameters.values())
    if isinstance(theirs[name], classmethod):
        expected = expected[1:]
    found = signature(ours, name) if hasattr(ours, name) else []
    same = len(found) >= len(expected) and all(
        (one.name, one.kind) == (other.name, other.kind) for one, other in zip(expected, found, strict=False)
    )
    assert same != (which in DIFFERENT), f"official {expected}, here {found}"
    if not same:
        return
    for one, other in zip(expected, found, strict=False):
        usual = (one.default, other.default)
        if f"{which}.{one.name}" in DEFAULTS:
            assert usual[0] != usual[1]
        elif isinstance(getattr(one.default, "value", None), int):
            assert getattr(type(other.default), one.default.name) is other.default  # each has its own enumerations
        elif one.name != "schema" and one.default is not one.empty:  # bytes are the schema None
            assert usual[0] == usual[1], one.name
