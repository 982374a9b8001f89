"""Settings of statistics, /metrics and broker-stats, under Apache Pulsar's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from magnetar.config.setting_field import INT_MAX as _INT_MAX
from magnetar.config.setting_field import setting as _setting


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    """What is counted and shown."""

    statsUpdateFrequencyInSecs: int = _setting(
        60, "Seconds over which rates in statistics are averaged.", "Monitoring", 1, _INT_MAX
    )
    exposeTopicLevelMetricsInPrometheus: bool = _setting(
        True, "Whether /metrics shows each topic and subscription, or only the sums of each namespace.", "Metrics"
    )
    exposeConsumerLevelMetricsInPrometheus: bool = _setting(
        False, "Whether /metrics shows each consumer, if it shows topics.", "Metrics"
    )
    exposeProducerLevelMetricsInPrometheus: bool = _setting(
        False, "Whether /metrics shows each producer, if it shows topics.", "Metrics"
    )
    exposeManagedLedgerMetricsInPrometheus: bool = _setting(
        True, "Whether /metrics shows `pulsar_ml_…` of each namespace.", "Metrics"
    )
    exposeManagedCursorMetricsInPrometheus: bool = _setting(
        False, "Whether /metrics shows `pulsar_ml_cursor_…` of durable subscriptions, if it shows topics.", "Metrics"
    )
    exposeBundlesMetricsInPrometheus: bool = _setting(
        False, "Whether /metrics shows the sums of each bundle of a namespace.", "Metrics"
    )
    exposeSubscriptionBacklogSizeInPrometheus: bool = _setting(
        False, "Whether /metrics shows the bytes of each subscription's backlog (magnetar_subscription_backlog_bytes).",
        "Metrics",
    )  # fmt: skip
    splitTopicAndPartitionLabelInPrometheus: bool = _setting(
        False, "Whether /metrics names a partition by a label of its own, and the topic without its number.", "Metrics"
    )
    metricsBufferResponse: bool = _setting(
        False,
        "Whether one answer of /metrics serves all who ask within `managedLedgerStatsPeriodSeconds`.",
        "Metrics",
    )
    logFormat: Literal["text", "json"] = _setting(
        "text",
        "magnetar's own: the form of the log on standard error; `json`: one object for each line, with connection, "
        "topic, subscription and role where they are known.",
        "Monitoring",
    )
    exposePublisherStats: bool = _setting(
        True, "Whether `/admin/v2/broker-stats/topics` shows the producers of each topic.", "Metrics"
    )
    aggregatePublisherStatsByProducerName: bool = _setting(
        False,
        "Whether statistics of a partitioned topic put producers of one name together, of clients that open partitions "
        "when they first use them; otherwise all are put together by their places in the lists.",
        "Monitoring",
    )
    managedLedgerStatsPeriodSeconds: int = _setting(
        60, "How many seconds an answer of /metrics is kept with `metricsBufferResponse`.", "Metrics", 1, _INT_MAX
    )
