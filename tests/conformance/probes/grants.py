"""Grants over REST, what they change for open connections, and operations on many subscriptions at once."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.security_stage import CLUSTER, Stage, said
from tests.conformance.tokens import SUPERUSER
from tests.conformance.wire import ClosedError, SilentError, Wire


def told(stage: Stage, method: str, path: str, body: Json = None, role: str = SUPERUSER) -> Json:
    """Status, and the reason or what was asked for."""
    answer = stage.rest(method, path, role, body)
    found = answer.told()
    if isinstance(found.get("reason"), str):
        found["reason"] = stage.plain(found["reason"]).strip().split("\n")[0]
    if isinstance(found.get("body"), dict):
        found["body"] = {role: sorted(actions) for role, actions in sorted(found["body"].items())}
    return found


@probe("11.3.7", profile="security")
def grants_on_namespaces(broker: Broker) -> Json:
    """Granting to a role on a namespace: replaced, emptied, taken away, odd."""
    stage = Stage(broker)
    path = f"namespaces/{stage.namespace}/permissions"
    nowhere = f"namespaces/{stage.tenant}/nowhere/permissions"
    return [
        told(stage, "GET", path),
        told(stage, "POST", f"{path}/one", ["produce"]),
        told(stage, "POST", f"{path}/one", ["consume"]),
        told(stage, "POST", f"{path}/two", []),
        told(stage, "POST", f"{path}/three", ["bogus"]),
        told(stage, "POST", f"{path}/four"),
        told(stage, "POST", f"{path}/a%20b", ["functions", "sources", "sinks", "packages"]),
        told(stage, "GET", path),
        told(stage, "DELETE", f"{path}/one"),
        told(stage, "DELETE", f"{path}/one"),
        told(stage, "GET", path),
        told(stage, "POST", f"{nowhere}/one", ["produce"]),
        told(stage, "GET", nowhere),
        told(stage, "DELETE", f"{nowhere}/one"),
    ]


@probe("11.3.7", profile="security")
def grants_on_subscriptions(broker: Broker) -> Json:
    """Giving subscriptions to roles."""
    stage = Stage(broker)
    path = f"namespaces/{stage.namespace}/permissions"
    return [
        told(stage, "POST", f"{path}/subscription/s", ["a", "b"]),
        told(stage, "GET", f"{path}/subscription"),
        told(stage, "POST", f"{path}/subscription/s", ["c"]),
        told(stage, "DELETE", f"{path}/s/nobody"),
        told(stage, "GET", f"{path}/subscription"),
        told(stage, "DELETE", f"{path}/s/c"),
        told(stage, "GET", f"{path}/subscription"),
        told(stage, "DELETE", f"{path}/s/c"),
        told(stage, "POST", f"{path}/subscription/s", []),
        told(stage, "GET", f"{path}/subscription"),
    ]


@probe("11.4.7", "12.18", profile="security")
def grants_on_topics(broker: Broker) -> Json:
    """Granting on a topic, a partitioned topic, a partition, many at once, and on what does not exist."""
    stage = Stage(broker, "t", "p")
    base = f"persistent/{stage.namespace}"
    many = "namespaces/grantPermissionsOnTopics"

    def grants(*topics: str) -> Json:
        return [{"topic": topic, "role": "one", "actions": ["produce"]} for topic in topics]

    return [
        told(stage, "POST", f"{base}/t/permissions/one", ["produce"]),
        told(stage, "GET", f"{base}/t/permissions"),
        told(stage, "DELETE", f"{base}/t/permissions/one"),
        told(stage, "DELETE", f"{base}/t/permissions/one"),
        told(stage, "POST", f"{base}/p-partition-0/permissions/one", ["produce"]),
        told(stage, "GET", f"{base}/p/permissions"),
        told(stage, "GET", f"{base}/p-partition-0/permissions"),
        told(stage, "DELETE", f"{base}/p/permissions/one"),
        told(stage, "GET", f"{base}/p-partition-0/permissions"),
        told(stage, "POST", f"{base}/absent/permissions/one", ["produce"]),
        told(stage, "GET", f"{base}/absent/permissions"),
        told(stage, "POST", many, grants(stage.name("t"), stage.name("p"))),
        told(stage, "GET", f"{base}/t/permissions"),
        told(stage, "POST", many, grants(stage.name("t"), stage.name("t", namespace=stage.kept))),
        told(stage, "POST", many, grants(stage.name("t"), stage.name("absent"))),
        told(stage, "POST", many, []),
        told(stage, "POST", "namespaces/revokePermissionsOnTopics", grants(stage.name("t"))),
        told(stage, "GET", f"{base}/t/permissions"),
    ]


@probe("12.18", profile="security")
def grants_of_a_deleted_topic(broker: Broker) -> Json:
    """Whether a topic's grants are there when it is made again."""
    stage = Stage(broker)
    path = f"persistent/{stage.namespace}/gone"
    stage.make("PUT", path)
    stage.make("POST", f"{path}/permissions/one", ["produce"])
    stage.make("DELETE", path)
    stage.make("PUT", path)
    return told(stage, "GET", f"{path}/permissions")


@probe("12.9", profile="security")
def revoked_while_open(broker: Broker) -> Json:
    """Producers and consumers whose grant goes: on the namespace, a topic, a partitioned topic, a subscription."""
    stage = Stage(broker, "t", "p")
    base = f"persistent/{stage.namespace}"
    found: dict[str, Json] = {}

    def gone(wire: Wire) -> Json:
        try:
            return [wire.receive("CLOSE_PRODUCER", "CLOSE_CONSUMER", seconds=5).kind, wire.alive()]
        except SilentError:
            return ["nothing", wire.alive()]
        except ClosedError:
            return "closed"

    places = {
        "namespace": (f"namespaces/{stage.namespace}", "t"),
        "topic": (f"{base}/t", "t"),
        "partitioned topic": (f"{base}/p", "p-partition-0"),
    }
    for label, (path, topic) in places.items():
        for action in ("produce", "consume"):
            role = f"{action}r-{topic}"
            stage.make("POST", f"{path}/permissions/{role}", [action])
            wire = stage.login(role)
            answer = (
                stage.producer(wire, stage.name(topic))
                if action == "produce"
                else stage.consumer(wire, stage.name(topic), role)
            )
            stage.make("DELETE", f"{path}/permissions/{role}")
            found[f"{label}, {action}"] = [said(answer), gone(wire)]
    wire = stage.login("ns-consumer")
    stage.consumer(wire, stage.name(), "given-away")
    stage.make("POST", f"namespaces/{stage.namespace}/permissions/subscription/given-away", ["member"])
    found["subscription"] = gone(wire)
    return found


@probe("12.9", profile="security")
def revoked_otherwise(broker: Broker) -> Json:
    """An administrator who is none any more, and a watcher whose grant is gone."""
    stage = Stage(broker, "t")
    found: dict[str, Json] = {}
    watcher = stage.login("watcher")
    stage.make("POST", f"namespaces/{stage.namespace}/permissions/watcher", ["consume"])
    watcher.request("WATCH_TOPIC_LIST", namespace=stage.namespace, watcher_id=1, topics_pattern=".*")
    stage.make("DELETE", f"namespaces/{stage.namespace}/permissions/watcher")
    admin = stage.login("tenant-admin")
    stage.producer(admin, stage.name())
    stage.make("POST", f"tenants/{stage.tenant}", {"adminRoles": [], "allowedClusters": [CLUSTER]})
    try:
        found["administrator"] = admin.receive("CLOSE_PRODUCER", seconds=1.5).kind
    except SilentError:
        found["administrator"] = "nothing"
    stage.make("PUT", f"persistent/{stage.namespace}/new")
    try:
        found["watcher"] = watcher.receive("WATCH_TOPIC_UPDATE", seconds=1.5).kind
    except SilentError:
        found["watcher"] = "nothing"
    return found


@probe("12.15", "12.16", profile="security")
def bulk_operations(broker: Broker) -> Json:
    """What clears, expires or removes many subscriptions, by a role that may not touch one of them."""
    stage = Stage(broker)
    stage.add("t", stage.kept)
    base, topic = f"persistent/{stage.kept}/t", stage.name(namespace=stage.kept)
    wire = stage.login(SUPERUSER)
    stage.producer(wire, topic)
    sequence = 0

    def left() -> Json:
        found = stage.rest("GET", f"{base}/stats?getPreciseBacklog=true", SUPERUSER).body["subscriptions"]
        return {name: found[name]["msgBacklog"] if name in found else "gone" for name in ("own", "other")}

    operations = {
        "one": f"{base}/subscription/own/skip_all",
        "namespace": f"namespaces/{stage.kept}/clearBacklog",
        "namespace, by name": f"namespaces/{stage.kept}/clearBacklog/own",
        "old ones of all": f"{base}/all_subscription/expireMessages/1000000",
        "removed": f"namespaces/{stage.kept}/unsubscribe/own",
    }
    found: dict[str, Json] = {}
    for role in ("stranger", "ns-producer", "ns-consumer", "tenant-admin"):
        for label, path in operations.items():
            for name in ("own", "other"):
                stage.make("PUT", f"{base}/subscription/{name}", "latest")
                stage.make("POST", f"{base}/subscription/{name}/skip_all")
            wire.publish(1, sequence, "m")
            sequence += 1
            wire.receive("SEND_RECEIPT")
            if label == "old ones of all":
                # whether anything is old enough is not the question
                found[f"{role}, {label}"] = stage.outcome(stage.rest("POST", path, role), role)
            else:
                found[f"{role}, {label}"] = [told(stage, "POST", path, role=role), left()]
    return found
