"""/admin/v2/schemas (rules 10.11, 10.16), and what removes schemas."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClientError
from tests.admin.conftest import World
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once
from tests.support.real_broker import TOPIC, RealBroker, real_broker

URL = "/admin/v2/schemas/ref/main/t"
T = "persistent://public/default/t"


def avro(*fields: str) -> str:
    given = [{"name": name, "type": "int", "default": 0} for name in fields]
    return json.dumps({"type": "record", "name": "R", "fields": given})


def body(schema: str = "", kind: str = "AVRO", **properties: object) -> dict[str, Any]:
    return {"type": kind, "schema": schema, "properties": properties}


def post(rest: RestClient, schema: str, path: str = "schema", kind: str = "AVRO") -> Any:
    return rest.post(f"{URL}/{path}", json=body(schema, kind)).json()


def test_versions_of_a_schema_are_added_and_shown(rest: RestClient) -> None:
    assert rest.get(f"{URL}/schema").status_code == 404
    assert rest.get(f"{URL}/schema").json() == {"reason": "Schema not found"}
    assert rest.get(f"{URL}/schemas").json() == {"getSchemaResponses": []}
    assert rest.get(f"{URL}/metadata").content == b""
    assert post(rest, avro("a")) == {"version": {"version": 0}}
    assert post(rest, json.dumps(json.loads(avro("a")), indent=1)) == {"version": {"version": 0}}
    assert post(rest, avro("a", "b")) == {"version": {"version": 1}}
    shown = rest.get(f"{URL}/schema").json()
    assert shown.pop("timestamp") > 1_700_000_000_000
    assert shown == {"version": 1, "type": "AVRO", "data": avro("a", "b"), "properties": {}}
    assert rest.get(f"{URL}/schema/0").json()["data"] == avro("a")
    assert rest.get(f"{URL}/schema/2").status_code == 404
    assert rest.get(f"{URL}/schema/x").status_code == 400
    assert [each["version"] for each in rest.get(f"{URL}/schemas").json()["getSchemaResponses"]] == [0, 1]
    assert rest.get(f"{URL}-partition-3/schema").json()["version"] == 1
    assert post(rest, avro("a"), "version") == {"version": 0}
    assert post(rest, avro("z"), "version") == {"version": -1}


def test_refusals_name_field_and_rule(rest: RestClient) -> None:
    post(rest, avro("a"))
    other = avro("a").replace("int", "string")
    for path in ("schema", "compatibility"):
        refused = rest.post(f"{URL}/{path}", json=body(other))
        assert refused.status_code == 409
        reason = refused.json()["reason"]
        assert reason.startswith("Error during schema compatibility check with strategy FULL: org.apache.avro.Schema")
        assert "field a: int was written, the reader has string (rule: a type must stay or be promoted" in reason
    refused = rest.post(f"{URL}/schema", json=body("{"))
    assert refused.status_code == 422
    assert refused.json()["reason"].startswith("Invalid schema definition data for AVRO schema caused by not JSON")
    fits = rest.post(f"{URL}/compatibility", json=body(avro("a", "b")))
    assert (fits.status_code, fits.json()) == (202, {"schemaCompatibilityStrategy": "FULL", "compatibility": True})


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (None, 400),
        ([1], 400),
        ({"type": "AVRO"}, 400),
        ({"type": "AVRO", "schema": 5}, 400),
        ({"schema": "x"}, 422),
        ({"type": "NOPE", "schema": ""}, 422),
        ({"type": ["AVRO"], "schema": ""}, 422),
        ({"type": "AUTO_CONSUME", "schema": ""}, 422),
        ({"type": "STRING", "schema": "", "properties": [1]}, 400),
        ({"type": "STRING", "schema": "", "properties": {"a": {}}}, 400),
        ({"type": "STRING", "schema": "", "properties": {"a": "\ud800"}}, 400),
        ({"type": "AVRO", "schema": "\ud800"}, 400),
        ({"type": "KEY_VALUE", "schema": "{"}, 422),
        ({"type": "KEY_VALUE", "schema": "{}"}, 422),
        ({"type": "AVRO", "schema": "[" * 50_000}, 422),
        ({"type": "STRING", "schema": "", "properties": None, "more": 1}, 200),
        ({"type": "STRING", "schema": "", "properties": {"a": 1, "b": True, "c": None}}, 200),
    ],
)
def test_schema_bodies_are_checked(rest: RestClient, given: Any, status: int) -> None:
    # httpx itself would refuse a body that is not UTF-8
    text = json.dumps(given)
    answered = rest.post(f"{URL}/schema", content=text, headers={"content-type": "application/json"})
    assert answered.status_code == status, answered.text
    if status == 200 and given["properties"]:
        assert rest.get(f"{URL}/schema").json()["properties"] == {"a": "1", "b": "true"}
    elif status != 200:
        assert answered.json()["reason"]
        assert rest.get(f"{URL}/schema").status_code == 404


def test_a_deletion_is_a_version(rest: RestClient) -> None:
    """Deleting a schema appends a version; with force all versions are removed (rule 10.11)."""
    post(rest, avro("a"))
    assert rest.delete(f"{URL}/schema").json() == {"version": 1}
    assert rest.get(f"{URL}/schema").status_code == 404
    assert rest.get(f"{URL}/schema/0").status_code == 404
    assert rest.get(f"{URL}/metadata").json()["info"]["version"] == 1
    assert post(rest, "", kind="STRING") == {"version": {"version": 2}}
    assert rest.delete(f"{URL}/schema?force=true").json() == {"version": -1}
    assert rest.get(f"{URL}/metadata").content == b""
    assert post(rest, avro("b")) == {"version": {"version": 0}}


def test_pairs_are_shown_as_they_were_given(rest: RestClient) -> None:
    text = '{"key":"","value":{"type":"record","name":"R","fields":[]}}'
    properties = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}
    rest.post(f"{URL}/schema", json={"type": "KEY_VALUE", "schema": text, "properties": properties})
    shown = rest.get(f"{URL}/schema").json()
    assert (shown["type"], shown["data"], shown["properties"]) == ("KEY_VALUE", text, properties)


def test_schemas_of_an_unknown_namespace_are_404(rest: RestClient) -> None:
    for place, status, reason in (
        ("ref/nope", 404, "Namespace does not exist"),
        ("nope/nope", 404, "Namespace does not exist"),
        ("ref/a%20b", 412, "Topic name is not valid"),
    ):
        refused = rest.post(f"/admin/v2/schemas/{place}/t/schema", json=body("", "STRING"))
        assert (refused.status_code, refused.json()["reason"]) == (status, reason)
    assert rest.delete("/admin/v2/schemas/nope/nope/t/schema").json()["reason"] == "Tenant does not exist"
    assert rest.get("/admin/v2/schemas/ref/nope/t/schema").status_code == 404


def test_strategy_of_the_namespace(own_world: World) -> None:
    """The compatibility strategy of the namespace applies; an unknown one in its policies is ignored (rule 10.6)."""
    rest, resources = own_world.rest, own_world.resources
    for name, given, counts in (("a", "BACKWARD", "BACKWARD"), ("b", "UNDEFINED", "FULL"), ("c", "NOPE", "FULL")):
        at_once(resources.namespaces.create("ref", name, {"schema_compatibility_strategy": given}))
        path = f"/admin/v2/schemas/ref/{name}/t/compatibility"
        assert rest.post(path, json=body("", "STRING")).json()["schemaCompatibilityStrategy"] == counts


def test_deleting_a_namespace_deletes_its_schemas(own_world: World) -> None:
    rest = own_world.rest
    post(rest, avro("a"))
    assert rest.delete("/admin/v2/namespaces/ref/main").status_code == 204
    assert rest.put("/admin/v2/namespaces/ref/main").status_code == 204
    assert rest.get(f"{URL}/schema").status_code == 404
    post(rest, avro("a"))
    own_world.broker.topics = {TopicName.parse("ref/main/other"): {}}
    assert rest.delete("/admin/v2/namespaces/ref/main").status_code == 409
    assert rest.get(f"{URL}/schema").status_code == 200


def wire_schema(text: str) -> c.Schema:
    return c.Schema("s", text.encode(), c.SchemaType.AVRO)


@pytest.mark.parametrize("partitions", [0, 2])
def test_deleting_a_topic_deletes_its_schema(tmp_path: Path, partitions: int) -> None:
    """Deleting a topic deletes its schema, deleting a partition does not, also after a restart (rules 4.7.2, 10.2)."""
    url = "/admin/v2/schemas/public/default/t/schema"
    name = f"{T}-partition-1" if partitions else T

    async def before(broker: RealBroker) -> None:
        if partitions:
            assert (await broker.ask("PUT", f"{TOPIC}/t/partitions", partitions))[0] == 204
        client = await broker.client()
        producer = await client.producer(name, schema=wire_schema(avro("a")))
        assert producer.opened.schema_version == bytes(8)
        assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        assert (await broker.ask("GET", url))[1]["version"] == 0

    async def after(broker: RealBroker) -> None:
        client = await broker.client()
        with pytest.raises(RawClientError) as refused:
            await client.producer(name, schema=wire_schema(avro("a").replace("int", "string")))
        assert refused.value.code is ServerError.IncompatibleSchema
        if partitions:
            assert (await broker.ask("DELETE", f"{TOPIC}/t-partition-1?force=true"))[0] == 204
            assert (await broker.ask("GET", url))[0] == 200
        path = f"{TOPIC}/t/partitions" if partitions else f"{TOPIC}/t"
        assert (await broker.ask("DELETE", f"{path}?force=true"))[0] == 204
        assert (await broker.ask("GET", url))[0] == 404
        again = await (await broker.client()).producer(T, schema=wire_schema(avro("a").replace("int", "string")))
        assert again.opened.schema_version == bytes(8)

    async def scenarios() -> None:
        for scenario in (before, after):
            async with real_broker(tmp_path) as broker:
                await scenario(broker)

    asyncio.run(scenarios())
