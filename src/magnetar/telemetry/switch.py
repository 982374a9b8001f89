"""Whether telemetry is sent, as the variables of OpenTelemetry's specification and Apache Pulsar's PIP-264 have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_DISABLED: Final = "OTEL_SDK_DISABLED"
_ENDPOINTS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)  # fmt: skip


def asked_for(environment: Mapping[str, str]) -> bool:
    """Whether telemetry is to be sent: OTEL_SDK_DISABLED decides if it is set, otherwise an endpoint that is named."""
    disabled = environment.get(_DISABLED, "").strip().lower()
    if disabled:
        return disabled == "false"
    return any(environment.get(name, "").strip() for name in _ENDPOINTS)


def sends(signal: str, environment: Mapping[str, str]) -> bool:
    """Whether that signal, ``METRICS`` or ``TRACES``, is sent: only ``otlp`` can be, which is the default.

    Raises ValueError, which names the variable, for an exporter or a protocol that is not there.
    """
    exporter = environment.get(f"OTEL_{signal}_EXPORTER", "").strip() or "otlp"
    if exporter not in ("otlp", "none"):
        raise ValueError(f"OTEL_{signal}_EXPORTER={exporter!r}: expected otlp or none")
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environment.get(name, "").strip() or "http/protobuf"
        if protocol != "http/protobuf":
            raise ValueError(f"{name}={protocol!r}: expected http/protobuf (port 4318 of most collectors)")
    return exporter == "otlp"
