"""OpenTelemetry from a whole broker: a collector sees metrics and spans, and one that is dead harms nobody."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from magnetar.app.node import Node
from magnetar.config.settings import Settings
from magnetar.telemetry import exports
from magnetar.testing.rawclient import RawClient

_SETTINGS = Settings(bindAddress="127.0.0.1", brokerServicePort=0, webServicePort=0, clusterName="here")
_TRACE = "0af7651916cd43dd8448eb211c80319c"
_OFF = """
import asyncio, pathlib, sys
from magnetar.app.node import Node
from magnetar.config.settings import Settings
async def run():
    settings = Settings(bindAddress="127.0.0.1", brokerServicePort=0, webServicePort=0)
    node = Node(pathlib.Path(sys.argv[1]), settings)
    await node.start()
    await node.complete()
    await node.stop()
asyncio.run(run())
ours = ("opentelemetry", "magnetar.telemetry.")
print([name for name in sys.modules if name.startswith(ours) and name != "magnetar.telemetry.switch"])
"""


class Collector(HTTPServer):
    """Keeps what it is sent by OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.metrics: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        self.resource: dict[str, str] = {}
        self.spans: list[Span] = []

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.resource = {one.key: one.value.string_value for one in resource.resource.attributes}
                for metric in [metric for scope in resource.scope_metrics for metric in scope.metrics]:
                    for point in [*metric.sum.data_points, *metric.gauge.data_points]:
                        labels = tuple(sorted((one.key, one.value.string_value) for one in point.attributes))
                        self.metrics.setdefault(metric.name, {})[labels] = point.as_int or point.as_double
        else:
            for traced in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for scope in traced.scope_spans for span in scope.spans]


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, Collector)
        self.server.take(self.path, body)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def collector() -> Iterator[Collector]:
    made = Collector()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def _ask(node: Node, path: str) -> int:
    headers = {"traceparent": f"00-{_TRACE}-b7ad6b7169203331-01"}
    request = urllib.request.Request(node.broker.service.web_service_url + path, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answered:
        return int(answered.status)


async def _life(data: Path) -> None:
    node = Node(data, _SETTINGS)
    await node.start()
    await node.complete()
    client = await RawClient.open("127.0.0.1", node.port)
    try:
        await client.connect()
        producer = await client.producer("persistent://public/default/told")
        await producer.publish(b"one")
        await producer.publish(b"two")
        assert await asyncio.to_thread(_ask, node, "/admin/v2/tenants/public") == 200
    finally:
        await client.close()
        # OpenTelemetry's own limit for one request is ten seconds
        await asyncio.wait_for(node.stop(), 8)


def test_a_collector_sees_metrics_and_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as seen:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{seen.server_port}")
        asyncio.run(_life(tmp_path / "data"))
    assert (seen.resource["service.name"], seen.resource["pulsar.cluster"]) == ("pulsar-broker", "here")
    topic = (
        ("pulsar.domain", "persistent"), ("pulsar.namespace", "public/default"), ("pulsar.tenant", "public"),
        ("pulsar.topic", "persistent://public/default/told"),
    )  # fmt: skip
    assert seen.metrics["pulsar.broker.topic.message.incoming.count"][topic] == 2
    assert seen.metrics["pulsar.broker.topic.storage.size"][topic] > 0
    assert seen.metrics["pulsar.broker.connection.create.operation.count"][
        (("pulsar.connection.create.operation.status", "success"),)
    ] == 1  # fmt: skip
    (span,) = seen.spans
    said = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
    assert span.name == "GET /admin/v2/tenants/{tenant}"
    assert said["http.route"] == "/admin/v2/tenants/{tenant}"
    assert (said["http.request.method"], said["http.response.status_code"]) == ("GET", 200)
    assert span.trace_id.hex() == _TRACE


def test_a_collector_that_never_answers_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exports, "CLOSE_S", 0.1)
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        asyncio.run(_life(tmp_path / "data"))
    assert "the collector of telemetry does not answer" in caplog.text


def test_a_variable_that_cannot_be_obeyed_is_told_and_the_broker_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    asyncio.run(_life(tmp_path / "data"))
    assert "no telemetry is sent: OTEL_EXPORTER_OTLP_PROTOCOL='grpc'" in caplog.text


def test_without_telemetry_nothing_of_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    ran = subprocess.run(
        [sys.executable, "-c", _OFF, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"
