"""Grafana's dashboards in `deploy/dashboards`, made from a few lines for each panel.

``python -m tools.dashboards`` writes them; `tests/deploy/test_dashboards.py` compares, and checks every expression
against what /metrics shows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

PLACE: Final = Path(__file__).resolve().parents[1] / "deploy" / "dashboards"
_WIDTH: Final = 24
_HEIGHT: Final = 8


class Panel(NamedTuple):
    """One panel: queries by legend."""

    title: str
    unit: str
    queries: dict[str, str]
    said: str = ""


_OF = '{cluster=~"$cluster"}'
_NS = '{cluster=~"$cluster",namespace=~"$namespace"}'
_TOPIC = '{cluster=~"$cluster",namespace=~"$namespace",topic=~"$topic"}'
_WRITE_BOUNDS: Final = ("0_5", "1", "5", "10", "20", "50", "100", "200", "1000")

BROKER: Final = (
    Panel(
        "Messages in and out", "mps",
        {"in": f"sum(pulsar_broker_rate_in{_OF})", "out": f"sum(pulsar_broker_rate_out{_OF})"},
    ),
    Panel(
        "Bytes in and out", "Bps",
        {"in": f"sum(pulsar_broker_throughput_in{_OF})", "out": f"sum(pulsar_broker_throughput_out{_OF})"},
    ),
    Panel("Backlog", "short", {"entries": f"sum(pulsar_broker_msg_backlog{_OF})"}),
    Panel(
        "Publish latency", "ms",
        {
            "median": 'max(pulsar_broker_publish_latency{cluster=~"$cluster",quantile="0.5"})',
            "99 %": 'max(pulsar_broker_publish_latency{cluster=~"$cluster",quantile="0.99"})',
            "most": 'max(pulsar_broker_publish_latency{cluster=~"$cluster",quantile="1.0"})',
        },
        "From the arrival of a group's oldest entry to its receipts.",
    ),
    Panel(
        "Writes that waited for the disk", "short",
        {
            **{
                f"up to {bound.replace('_', '.')} ms": f"sum(pulsar_storage_write_latency_le_{bound}{_NS})"
                for bound in _WRITE_BOUNDS
            },
            "longer": f"sum(pulsar_storage_write_latency_overflow{_NS})",
        },
        "Entries of the last period by their time until they were on the disk.",
    ),
    Panel(
        "Journal", "ops",
        {
            "writes": f"sum(rate(magnetar_journal_writes_total{_OF}[$__rate_interval]))",
            "entries": f"sum(rate(magnetar_journal_entries_total{_OF}[$__rate_interval]))",
        },
        "Entries for each write say how well group commit works.",
    ),
    Panel(
        "Disk", "short",
        {"failing": f"max(magnetar_journal_failing{_OF})", "full": f"max(magnetar_journal_full{_OF})"},
        "1 while the disk refuses writes or is full.",
    ),
    Panel("Stored", "bytes", {"bytes": f"sum(pulsar_broker_storage_size{_OF})"}),
    Panel(
        "Cache", "short",
        {
            "from memory": f"sum(pulsar_ml_cache_hits_rate{_OF})",
            "from the disk": f"sum(pulsar_ml_cache_misses_rate{_OF})",
        },
    ),
    Panel(
        "Clients", "short",
        {
            "connections": f"sum(pulsar_active_connections{_OF})",
            "producers": f"sum(pulsar_broker_producers_count{_OF})",
            "consumers": f"sum(pulsar_broker_consumers_count{_OF})",
            "topics": f"sum(pulsar_broker_topics_count{_OF})",
        },
    ),
    Panel(
        "Refused", "ops",
        {
            "logins": f"sum(rate(pulsar_authentication_failures_total{_OF}[$__rate_interval]))",
            "permissions": f"sum(rate(magnetar_authorization_refusals_total{_OF}[$__rate_interval]))",
            "TLS handshakes": f"sum(rate(magnetar_tls_handshake_failures_total{_OF}[$__rate_interval]))",
            "lookups": f"sum(rate(pulsar_broker_lookup_failures_total{_OF}[$__rate_interval]))",
        },
    ),
    Panel(
        "Process", "percentunit",
        {
            "processor": f"rate(process_cpu_seconds_total{_OF}[$__rate_interval])",
            "descriptors": f"process_open_fds{_OF} / process_max_fds{_OF}",
        },
    ),
)  # fmt: skip

TOPICS: Final = (
    Panel("Messages in", "mps", {"{{topic}}": f"pulsar_rate_in{_TOPIC}"}),
    Panel("Messages out", "mps", {"{{subscription}}": f"pulsar_subscription_msg_rate_out{_TOPIC}"}),
    Panel("Backlog", "short", {"{{subscription}}": f"pulsar_subscription_back_log{_TOPIC}"}),
    Panel("Delayed", "short", {"{{subscription}}": f"pulsar_subscription_delayed{_TOPIC}"}),
    Panel("Unacknowledged", "short", {"{{subscription}}": f"pulsar_subscription_unacked_messages{_TOPIC}"}),
    Panel("Blocked", "short", {"{{subscription}}": f"pulsar_subscription_blocked_on_unacked_messages{_TOPIC}"}),
    Panel("Redelivered", "mps", {"{{subscription}}": f"pulsar_subscription_msg_rate_redeliver{_TOPIC}"}),
    Panel("Expired", "mps", {"{{subscription}}": f"pulsar_subscription_msg_rate_expired{_TOPIC}"}),
    Panel("Stored", "bytes", {"{{topic}}": f"pulsar_storage_size{_TOPIC}"}),
    Panel(
        "Backlog and its quota", "bytes",
        {
            "{{topic}}": f"pulsar_storage_backlog_size{_TOPIC}",
            "quota of {{topic}}": f"pulsar_storage_backlog_quota_limit{_TOPIC} > 0",
        },
    ),
)  # fmt: skip

DASHBOARDS: Final = {"broker": ("magnetar: broker", BROKER), "topics": ("magnetar: topics", TOPICS)}


def dashboard(word: str) -> dict[str, Any]:
    """One dashboard as Grafana imports it."""
    title, panels = DASHBOARDS[word]
    source = {"type": "prometheus", "uid": "${datasource}"}
    variables: list[dict[str, Any]] = [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
    families = {"cluster": "pulsar_version_info", "namespace": "pulsar_topics_count", "topic": "pulsar_rate_in"}
    for name, family in families.items():
        variables.append(
            {
                "name": name, "type": "query", "datasource": source, "query": f"label_values({family}, {name})",
                "includeAll": True, "multi": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
                "refresh": 2,
            }
        )  # fmt: skip
    return {
        "title": title,
        "uid": f"magnetar-{word}",
        "tags": ["magnetar"],
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": variables},
        "panels": [
            {
                "id": place + 1,
                "type": "timeseries",
                "title": panel.title,
                "description": panel.said,
                "datasource": source,
                "gridPos": {
                    "h": _HEIGHT, "w": _WIDTH // 2, "x": place % 2 * (_WIDTH // 2), "y": place // 2 * _HEIGHT,
                },
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + i), "expr": query, "legendFormat": legend, "datasource": source}
                    for i, (legend, query) in enumerate(panel.queries.items())
                ],
            }
            for place, panel in enumerate(panels)
        ],
    }  # fmt: skip


def text(word: str) -> str:
    """The file of one dashboard."""
    return json.dumps(dashboard(word), indent=1) + "\n"


if __name__ == "__main__":
    for each in DASHBOARDS:
        (PLACE / f"{each}.json").write_text(text(each), "utf-8")
