"""``docs/metrics.md``, made from the families of /metrics and the table of Apache Pulsar's.

``python -m tools.metrics_page > docs/metrics.md`` renews it; `tests/docs/test_metrics_page.py` compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from magnetar.admin.routes.metrics import broker_families as broker
from magnetar.admin.routes.metrics import topic_families as topic
from magnetar.admin.routes.metrics.family import Family
from tools.coverage.metrics import known

_HEAD: Final = """\
# Metrics

<!-- generated: python -m tools.metrics_page > docs/metrics.md -->

`GET /metrics` on the web port answers in the Prometheus text format, under the names, labels and types of Apache Pulsar
4.0.8 ([decision 037](decisions/037-metrics.md)). Names that begin with `magnetar_` are this broker's own. Every series
has the label `cluster`. With authorization the page is open to everybody unless `authenticateMetricsEndpoint=true`.

For Prometheus: a job named `pulsar` with `targets: ["127.0.0.1:8080"]`.

- **Periods.** Rates, write latencies and entry sizes are those of the last `statsUpdateFrequencyInSecs` (60 s), as in
  Apache Pulsar; names that end in `_total` count since the topic was loaded or the broker started. Buckets such as
  `pulsar_storage_write_latency_le_5` are not cumulative: each counts what is above the bound before.
- **Size.** A topic has about 25 lines, 60 once something was written to it, and about 20 for each subscription. With
  very many topics set `exposeTopicLevelMetricsInPrometheus=false`: then there is one line for each namespace and name.
  The answer is made in pieces between which clients are served, and compressed for whoever says
  `Accept-Encoding: gzip` (Prometheus does).
- **What may be left out.** Families of an unused feature are not shown: compaction of a topic that was never
  compacted, resource groups, subscriptions whose dispatching no limit is about, logins without authentication.
  `exposePreciseBacklogInPrometheus` changes nothing: backlogs are always exact here.
- `python -m tools.coverage metrics` counts what is served of Apache Pulsar's families and fails on a difference.
"""


def page() -> str:
    """The whole page."""
    return "".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    for title, families in _groups():
        yield f"\n## {title}\n\n| family | type | labels | what it says |\n|---|---|---|---|\n"
        for family in families:
            said = family.help + (f" Only with `{family.setting}`." if family.setting else "")
            yield f"| `{family.name}` | {family.kind} | {family.labels.replace(' ', ', ')} | {said} |\n"
    yield "\n## Families of Apache Pulsar that do not apply\n\n| families | what they are about |\n|---|---|\n"
    reasons: dict[str, list[str]] = {}
    for one in known():
        if one.verdict != "served":
            reasons.setdefault(one.reason, []).append(one.name)
    for reason, names in sorted(reasons.items()):
        shown = ", ".join(f"`{name}`" for name in names[:4])
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        yield f"| {shown}{more} | {reason} |\n"


def _groups() -> Iterator[tuple[str, Iterable[Family]]]:
    yield "The broker", (*broker.SUMS, broker.BYTES_IN, broker.BYTES_OUT, broker.EVICTIONS, *broker.MEASURED)
    yield (
        "Namespaces and bundles",
        (broker.TOPICS_COUNT, *broker.LEDGER, *broker.LEDGER_BUCKETS, *broker.BUNDLE),
    )
    topics = [column.family for column in (*topic.TOPIC, *topic.STORED)]
    yield "Topics", (*topics, topic.EVICTIONS, *topic.WRITES)
    compaction = [column.family for column in topic.COMPACTION]
    yield (
        "Topics with compaction or transactions",
        (*compaction, *topic.COMPACTION_LATENCY, *(column.family for column in topic.TRANSACTIONS)),
    )
    subscriptions = [column.family for column in (*topic.SUBSCRIPTION, *topic.SUBSCRIPTION_BACKLOG, *topic.CURSOR)]
    yield "Subscriptions", (*subscriptions, *topic.DISPATCH_THROTTLED)
    yield "Clients", [column.family for column in (*topic.PRODUCER, *topic.CONSUMER)]


if __name__ == "__main__":
    sys.stdout.write(page())
