"""What sends metrics and spans: threads of OpenTelemetry's own, which see the last snapshot and no broker.

The event loop makes a snapshot in each period and puts finished spans into a queue of bounded length; what does not fit
is dropped. A collector that is slow or gone costs its thread's time alone, and at the end at most ``CLOSE_S``.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from starlette.types import ASGIApp

from magnetar import __version__
from magnetar.admin.ports import BrokerPort
from magnetar.runtime.tasks import TaskGroup
from magnetar.telemetry.instruments import INSTRUMENTS
from magnetar.telemetry.request_spans import RequestSpans
from magnetar.telemetry.snapshot import Snapshot, snapshot
from magnetar.telemetry.switch import sends

log = logging.getLogger(__name__)

CLOSE_S: Final = 3.0
_PERIOD_MS: Final = 60_000.0
_POINTS_MAX: Final = 5000
"""Numbers in one request to the collector."""


class TelemetryExports:
    """Owner of the providers. Raises ValueError for variables that cannot be obeyed."""

    def __init__(self, cluster: str) -> None:
        metrics, traces = sends("METRICS", os.environ), sends("TRACES", os.environ)
        try:
            self._period_s = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", _PERIOD_MS)) / 1000
        except ValueError:
            self._period_s = 0.0
        if not 0 < self._period_s < float("inf"):
            raise ValueError("OTEL_METRIC_EXPORT_INTERVAL: expected milliseconds, a number above 0")
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "pulsar-broker"}
        resource = Resource.create({**named, "service.version": __version__, "pulsar.cluster": cluster})
        self._snapshot: Snapshot = {}
        self._tasks = TaskGroup("telemetry")
        self._broker: BrokerPort | None = None
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False) if traces else None
        if self._spans is not None:
            self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._meters: MeterProvider | None = None
        if metrics:
            reader = PeriodicExportingMetricReader(
                OTLPMetricExporter(max_export_batch_size=_POINTS_MAX), self._period_s * 1000
            )
            self._meters = MeterProvider([reader], resource, shutdown_on_exit=False)
            self._instruments(self._meters)

    def _instruments(self, provider: MeterProvider) -> None:
        meter = provider.get_meter("org.apache.pulsar.broker", __version__)
        make = {
            "counter": meter.create_observable_counter,
            "updown": meter.create_observable_up_down_counter,
            "gauge": meter.create_observable_gauge,
        }
        for one in INSTRUMENTS:
            observe: Callable[[CallbackOptions], Iterable[Observation]] = partial(self._observed, one.name)
            make[one.kind](one.name, [observe], one.unit, one.description)

    def _observed(self, name: str, _: CallbackOptions) -> list[Observation]:
        return [Observation(value, dict(attributes)) for attributes, value in self._snapshot.get(name, {}).items()]

    def traced(self, app: ASGIApp) -> ASGIApp:
        """The application with a span for each request, if traces are sent."""
        return app if self._spans is None else RequestSpans(app, self._spans)

    def start(self, broker: BrokerPort) -> None:
        """Begin to look at that broker; needs a running loop."""
        self._broker = broker
        if self._meters is not None:
            self._tasks.start(self._look(), "first snapshot")
            self._tasks.repeat(self._period_s, self._look, "snapshot")
        log.info("telemetry is sent by OTLP: %s", os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "default endpoint"))

    async def _look(self) -> None:
        assert self._broker is not None
        self._snapshot = await snapshot(self._broker)

    async def close(self) -> None:
        """Send what is left, if that does not take longer than ``CLOSE_S``."""
        await self._tasks.close()
        if self._meters is not None and self._broker is not None:
            await self._look()
        ended, loop = asyncio.Event(), asyncio.get_running_loop()

        def end() -> None:
            # side by side: one signal's collector must not use up the other's time
            threads = [Thread(target=one, daemon=True) for one in (self._end_spans, self._end_metrics)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            with suppress(RuntimeError):  # the loop that waited is closed
                loop.call_soon_threadsafe(ended.set)

        # not the loop's own threads: the loop would wait for them at its end
        Thread(target=end, name="telemetry-end", daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_S):
                await ended.wait()
        except TimeoutError:
            log.warning("the collector of telemetry does not answer; what was left is lost")

    def _end_spans(self) -> None:
        if self._spans is not None:
            self._spans.shutdown()

    def _end_metrics(self) -> None:
        if self._meters is not None:
            self._meters.shutdown(timeout_millis=CLOSE_S * 1000)
