"""What a broker reports to a load manager: how much of the machine is used, and by which bundles."""

from __future__ import annotations

from magnetar.admin.ports import BrokerPort
from magnetar.admin.routes.brokers import COMPATIBLE_WITH
from magnetar.admin.routes.metrics.namespace_sums import Sums
from magnetar.admin.routes.metrics.topic_series import TopicSeries
from magnetar.model.names import TopicName
from magnetar.model.policies import Json, JsonObject
from magnetar.runtime.host_load import HostLoad, Usage

_ANY = TopicName.parse("persistent://public/default/any")


def load_report(broker: BrokerPort, topics: TopicSeries, host: HostLoad, now_ms: int) -> JsonObject:
    """The report of this moment; direct memory is Java's, and left out."""
    usage = host.look()
    sums = topics.sums.all
    lookup = broker.lookup(_ANY, None)
    bundles = topics.sums.by_bundle
    shares = [used.usage / used.limit for used in usage.values() if used.limit > 0]
    stats: JsonObject = {name: _bundle(one) for name, one in bundles.items()}
    listed: list[Json] = list(bundles)
    return {
        "webServiceUrl": lookup.http_url,
        "pulsarServiceUrl": lookup.broker_url,
        **({"webServiceUrlTls": lookup.http_url_tls} if lookup.http_url_tls else {}),
        **({"pulsarServiceUrlTls": lookup.broker_url_tls} if lookup.broker_url_tls else {}),
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": True,
        **{word: _usage(used) for word, used in usage.items()},
        "msgThroughputIn": sums.number("throughput_in"),
        "msgThroughputOut": sums.number("throughput_out"),
        "msgRateIn": sums.number("rate_in"),
        "msgRateOut": sums.number("rate_out"),
        "lastUpdate": now_ms,
        "lastStats": stats,
        "numTopics": sums.topics,
        "numBundles": len(bundles),
        "numConsumers": sums.number("consumers"),
        "numProducers": sums.number("producers"),
        "bundles": listed,
        "lastBundleGains": [],
        "lastBundleLosses": [],
        "brokerVersionString": COMPATIBLE_WITH,
        "protocols": {},
        "advertisedListeners": {},
        "maxResourceUsage": max(shares, default=0.0),
        "loadReportType": "LocalBrokerData",
    }


def _usage(used: Usage) -> JsonObject:
    return {"usage": used.usage, "limit": used.limit}


def _bundle(sums: Sums) -> JsonObject:
    number = sums.number
    return {
        "msgRateIn": number("rate_in"),
        "msgThroughputIn": number("throughput_in"),
        "msgRateOut": number("rate_out"),
        "msgThroughputOut": number("throughput_out"),
        "consumerCount": number("consumers"),
        "producerCount": number("producers"),
        "topics": sums.topics,
    }
