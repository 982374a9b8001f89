"""What promises durability over REST: every call that changes something, and how to ask for it (``promises.py``)."""

from __future__ import annotations

import asyncio
from typing import Final

from tests.sim.promises import CURSOR, Promise, Step, acked, work
from tests.sim.stage import REST, SUB, Stage
from tests.sim.world import T

PATH = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
OF_SUB = PATH + "/subscription/{subscription}"
NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
BUNDLE = "0x80000000_0xc0000000"
_HERE: Final = {
    PATH: f"{REST}/t", NAMESPACE: "/admin/v2/namespaces/public/default", "{subscription}": SUB, "{bundle}": BUNDLE,
    "{seconds}": "1", "{count}": "2", "{timestamp}": "0",
}  # fmt: skip


def _call(method: str, path: str, body: object = None) -> Step:
    for word, value in _HERE.items():
        path = path.replace(word, value)

    async def ask(stage: Stage) -> None:
        await stage.rest(method, path, body(stage) if callable(body) else body)

    return ask


def _message(stage: Stage) -> object:
    return {"ledgerId": stage.ids[2].ledger, "entryId": stage.ids[2].entry}


def _rest(
    call: str, body: object = None, prepare: Step | None = None, early: tuple[str, ...] = (), *, topic: str = "t",
    changes: bool = True,
) -> Promise:  # fmt: skip
    """``call`` as the routes have it, asked of ``topic``."""
    method, _, path = call.partition(" ")
    ask = _call(method, path.replace(PATH, f"{REST}/{topic}"), body)
    return Promise(call, (call,), ask, prepare, early, changes)


async def _parted(stage: Stage) -> None:
    await stage.rest("PUT", f"{REST}/parted/partitions", 2)
    await stage.rest("PUT", f"{REST}/parted/subscription/{SUB}", "earliest")


async def _lacking(stage: Stage) -> None:
    await _parted(stage)
    await stage.rest("DELETE", f"{REST}/parted-partition-1")


async def _other_topic(stage: Stage) -> None:
    await stage.rest("PUT", f"{REST}/new")


async def _with_properties(stage: Stage) -> None:
    await stage.rest("PUT", f"{REST}/t/properties", {"a": "b"})


async def _nobody_there(stage: Stage) -> None:
    stage.client.transport.close()
    await asyncio.sleep(0.1)


async def _without(stage: Stage) -> None:
    await stage.consumer.unsubscribe()


async def _consumed(stage: Stage) -> None:
    """Make ledgers that no subscription needs any more."""
    for number in range(stage.world.storage.ledger_entries_max + 5):
        stage.producer.send(b"%d" % number)
    await stage.producer.receipt(stage.producer.next_sequence_id - 1)
    for subscription in (SUB, "other"):
        await stage.rest("POST", f"{REST}/t/subscription/{subscription}/skip_all")


async def _unreadable(stage: Stage) -> None:
    """Put the subscription in the state of having met two messages that the disk has lost."""
    topic = stage.world.machine.broker.service.topics[T]
    topic.subscriptions[SUB].pump.unreadable.waiting = (0, 2)


async def _grown_old(stage: Stage) -> None:
    await asyncio.sleep(1.5)


async def _abort(stage: Stage) -> None:
    txn = stage.kept.id
    await stage.rest("POST", f"/admin/v3/transactions/abortTransaction/{txn.most}/{txn.least}")


def _after_traffic(call: str, query: str = "") -> Promise:
    """What was sent and acknowledged before is on the disk when this is answered."""
    promise = _rest(call + query)

    async def ask(stage: Stage) -> None:
        stage.consumer.ack_unconfirmed(stage.ids[0])
        stage.producer.send(b"new")
        await asyncio.sleep(0.1)
        await promise.ask(stage)

    return Promise(call, (call,), ask, None, CURSOR)


async def _publish(stage: Stage) -> None:
    await stage.rest("POST", "/topics/persistent/public/default/t", _MESSAGES)


async def _publish_on_partition(stage: Stage) -> None:
    await stage.rest("POST", "/topics/persistent/public/default/parted/partitions/1", _MESSAGES)


_PUBLISHED: Final = "POST /topics/{domain}/{tenant}/{namespace}/{topic}"
_MESSAGES: Final = {"messages": [{"payload": "by REST"}]}
_REPLICATED: Final = "/replicatedSubscriptionStatus"
_IDS: Final = ("read last id", "compacted last id")
"""What is let go is not shown any more: of messages that is not taking anything back."""
KEPT_IN_LOG: Final = (
    Promise(
        "abort a transaction", ("POST /admin/v3/transactions/abortTransaction/{mostSigBits}/{leastSigBits}",), _abort,
        work,
    ),
    _rest(f"PUT {PATH}", {"a": "b"}, early=("topics", "new"), topic="new"),
    _rest(f"DELETE {PATH}", None, _other_topic, ("topics", "new"), topic="new"),
    _rest(f"PUT {PATH}/partitions", 3, None, ("topics", "partitions", "parted"), topic="parted"),
    _rest(f"POST {PATH}/partitions", 4, _parted, ("topics", "partitions", "parted"), topic="parted"),
    _rest(f"DELETE {PATH}/partitions", None, _parted, ("topics", "parted"), topic="parted"),
    _rest(f"POST {PATH}/createMissedPartitions", None, _lacking, ("topics", "parted"), topic="parted"),
    _rest(f"POST {PATH}/terminate", None, None, ("t terminated",)),
    _rest(f"POST {PATH}/terminate/partitions", None, _parted, ("parted",), topic="parted"),
    _rest(f"DELETE {PATH}/truncate", None, None, (*CURSOR, "t other", "t counters", "t log", *_IDS)),
    _rest(f"POST {PATH}/trim", None, _consumed, ("t counters", "t log"), changes=False),
    _rest(f"PUT {PATH}/properties", {"x": "y"}, None, ("t properties",)),
    _rest(f"DELETE {PATH}/properties", None, _with_properties, ("t properties",)),
    _after_traffic(f"PUT {PATH}/unload"),
    _after_traffic(f"PUT {NAMESPACE}/unload"),
    _after_traffic(f"PUT {NAMESPACE}/{{bundle}}/unload"),
    _after_traffic(f"DELETE {NAMESPACE}/{{bundle}}", "?force=true"),
    Promise("publish over REST", (_PUBLISHED,), _publish),
    Promise(
        "publish over REST on a partition", (f"{_PUBLISHED}/partitions/{{partition}}",), _publish_on_partition, _parted
    ),
    _rest(f"POST {NAMESPACE}/clearBacklog", None, None, CURSOR),
    _rest(f"POST {NAMESPACE}/clearBacklog/{{subscription}}", None, None, CURSOR),
    _rest(f"POST {NAMESPACE}/{{bundle}}/clearBacklog", None, None, CURSOR),
    _rest(f"POST {NAMESPACE}/{{bundle}}/clearBacklog/{{subscription}}", None, None, CURSOR),
    _rest(f"POST {NAMESPACE}/unsubscribe/{{subscription}}", None, _nobody_there, CURSOR),
    _rest(f"POST {NAMESPACE}/{{bundle}}/unsubscribe/{{subscription}}", None, _nobody_there, CURSOR),
    _rest(f"POST {OF_SUB}/expireMessages/{{seconds}}", None, _grown_old, CURSOR),
    _rest(f"POST {PATH}/all_subscription/expireMessages/{{seconds}}", None, _grown_old,
          (*CURSOR, "t other", "t counters")),
    _rest(f"POST {OF_SUB}/expireMessages", _message, None, CURSOR),
    _rest(f"POST {OF_SUB}/resetcursor", _message, None, CURSOR),
    _rest(f"POST {OF_SUB}/resetcursor/{{timestamp}}", None, acked, CURSOR),
    _rest(f"PUT {OF_SUB}/properties", {"x": "y"}, None, CURSOR),
    _rest(f"POST {OF_SUB}{_REPLICATED}", True, None, CURSOR),
    _rest(f"PUT {OF_SUB}", "earliest", _without, CURSOR),
    _rest(f"DELETE {OF_SUB}", None, _nobody_there, CURSOR),
    _rest(f"POST {OF_SUB}/skip_all", None, None, CURSOR),
    _rest(f"POST {OF_SUB}/skip/{{count}}", None, None, CURSOR),
    _rest(f"POST {OF_SUB}/skipUnreadable", None, _unreadable, CURSOR),
)  # fmt: skip


# kept in the metadata --------------------------------------------------------------------------------------------

_TENANT: Final = "/admin/v2/tenants/new"
_SPACE: Final = "/admin/v2/namespaces/public/new"
_RETENTION: Final = {"retentionTimeInMinutes": 5, "retentionSizeInMB": 5}
_QUOTA: Final = {"limitSize": 1000, "limitTime": 0, "policy": "producer_exception"}
_ALICE: Final = {"topic": "persistent://public/default/t", "role": "alice"}
_SCHEMA: Final = {"type": "STRING", "schema": "", "properties": {}}
_OF_SCHEMA: Final = "/admin/v2/schemas/public/default/t/schema"
_RATE: Final = {"dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}


def _first(*calls: tuple[str, str, object]) -> Step:
    async def prepare(stage: Stage) -> None:
        for method, path, body in calls:
            await stage.rest(method, path.replace(PATH, f"{REST}/t").replace(NAMESPACE, _HERE[NAMESPACE]), body)

    return prepare


def _fact(call: str, path: str, body: object = None, *before: tuple[str, str, object]) -> Promise:
    """``call`` as the routes have it, asked at ``path``."""
    return Promise(call, (call,), _call(call.partition(" ")[0], path, body), _first(*before))


_NEW_CLUSTER: Final = ("PUT", "/admin/v2/clusters/new", {"serviceUrl": "http://new:8080"})
_NEW_TENANT: Final = ("PUT", _TENANT, {"adminRoles": [], "allowedClusters": ["standalone"]})
_NEW_SPACE: Final = ("PUT", _SPACE, None)
_NEW_DOMAIN: Final = ("POST", "/admin/v2/clusters/standalone/failureDomains/new", {"brokers": ["b:8080"]})
_ISOLATION: Final = {
    "namespaces": ["public/.*"], "primary": ["b.*"], "secondary": [],
    "auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}},
}  # fmt: skip
_NEW_ISOLATION: Final = ("POST", "/admin/v2/clusters/standalone/namespaceIsolationPolicies/new", _ISOLATION)
_BUNDLE_QUOTA: Final = (
    "POST", f"/admin/v2/resource-quotas/public/default/{BUNDLE}",
    {
        "msgRateIn": 7.0, "msgRateOut": 7.0, "bandwidthIn": 7.0, "bandwidthOut": 7.0, "memory": 7.0, "dynamic": False,
    },
)  # fmt: skip
_BOOKIES: Final = ("POST", f"{NAMESPACE}/persistence/bookieAffinity", {"bookkeeperAffinityGroupPrimary": "a"})
_OFFLOADED: Final = ("POST", f"{NAMESPACE}/offloadPolicies", {"managedLedgerOffloadDriver": "filesystem"})
_DYNAMIC: Final = ("POST", "/admin/v2/brokers/configuration/allowAutoTopicCreation/false", None)
_NEW_GROUP: Final = ("PUT", "/admin/v2/resourcegroups/new", {"publishRateInMsgs": 1000})
KEPT_IN_METADATA: Final = (
    _fact("PUT /admin/v2/clusters/{cluster}", *_NEW_CLUSTER[1:]),
    _fact("POST /admin/v2/clusters/{cluster}", _NEW_CLUSTER[1], {"serviceUrl": "http://b:8080"}, _NEW_CLUSTER),
    _fact("DELETE /admin/v2/clusters/{cluster}", _NEW_CLUSTER[1], None, _NEW_CLUSTER),
    _fact("PUT /admin/v2/tenants/{tenant}", *_NEW_TENANT[1:]),
    _fact(
        "POST /admin/v2/tenants/{tenant}", _TENANT, {"adminRoles": ["a"], "allowedClusters": ["standalone"]},
        _NEW_TENANT,
    ),
    _fact("DELETE /admin/v2/tenants/{tenant}", _TENANT, None, _NEW_TENANT),
    _fact(f"PUT {NAMESPACE}", _SPACE, None),
    _fact(f"DELETE {NAMESPACE}", _SPACE, None, _NEW_SPACE),
    _fact(f"POST {NAMESPACE}/permissions/{{role}}", f"{NAMESPACE}/permissions/alice", ["produce"]),
    _fact(
        f"DELETE {NAMESPACE}/permissions/{{role}}", f"{_SPACE}/permissions/alice", None, _NEW_SPACE,
        ("POST", f"{_SPACE}/permissions/alice", ["produce"]),
    ),
    _fact(
        f"POST {NAMESPACE}/permissions/subscription/{{subscription}}", f"{NAMESPACE}/permissions/subscription/s",
        ["alice"],
    ),
    _fact(
        f"DELETE {NAMESPACE}/permissions/{{subscription}}/{{role}}", f"{_SPACE}/permissions/s/alice", None, _NEW_SPACE,
        ("POST", f"{_SPACE}/permissions/subscription/s", ["alice"]),
    ),
    _fact(
        "POST /admin/v2/namespaces/grantPermissionsOnTopics", "/admin/v2/namespaces/grantPermissionsOnTopics",
        [{**_ALICE, "actions": ["produce"]}],
    ),
    _fact(
        "POST /admin/v2/namespaces/revokePermissionsOnTopics", "/admin/v2/namespaces/revokePermissionsOnTopics",
        [_ALICE], ("POST", f"{PATH}/permissions/alice", ["produce"]),
    ),
    _fact(f"POST {PATH}/permissions/{{role}}", f"{REST}/t/permissions/alice", ["produce"]),
    _fact(
        f"DELETE {PATH}/permissions/{{role}}", f"{REST}/t/permissions/alice", None,
        ("POST", f"{PATH}/permissions/alice", ["produce"]),
    ),
    _fact(f"POST {NAMESPACE}/{{policy}}", f"{NAMESPACE}/messageTTL", 7),
    _fact(f"PUT {NAMESPACE}/{{policy}}", f"{NAMESPACE}/compactionThreshold", 1_000_000),
    _fact(
        f"DELETE {NAMESPACE}/{{policy}}", f"{_SPACE}/messageTTL", None, _NEW_SPACE,
        ("POST", f"{_SPACE}/messageTTL", 7),
    ),
    _fact(f"PUT {NAMESPACE}/properties", f"{NAMESPACE}/properties", {"a": "b"}),
    _fact(
        f"DELETE {NAMESPACE}/properties", f"{_SPACE}/properties", None, _NEW_SPACE,
        ("PUT", f"{_SPACE}/properties", {"a": "b"}),
    ),
    _fact(f"PUT {NAMESPACE}/property/{{key}}/{{value}}", f"{NAMESPACE}/property/a/b"),
    _fact(
        f"DELETE {NAMESPACE}/property/{{key}}", f"{_SPACE}/property/a", None, _NEW_SPACE,
        ("PUT", f"{_SPACE}/properties", {"a": "b"}),
    ),
    _fact(f"POST {NAMESPACE}/backlogQuota", f"{NAMESPACE}/backlogQuota", _QUOTA),
    _fact(
        f"DELETE {NAMESPACE}/backlogQuota", f"{_SPACE}/backlogQuota", None, _NEW_SPACE,
        ("POST", f"{_SPACE}/backlogQuota", _QUOTA),
    ),
    _fact(f"POST {PATH}/backlogQuota", f"{REST}/t/backlogQuota", _QUOTA),
    _fact(f"DELETE {PATH}/backlogQuota", f"{REST}/t/backlogQuota", None, ("POST", f"{PATH}/backlogQuota", _QUOTA)),
    _fact(f"POST {PATH}/{{policy}}", f"{REST}/t/retention", _RETENTION),
    _fact(f"PUT {PATH}/{{policy}}", f"{REST}/t/schemaCompatibilityStrategy", "FULL"),
    _fact(f"DELETE {PATH}/{{policy}}", f"{REST}/t/retention", None, ("POST", f"{PATH}/retention", _RETENTION)),
    _fact(f"DELETE {PATH}/policies", f"{REST}/t/policies", None, ("POST", f"{PATH}/retention", _RETENTION)),
    _fact(f"POST {PATH}/{{subscription}}/dispatchRate", f"{REST}/t/{SUB}/dispatchRate", _RATE),
    _fact(
        f"DELETE {PATH}/{{subscription}}/dispatchRate", f"{REST}/t/{SUB}/dispatchRate", None,
        ("POST", f"{PATH}/{SUB}/dispatchRate", _RATE),
    ),
    _fact("POST /admin/v2/brokers/configuration/{configName}/{configValue}", *_DYNAMIC[1:]),
    _fact("DELETE /admin/v2/brokers/configuration/{configName}", _DYNAMIC[1].removesuffix("/false"), None, _DYNAMIC),
    _fact("POST /admin/v2/clusters/{cluster}/peers", f"{_NEW_CLUSTER[1]}/peers", ["standalone"], _NEW_CLUSTER),
    _fact(
        "POST /admin/v2/clusters/{cluster}/migrate", f"{_NEW_CLUSTER[1]}/migrate?migrated=true",
        {"serviceUrl": "http://other:8080"}, _NEW_CLUSTER,
    ),
    _fact("POST /admin/v2/clusters/{cluster}/failureDomains/{domainName}", *_NEW_DOMAIN[1:]),
    _fact("DELETE /admin/v2/clusters/{cluster}/failureDomains/{domainName}", _NEW_DOMAIN[1], None, _NEW_DOMAIN),
    _fact("POST /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}", *_NEW_ISOLATION[1:]),
    _fact(
        "DELETE /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}", _NEW_ISOLATION[1], None,
        _NEW_ISOLATION,
    ),
    _fact("POST /admin/v2/resource-quotas", "/admin/v2/resource-quotas", _BUNDLE_QUOTA[2]),
    _fact("POST /admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}", *_BUNDLE_QUOTA[1:]),
    _fact(
        "DELETE /admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}", _BUNDLE_QUOTA[1], None, _BUNDLE_QUOTA
    ),
    _fact(f"PUT {NAMESPACE}/{{bundle}}/split", f"{NAMESPACE}/{BUNDLE}/split"),
    _fact(f"POST {NAMESPACE}/allowedClusters", f"{NAMESPACE}/allowedClusters", ["standalone"]),
    _fact(f"POST {NAMESPACE}/migration", f"{NAMESPACE}/migration", True),
    _fact(f"POST {NAMESPACE}/persistence/bookieAffinity", *_BOOKIES[1:]),
    _fact(f"DELETE {NAMESPACE}/persistence/bookieAffinity", _BOOKIES[1], None, _BOOKIES),
    _fact(f"POST {NAMESPACE}/offloadPolicies", *_OFFLOADED[1:]),
    _fact(f"DELETE {NAMESPACE}/removeOffloadPolicies", f"{NAMESPACE}/removeOffloadPolicies", None, _OFFLOADED),
    _fact("PUT /admin/v2/resourcegroups/{resourcegroup}", *_NEW_GROUP[1:]),
    _fact("DELETE /admin/v2/resourcegroups/{resourcegroup}", _NEW_GROUP[1], None, _NEW_GROUP),
    _fact(f"POST {NAMESPACE}/resourcegroup/{{resourcegroup}}", f"{NAMESPACE}/resourcegroup/new", None, _NEW_GROUP),
    _fact(
        f"DELETE {NAMESPACE}/resourcegroup", f"{_SPACE}/resourcegroup", None, _NEW_SPACE, _NEW_GROUP,
        ("POST", f"{_SPACE}/resourcegroup/new", None),
    ),
    _fact("POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema", _OF_SCHEMA, _SCHEMA),
    _fact(
        "DELETE /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema", _OF_SCHEMA, None,
        ("POST", _OF_SCHEMA, _SCHEMA),
    ),
)  # fmt: skip

PROMISES_NOTHING: Final = {
    "DELETE /admin/v2/bookies/racks-info/{bookie}": "refused: there are no bookies",
    "POST /admin/v2/brokers/shutdown": "begins a stop; that the process ends tells when all is written",
    "POST /admin/v3/transactions/transactionCoordinator/replicas": "refused: there is one coordinator",
    f"PUT {PATH}/backlogSize": "reads",
    f"PUT {PATH}/shadowTopics": "refused: there are none",
    f"DELETE {PATH}/shadowTopics": "there are none to take off",
    "POST /admin/v2/brokers/backup": "begins one; its status tells when it is done (tests/sim/test_backup.py)",
    f"POST {OF_SUB}/analyzeBacklog": "reads",
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/compatibility": "compares",
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/version": "reads",
    f"PUT {PATH}/compaction": "begins a run; its status tells when it is done",
    f"POST {PATH}/compaction/plan": "says what a job has to read; changes nothing",
    f"POST {PATH}/compaction/view": "begins to take over a view; the status of compaction tells when it is done",
    f"PUT {PATH}/offload": "begins a run; its status tells when it is done",
    f"POST {PATH}/offload/{{ledger}}": "promises, and tests/sim/test_offload.py looks: it needs a place for copies",
}
"""Calls that are no reading ones and of which an answer says nothing about the disk."""
