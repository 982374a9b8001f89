"""The variables of OpenTelemetry that decide whether telemetry is sent."""

from __future__ import annotations

import pytest

from magnetar.telemetry.switch import asked_for, sends

_ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        (_ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_SDK_DISABLED": "false"}, True),
        ({"OTEL_SDK_DISABLED": "False", **_ENDPOINT}, True),
        ({"OTEL_SDK_DISABLED": "true", **_ENDPOINT}, False),
        ({"OTEL_SDK_DISABLED": "maybe", **_ENDPOINT}, False),
    ],
)
def test_who_asks_for_telemetry(environment: dict[str, str], wanted: bool) -> None:
    assert asked_for(environment) is wanted


def test_one_signal_alone() -> None:
    assert sends("METRICS", {"OTEL_TRACES_EXPORTER": "none"})
    assert not sends("TRACES", {"OTEL_TRACES_EXPORTER": "none"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"),
    ],
)
def test_what_cannot_be_obeyed_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name}='{value}'"):
        sends("METRICS", {name: value})
