"""What roles may do on the wire: every command that names an object, on objects of every kind."""

from __future__ import annotations

import re

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.security_stage import ROLES, Stage, asked, by_outcome, said
from tests.conformance.tokens import SUPERUSER
from tests.conformance.wire import Wire, command, entry, frame

TXN = re.compile(r"\(\d+,\d+\)")
STRING = {"name": "s", "schema_data": b"", "type": "String"}
COMMANDS: dict[str, tuple[str, dict[str, Json]]] = {
    "LOOKUP": ("LOOKUP", {}),
    "PARTITIONED_METADATA": ("PARTITIONED_METADATA", {"metadata_auto_creation_enabled": False}),
    "PRODUCER": ("PRODUCER", {"producer_id": 1}),
    "PRODUCER and its subscription": ("PRODUCER", {"producer_id": 2, "initial_subscription_name": "s"}),
    "SUBSCRIBE": ("SUBSCRIBE", {"consumer_id": 1, "subscription": "s", "subType": "Shared"}),
    "GET_SCHEMA": ("GET_SCHEMA", {}),
    "GET_OR_CREATE_SCHEMA": ("GET_OR_CREATE_SCHEMA", {"schema": STRING}),
}


def may(stage: Stage, topic: str, *names: str) -> Json:
    """Who may do what on a topic, by command."""
    wires = {role: stage.login(role) for role in ROLES}

    def ask(role: str, kind: str, fields: dict[str, Json]) -> str:
        outcome = said(asked(wires[role], kind, topic=topic, **fields))
        return outcome if outcome.startswith("Authorization") else "allowed"

    found = {}
    for name in names or COMMANDS:
        kind, fields = COMMANDS[name]
        found[name] = by_outcome(ROLES, lambda role, kind=kind, fields=fields: ask(role, kind, fields))  # type: ignore[misc]
    return found


@probe("12.7", "12.8", "12.15", "12.18", profile="security")
def permitted_commands(broker: Broker) -> Json:
    """Commands that name a topic, on a persistent one, a partition and their non-persistent twins."""
    stage = Stage(broker, "t", "p")
    return {
        f"{domain} {topic}": may(stage, stage.name(topic, domain))
        for domain in ("persistent", "non-persistent")
        for topic in ("t", "p", "p-partition-1")
    }


@probe("12.7", "12.8", profile="security")
def permitted_on_other_topics(broker: Broker) -> Json:
    """The same on topics that nobody has grants on: one that does not exist, and the broker's own."""
    stage = Stage(broker, "t")
    # brings the topic of changes into being
    stage.make("POST", f"persistent/{stage.namespace}/t/maxConsumers", 5)
    stage.look_up(stage.name("__change_events"))
    return {
        "absent": may(stage, stage.name("absent"), "LOOKUP", "PARTITIONED_METADATA", "GET_SCHEMA"),
        "changes": may(stage, stage.name("__change_events"), "LOOKUP", "PRODUCER", "SUBSCRIBE", "GET_SCHEMA"),
        "coordinator": may(stage, "persistent://pulsar/system/transaction_coordinator_assign", "LOOKUP"),
    }


@probe("12.19", profile="security")
def permitted_where_nothing_is(broker: Broker) -> Json:
    """Tenants and namespaces that do not exist, for a stranger and for the superuser."""
    stage = Stage(broker)
    found: dict[str, Json] = {}
    for role in ("stranger", SUPERUSER):
        wire = stage.login(role)
        for place in ("nowhere/main", f"{stage.tenant}/nowhere"):
            for name, (kind, fields) in COMMANDS.items():
                if role == SUPERUSER and kind in ("PRODUCER", "SUBSCRIBE"):
                    # Apache Pulsar: nobody serves the bundle
                    continue
                answer = asked(wire, kind, topic=f"persistent://{place}/t", **fields)
                found[f"{role}, {name}, {stage.plain(place)}"] = stage.plain(said(answer))
            for kind in ("GET_TOPICS_OF_NAMESPACE", "WATCH_TOPIC_LIST"):
                more = {"watcher_id": len(found), "topics_pattern": ".*"} if kind == "WATCH_TOPIC_LIST" else {}
                answer = asked(wire, kind, namespace=place, **more)
                found[f"{role}, {kind}, {stage.plain(place)}"] = stage.plain(said(answer))
    return found


@probe("12.8", "12.15", profile="security")
def permitted_lists(broker: Broker) -> Json:
    """Who may list and watch the topics of a namespace."""
    stage = Stage(broker, "t")
    found = {}
    for kind, more in (
        ("GET_TOPICS_OF_NAMESPACE", {}),
        ("WATCH_TOPIC_LIST", {"watcher_id": 1, "topics_pattern": ".*"}),
    ):
        found[kind] = by_outcome(
            ROLES,
            lambda role, kind=kind, more=more: said(  # type: ignore[misc]
                asked(stage.login(role), kind, namespace=stage.namespace, **more)
            ),
        )
    return found


@probe("12.7", "12.16", profile="security")
def permitted_subscriptions(broker: Broker) -> Json:
    """A subscription that only some roles may use, and the mode that wants the role's name in front."""
    stage = Stage(broker)
    stage.add("t", stage.kept)
    topic = stage.name(namespace=stage.kept)

    def subscribe(role: str, name: str) -> str:
        return stage.plain(said(stage.consumer(stage.login(role), topic, name)))

    def publish(role: str, name: str) -> str:
        return said(stage.producer(stage.login(role), topic, initial_subscription_name=name))

    found: dict[str, Json] = {
        "own": by_outcome(ROLES, lambda role: subscribe(role, "own")),
        "another": by_outcome(ROLES, lambda role: subscribe(role, "another")),
        "initial": by_outcome(ROLES, lambda role: publish(role, "own")),
    }
    stage.make("POST", f"namespaces/{stage.kept}/permissions/subscription/emptied", [])
    found["roles taken away"] = subscribe("ns-consumer", "emptied")
    stage.make("POST", f"namespaces/{stage.kept}/subscriptionAuthMode", "Prefix")
    for role in ("stranger", "ns-producer", "ns-consumer", "tenant-admin"):
        names = ("x", role, f"{role}x", "own")
        found[f"Prefix, {role}"] = {name: subscribe(role, name) for name in names}
    return found


@probe("12.22", profile="security")
def permitted_transactions(broker: Broker) -> Json:
    """Transactions of one's own and of another, and topics and subscriptions in them that one may not use."""
    stage = Stage(broker, "t")
    owner = stage.coordinator()
    topic = stage.name()
    stage.consumer(stage.login(SUPERUSER), topic, "s")
    found: dict[str, Json] = {}

    def outcome(wire: Wire, kind: str, **fields: Json) -> str:
        return TXN.sub("<transaction>", said(asked(wire, kind, **fields)))

    for role in ("stranger", "ns-producer", "tenant-admin", SUPERUSER):
        wire = stage.login(role)
        for label in ("own", "another's"):
            txn = stage.begin(wire if label == "own" else owner)
            named = {"topic": topic, "subscription": "s"}
            ending = {"txn_action": "ABORT", "txnid_least_bits_of_low_watermark": 0, **txn}
            found[f"{role}, {label}"] = {
                "add the topic": outcome(wire, "ADD_PARTITION_TO_TXN", partitions=[topic], **txn),
                "add the subscription": outcome(wire, "ADD_SUBSCRIPTION_TO_TXN", subscription=[named], **txn),
                "end it": outcome(wire, "END_TXN", txn_action="ABORT", **txn),
                "end it on the topic": outcome(wire, "END_TXN_ON_PARTITION", topic=topic, **ending),
                "end it on the subscription": outcome(wire, "END_TXN_ON_SUBSCRIPTION", subscription=named, **ending),
            }
    txn = stage.begin(owner)
    outcome(owner, "ADD_PARTITION_TO_TXN", partitions=[topic], **txn)
    wire = stage.login("ns-producer")
    stage.producer(wire, topic, txn_enabled=True)
    wire.write(
        frame(
            command("SEND", producer_id=1, sequence_id=0, **txn),
            entry(b"x", checksum=None, magic=True, sequence_id=0, **txn),
        )
    )
    got = wire.receive("SEND_RECEIPT", "SEND_ERROR")
    found["SEND with another's"] = got.kind if got.kind == "SEND_RECEIPT" else said(got)
    owner.request("END_TXN", txn_action="ABORT", **txn)
    return found


@probe("12.17", profile="security")
def wildcards(broker: Broker) -> Json:
    """authorizationAllowWildcardsMatching: which patterns grant what to whom."""
    stage = Stage(broker, "t", "p")
    patterns = {
        "wa.*": ("wa.x", "wa.", "wa", "xwa.y", "WA.x"),
        "*.wb": ("x.wb", ".wb", "wb", "x.wby"),
        "*wc*": ("xwcx", "*wcx", "xwc*"),
        "w*d": ("wxd", "w*d"),
        "*": ("anybody",),
    }
    found: dict[str, Json] = {}
    for pattern, roles in patterns.items():
        path = f"namespaces/{stage.namespace}/permissions/{pattern}"
        stage.make("POST", path, ["produce"])
        found[pattern] = by_outcome(roles, lambda role: said(stage.producer(stage.login(role), stage.name())))
        stage.make("DELETE", path)
    for topic in ("t", "p"):
        stage.make("POST", f"persistent/{stage.namespace}/{topic}/permissions/wt.*", ["consume"])
    for topic in ("t", "p", "p-partition-0"):
        found[f"topic {topic}"] = said(stage.consumer(stage.login("wt.x"), stage.name(topic), "s"))
    stage.make("POST", f"namespaces/{stage.kept}/permissions/subscription/wild", ["ns-*"])
    stage.add("t", stage.kept)
    found["subscription's roles"] = said(
        stage.consumer(stage.login("ns-consumer"), stage.name(namespace=stage.kept), "wild")
    )
    return found
