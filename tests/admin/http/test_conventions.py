"""What holds for every route (rules of 11.1), routes that are not built, health and metrics, and the server itself."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import urllib.request

import pytest
from starlette.types import Message

from magnetar.admin.application import create_app
from magnetar.admin.http.server import AdminServer
from magnetar.admin.routes.not_implemented import known_routes
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import ServiceNotReadyError
from magnetar.model.ids import EARLIEST
from magnetar.model.names import TopicName
from magnetar.runtime.connections.acceptor import ConnectionLimit, Entrance
from magnetar.runtime.connections.descriptors import Descriptors, limit_now
from tests.admin.conftest import World, world
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient


def test_malformed_json_is_400(shared_world: World) -> None:
    refused = shared_world.rest.put(
        "/admin/v2/tenants/e1", content=b"{bad", headers={"content-type": "application/json"}
    )
    assert refused.status_code == 400
    assert refused.json()["reason"].startswith("the body is not JSON")


def test_a_wrong_content_type_is_415(shared_world: World) -> None:
    assert (
        shared_world.rest.put("/admin/v2/tenants/e9", content=b"x", headers={"content-type": "text/plain"}).status_code
        == 415
    )


@pytest.mark.parametrize(
    ("body", "status"), [(b"3", 204), (b" 4\n", 204), (b"true", 400), (b'"3"', 415), (b"a=b", 415), (b"1e3", 415)]
)
def test_plain_text_is_a_bare_number(own_world: World, body: bytes, status: int) -> None:
    """The official Node client's tests send it; Apache Pulsar's server reads a number from plain text."""
    path = "/admin/v2/persistent/public/default/plain-number/partitions"
    answered = own_world.rest.put(path, content=body, headers={"content-type": "text/plain"})
    assert answered.status_code == status, answered.text
    if status == 204:
        assert own_world.rest.get(path).json()["partitions"] == int(body)


def test_bodies_are_bounded(shared_world: World) -> None:
    refused = shared_world.rest.put(
        "/admin/v2/tenants/e9", content=b" " * (1 << 20) + b"{}", headers={"content-type": "text/json"}
    )
    assert refused.status_code == 413


def test_a_deeply_nested_body_is_refused(shared_world: World) -> None:
    headers = {"content-type": "application/json"}
    assert shared_world.rest.put("/admin/v2/tenants/e9", content=b"[" * 100_000, headers=headers).status_code == 400


def test_an_unknown_path_is_404(shared_world: World) -> None:
    assert shared_world.rest.get("/admin/v2/nope").status_code == 404
    assert shared_world.rest.get("/").status_code == 404


@pytest.mark.parametrize(
    "path", ["/admin/v2/tenants", "/admin/v2/namespaces/public", "/lookup/v2/topic/persistent/public/default/t"]
)
def test_a_slash_at_the_end_changes_nothing(shared_world: World, path: str) -> None:
    """A path with a slash at its end is answered like the path without it."""
    plain, with_slash = shared_world.rest.get(path), shared_world.rest.get(path + "/")
    assert (with_slash.status_code, with_slash.text) == (200, plain.text)
    assert shared_world.rest.get(path + "/?x=1").text == plain.text


def test_a_slash_that_ends_a_name_is_part_of_it(shared_world: World) -> None:
    assert shared_world.rest.get("/admin/v2/namespaces/public%2F").status_code != 200


def test_a_wrong_method_is_405(shared_world: World) -> None:
    refused = shared_world.rest.patch("/admin/v2/tenants/public")
    assert (refused.status_code, refused.headers["allow"]) == (405, "DELETE, GET, HEAD, POST, PUT")


@pytest.mark.parametrize(
    ("method", "path", "named"),
    [
        ("GET", "/ws/producer/persistent/ref/standalone/main/t", "/ws/producer/{domain}"),
        ("GET", "/ws/consumer/persistent/ref/standalone/main/t/a%2Fb", "{topic}/{subscription}"),
    ],
)
def test_routes_of_pulsar_that_are_not_built_are_501_with_the_reason(
    shared_world: World, method: str, path: str, named: str
) -> None:
    refused = shared_world.rest.request(method, path)
    reason = refused.json()["reason"]
    assert refused.status_code == 501
    assert reason.startswith(f"{method} /")
    assert named in reason
    assert " is not available in magnetar: paths of the v1 interface " in reason


def test_every_route_of_pulsars_is_built_or_501(broker: FakeBroker, resources: Resources) -> None:
    """No route of the reference table may answer 404 or 405 for want of a handler."""
    rest = RestClient(create_app(broker.ports(), resources, Settings()))
    built = 0
    for _, template, methods in known_routes():
        path = template.replace("{tenant}", "nope").replace("{topic-domain}", "persistent")
        for name in ("namespace", "topic", "cluster"):
            path = path.replace(f"{{{name}}}", "nope")
        path = path.replace("{", "").replace("}", "")
        for method in methods:
            answered = rest.request(method, path)
            if answered.status_code == 501:
                assert "is not available" in answered.json()["reason"]
            else:
                built += 1
                assert answered.status_code != 405 or "allow" not in answered.headers, (method, path)
                assert '"Not Found"' not in answered.text, (method, path)
    assert built >= 50


def test_no_built_route_is_unknown_to_pulsar(shared_world: World) -> None:
    """Every route is Pulsar's or listed as ours; a typing mistake would be hidden by the 501 of the right path."""
    described = shared_world.rest.get("/openapi.json").json()["paths"]
    assert len(described) > 20
    for path, operations in described.items():
        methods = set().union(*(methods for _, known, methods in known_routes() if shape(known) == shape(path)))
        for method, operation in operations.items():
            ours = operation.get("description", "").startswith("magnetar's own. ")
            # there Apache Pulsar takes the word for a cluster's name
            if (method, path) != ("get", "/admin/v2/brokers/backup"):
                assert ours != (method.upper() in methods), (method, path)


def shape(template: str) -> str:
    """The template without the names of its parameters: a word of ours in their place is no route of Pulsar's."""
    return re.sub(r"\{[^}]*\}", "{}", re.sub(r"\{(topic-)?domain\}", "persistent", template))


def test_a_bug_is_one_answer_and_one_log_entry(
    rest: RestClient, broker: FakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.sick = RuntimeError("boom")
    with caplog.at_level(logging.ERROR):
        failed = rest.get("/admin/v2/brokers/health")
    assert failed.status_code == 500
    assert failed.json()["reason"] == "\n --- An unexpected error occurred in the server ---\n\nMessage: boom"
    assert [record.getMessage() for record in caplog.records] == ["GET /admin/v2/brokers/health failed"]


def test_routes_of_the_broker(rest: RestClient, broker: FakeBroker) -> None:
    """The routes of the broker itself answer what there is to say of one broker (rule 11.2.4)."""
    assert rest.get("/admin/v2/brokers").json() == ["127.0.0.1:8080"]
    assert rest.get("/admin/v2/brokers/standalone").json() == ["127.0.0.1:8080"]
    assert rest.get("/admin/v2/brokers/health").text == "ok"
    assert rest.get("/admin/v2/brokers/ready").text == "ok"
    assert rest.get("/admin/v2/brokers/version").text == "4.0.8"
    assert rest.get("/admin/v2/brokers/leaderBroker").json() == {
        "serviceUrl": "http://127.0.0.1:8080",
        "brokerId": "127.0.0.1:8080",
    }
    runtime = rest.get("/admin/v2/brokers/configuration/runtime").json()
    assert (runtime["journalSyncData"], runtime["maxMessageSize"]) == ("true", "5242880")
    broker.sick = ServiceNotReadyError("starting")
    assert rest.get("/admin/v2/brokers/health").status_code == 503


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
def test_metrics_are_prometheus_text_with_pulsars_names(rest: RestClient, broker: FakeBroker, path: str) -> None:
    """/metrics is Prometheus text with the names of Apache Pulsar (rules 11.1.5, 14.11)."""
    broker.topics = {TopicName.parse('persistent://ref/main/"q"'): {}, TopicName.parse("public/default/t"): {}}
    answered = rest.get(path)
    assert answered.headers["content-type"].startswith("text/plain")
    lines = answered.text.splitlines()
    assert 'pulsar_broker_topics_count{cluster="standalone"} 2' in lines
    assert 'pulsar_topics_count{cluster="standalone",namespace="ref/main"} 1' in lines
    topic = 'topic="persistent://ref/main/\\"q\\""'
    assert f'pulsar_msg_backlog{{cluster="standalone",namespace="ref/main",{topic}}} 8' in lines
    assert lines.count("# TYPE pulsar_producers_count gauge") == 1
    own = f'cluster="standalone",namespace="ref/main",{topic}'
    assert f"pulsar_subscriptions_count{{{own}}} 1" in lines
    assert f'pulsar_out_messages_total{{{own},subscription="s"}} 60' in lines
    assert f"pulsar_average_msg_size{{{own}}} 12.5" in lines
    assert 'pulsar_ml_cache_used_size{cluster="standalone"} 16' in lines
    assert 'magnetar_tls_handshakes_total{cluster="standalone"} 5' in lines


def test_openapi_lists_what_is_built(shared_world: World) -> None:
    paths = shared_world.rest.get("/openapi.json").json()["paths"]
    assert "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions" in paths


def test_server_serves_and_releases_its_port(broker: FakeBroker, resources: Resources) -> None:
    app = create_app(broker.ports(), resources, Settings())

    def ask(port: int) -> object:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/admin/v2/clusters", timeout=10) as answered:
            return json.load(answered)

    async def serve() -> int:
        listening = socket.create_server(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        server = AdminServer(app, [Entrance("http", listening)], ConnectionLimit(0, 0, Descriptors(limit_now())))
        server.start()
        assert await asyncio.to_thread(ask, port) == ["standalone"]
        await server.close()
        return port

    port = asyncio.run(serve())
    with pytest.raises(OSError, match="refused"):
        ask(port)


def test_a_client_that_leaves_is_one_line_and_seldom(own_world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Twenty clients that leave in the middle of a body make a few log lines, without a trace and without an answer."""
    app = create_app(own_world.broker.ports(), own_world.resources, Settings())
    path = "/admin/v2/tenants/x"
    scope = {
        "type": "http", "method": "PUT", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [],
        "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
    }  # fmt: skip

    async def leave() -> None:
        parts: list[Message] = [
            {"type": "http.request", "body": b"{", "more_body": True},
            {"type": "http.disconnect"},
        ]

        async def receive() -> Message:
            return parts.pop(0)

        async def send(message: Message) -> None:
            raise AssertionError(message)

        await app(dict(scope), receive, send)

    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            asyncio.run(leave())
    assert 1 <= len(caplog.records) <= 5
    assert all(record.exc_info is None for record in caplog.records)
    assert caplog.records[0].getMessage() == f"a client left in the middle of PUT {path}"


def test_a_space_as_java_writes_it() -> None:
    """Java's clients write a space in a name as ``+``, a plus as ``%2B``, and quote that again for a subscription."""
    made, base = world(Settings()), "/admin/v2/persistent/ref/main/"
    made.broker.topics[TopicName.parse("ref/main/plain")] = {"s1": EARLIEST}
    rest = made.rest
    assert rest.put(base + "a+b%2Bc/partitions", json=2).status_code == 204
    assert rest.get(base + "partitioned").json() == ["persistent://ref/main/a b+c"]
    assert rest.get(base + "a%20b%2Bc/partitions").json()["partitions"] == 2
    for written in ("s%2B1", "s%252B%2526%252F%2525"):
        assert rest.put(base + "plain/subscription/" + written).status_code == 204
    assert sorted(rest.get(base + "plain/subscriptions").json()) == ["s 1", "s+&/%", "s1"]
    assert rest.delete(base + "plain/subscription/s%252B1").status_code == 404
    for written in ("s+1", "s%2B%26%2F%25"):
        assert rest.put(base + "plain/subscription/" + written).status_code in (204, 409)
    assert rest.delete(base + "plain/subscription/s%2B1").status_code == 204
