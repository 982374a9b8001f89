"""Topics: partitions, lookup, compaction and other states."""

from __future__ import annotations

from typing import Literal

from magnetar.admin_api.models.record import ApiModel


class PartitionedTopicMetadata(ApiModel):
    """How many partitions a topic has."""

    partitions: int = 0
    """0: the topic has none, it is plain."""
    deleted: bool = False
    properties: dict[str, str] | None = None
    """Texts of your own."""


class LookupData(ApiModel):
    """The addresses of the broker that serves a topic; what is not open is missing."""

    broker_url: str | None = None
    """pulsar://host:port"""
    broker_url_tls: str | None = None
    """pulsar+ssl://host:port"""
    http_url: str | None = None
    """http://host:port"""
    http_url_tls: str | None = None
    native_url: str | None = None
    broker_url_ssl: str = ""
    """Always empty, as with Apache Pulsar."""


class LongRunningProcessStatus(ApiModel):
    """The last run of what takes long."""

    status: Literal["NOT_RUN", "RUNNING", "SUCCESS", "ERROR"] = "NOT_RUN"
    last_error: str | None = None
    """Why it failed; empty or missing otherwise."""
