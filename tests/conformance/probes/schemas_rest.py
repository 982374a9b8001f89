"""The schema registry through REST."""

from __future__ import annotations

import html
import json
import re

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.probes.schemas import A_B, A_B_DEFAULT, STRATEGIES, A, own_namespace, record, without_reasons

TITLE = re.compile(r"<title>Error \d+ (.*?)</title>", re.DOTALL)
UNEXPECTED = re.compile(r"\s*--- An unexpected error .*", re.DOTALL)


def told(broker: Broker, method: str, path: str, body: Json = None) -> Json:
    """Status and body; a refusal's text comes out of Jetty's page, and a stack trace says only that it is one."""
    said = broker.rest(method, path, body).told()
    reason = said.get("reason")
    if isinstance(reason, str):
        found = TITLE.search(reason)
        text = html.unescape(found[1]) if found else UNEXPECTED.sub("<unexpected error>", reason)
        # Jetty's page has the beginning only
        said["reason"] = re.sub(r"( schema| failed)<reason>.*", r"\1", without_reasons(text))
    return without_times(said)


def without_times(said: Json) -> Json:
    if isinstance(said, dict):
        return {key: "<time>" if key == "timestamp" else without_times(value) for key, value in said.items()}
    return [without_times(value) for value in said] if isinstance(said, list) else said


def body(kind: str, data: str = "", **properties: str) -> Json:
    return {"type": kind, "schema": data, "properties": properties}


@probe("10.16")
def schema_rest(broker: Broker) -> Json:
    """Every route, before there is a schema, with two versions, and after a deletion."""
    path = f"schemas/public/default/{broker.local()}"

    def reads() -> Json:
        metadata = told(broker, "GET", f"{path}/metadata")
        index = metadata.get("body", {}).get("index", [])
        return {
            "latest": told(broker, "GET", f"{path}/schema"),
            "0": told(broker, "GET", f"{path}/schema/0"),
            "9": told(broker, "GET", f"{path}/schema/9"),
            "all": told(broker, "GET", f"{path}/schemas"),
            "metadata": [metadata["status"], [each["version"] for each in index]],
            "version of A": told(broker, "POST", f"{path}/version", body("AVRO", A)),
            "version of another": told(broker, "POST", f"{path}/version", body("AVRO", record(("z", "int")))),
            "A compatible": told(broker, "POST", f"{path}/compatibility", body("AVRO", A)),
            "another compatible": told(broker, "POST", f"{path}/compatibility", body("AVRO", record(("z", "int")))),
        }

    said: dict[str, Json] = {"before": reads()}
    said["posts"] = {
        "first": told(broker, "POST", f"{path}/schema", body("AVRO", A, p="q")),
        "same": told(broker, "POST", f"{path}/schema", body("AVRO", json.dumps(json.loads(A), indent=1), p="r")),
        "incompatible": told(broker, "POST", f"{path}/schema", body("AVRO", A_B)),
        "second": told(broker, "POST", f"{path}/schema", body("AVRO", A_B_DEFAULT)),
        "other type": told(broker, "POST", f"{path}/schema", body("STRING")),
        "invalid": told(broker, "POST", f"{path}/schema", body("AVRO", "{")),
    }
    said["with two"] = reads()
    said["delete"] = told(broker, "DELETE", f"{path}/schema")
    said["deleted"] = reads()
    said["posted again"] = told(broker, "POST", f"{path}/schema", body("STRING"))
    said["with one"] = reads()
    return said


@probe("10.16")
def schema_rest_types(broker: Broker) -> Json:
    """POST of types that need no data, that only clients have, and of pairs."""
    path = f"schemas/public/default/{broker.local()}"
    said: dict[str, Json] = {}
    for kind in ("BYTES", "NONE", "BOOLEAN", "AUTO", "AUTO_CONSUME", "AUTO_PUBLISH", "PROTOBUF_NATIVE"):
        posted = told(broker, "POST", f"{path}-{kind}/schema", body(kind))
        said[kind] = [posted, told(broker, "GET", f"{path}-{kind}/schema")]
    pair = json.dumps({"key": "", "value": json.loads(A)})
    types = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}
    said["KEY_VALUE"] = [
        told(broker, "POST", f"{path}-pair/schema", {"type": "KEY_VALUE", "schema": pair, "properties": types}),
        told(broker, "GET", f"{path}-pair/schema"),
    ]
    return said


@probe("10.16")
def schema_rest_nowhere(broker: Broker) -> Json:
    """Tenants and namespaces that do not exist or are no names."""
    said: dict[str, Json] = {}
    for name, place in (("namespace", "public/nope"), ("tenant", "nope/nope"), ("name", "public/a%20b")):
        path = f"schemas/{place}/t"
        said[name] = {
            "get": told(broker, "GET", f"{path}/schema"),
            "all": told(broker, "GET", f"{path}/schemas"),
            "post": told(broker, "POST", f"{path}/schema", body("STRING")),
            "compatibility": told(broker, "POST", f"{path}/compatibility", body("STRING")),
            "version": told(broker, "POST", f"{path}/version", body("STRING")),
        }
    said["delete in no tenant"] = told(broker, "DELETE", "schemas/nope/nope/t/schema")
    return said


@probe("10.6", "10.16")
def schema_rest_strategies(broker: Broker) -> Json:
    """Which strategy compatibility tests go by, and what they say of the very same schema."""
    said: dict[str, Json] = {}
    for strategy in ("UNDEFINED", *STRATEGIES):
        namespace = own_namespace(broker, strategy, schema_compatibility_strategy=strategy)
        path = f"schemas/{namespace}/t"
        said[strategy] = [
            told(broker, "POST", f"{path}/schema", body("AVRO", A)),
            told(broker, "POST", f"{path}/compatibility", body("AVRO", A)),
        ]
    return said
