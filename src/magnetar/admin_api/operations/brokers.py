"""Brokers, and what they tell of themselves."""

from __future__ import annotations

from typing import Final, Literal

from magnetar.admin_api.models.clusters import BrokerInfo
from magnetar.admin_api.operation import MetricsText, Operation, Parameter, PlainText

_ALL: Final = "/admin/v2/brokers"
_TOPIC_VERSION: Final = Parameter(
    "topicVersion", Literal["V1", "V2"], "Which heartbeat topic is used; V2 has no cluster in its name.", "V1"
)

BROKERS: Final = (
    Operation("brokers.list", "GET", _ALL, "List the brokers", answer=list[str]),
    Operation(
        "brokers.list_active", "GET", _ALL + "/{cluster}", "List the brokers of a cluster", answer=list[str]
    ),
    Operation(
        "brokers.health", "GET", _ALL + "/health", "Send a message through the broker", answer=PlainText,
        query=(_TOPIC_VERSION,), description="Answers ok when a message has been stored and read again.",
        errors={404: "topicVersion is not one of V1, V2", 503: "The broker does not serve yet"},
    ),
    Operation("brokers.ready", "GET", _ALL + "/ready", "Say whether the broker serves", answer=PlainText),
    Operation(
        "brokers.version", "GET", _ALL + "/version", "Name the version of Apache Pulsar that is followed",
        answer=PlainText,
    ),
    Operation("brokers.leader", "GET", _ALL + "/leaderBroker", "Name the leader of the brokers", answer=BrokerInfo),
    Operation(
        "brokers.runtime_configuration", "GET", _ALL + "/configuration/runtime", "Show the settings in effect",
        answer=dict[str, str | None], description="Secrets are left out.",
    ),
    Operation(
        "metrics.prometheus", "GET", "/metrics", "Show metrics for Prometheus", answer=MetricsText,
        description="In the text format 0.0.4, with Apache Pulsar's names.",
    ),
)  # fmt: skip
"""The operations of this group."""
