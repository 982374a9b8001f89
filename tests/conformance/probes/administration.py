"""REST where nothing is there yet, where values are odd, and on topics that store nothing."""

from __future__ import annotations

import time
import urllib.error
import urllib.request

from tools.servers.process import HOST

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe


def raw(broker: Broker, method: str, path: str, body: bytes, kind: str = "application/json") -> Json:
    """A status, of a body that no JSON writer would write."""
    url = f"http://{HOST}:{broker.http_port}/admin/v2/{path}"
    request = urllib.request.Request(url, body, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


def place(broker: Broker, name: str, time_ms: int) -> Json:
    found = broker.topic_rest("GET", name, f"/messageid/{time_ms}")
    if found.status != 200:
        return found.told()
    return [broker.normal.ledger(found.body["ledgerId"]), *(found.body[key] for key in _OF_IDS)]


_OF_IDS = ("entryId", "partitionIndex", "batchIndex", "batchSize")


@probe("11.4.5")
def message_ids_by_time(broker: Broker) -> Json:
    """Ids by time: of an empty topic, before, among and after messages, of a partitioned topic and a partition."""
    later = int(time.time() * 1000) + 10**9
    broker.topic_rest("PUT", "t", "")
    said: dict[str, Json] = {"empty": [place(broker, "t", when) for when in (-1, 0, later)]}
    producer = broker.client().create_producer(broker.topic(), batching_enabled=False)
    for number in range(3):
        producer.send(b"%d" % number)
    said["three"] = [place(broker, "t", when) for when in (-1, 0, later)]
    broker.topic_rest("PUT", "pt", "/partitions", 2)
    said["partitioned"] = place(broker, "pt", 0)
    said["partition"] = place(broker, "pt-partition-1", 0)
    return said


@probe("11.5.1", "11.5.5", "5.1.7")
def subscriptions_with_properties(broker: Broker) -> Json:
    """Created over REST with properties, with and without an id, replicated or not."""
    broker.topic_rest("PUT", "t", "")
    bodies: dict[str, Json] = {
        "earliest": {"ledgerId": -1, "entryId": -1, "properties": {"k": "v"}},
        "latest": {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1, "properties": {"k": "v", "n": 5}},
        "no-id": {"properties": {"k": "v"}},
        "quoted": {"ledgerId": "-1", "entryId": "-1"},
        "empty": {},
        "word": "nonsense",
        "number": 5,
        "list": [],
    }
    said: dict[str, Json] = {
        name: broker.topic_rest("PUT", "t", f"/subscription/{name}", body).status for name, body in bodies.items()
    }
    said["replicated"] = broker.topic_rest(
        "PUT", "t", "/subscription/r?replicated=true", {"ledgerId": -1, "entryId": -1}
    ).status
    shown = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]
    said["shown"] = {
        name: [each["subscriptionProperties"], each["isReplicated"], each["replicated"]]
        for name, each in sorted(shown.items())
    }
    return said


@probe("11.1.4")
def numbers_and_flags_in_quotes(broker: Broker) -> Json:
    """What the parser takes for a number, a flag, a text."""
    said: dict[str, Json] = {}
    for at, body in enumerate((b'"3"', b"3.0", b" 3 ", b'" 4 "', b"true", b'"abc"', b"[3]", b"3 4", b"NaN", b'"3.0"')):
        name = f"persistent/public/default/{broker.local(f'n{at}')}/partitions"
        said[body.decode()] = [raw(broker, "PUT", name, body), broker.rest("GET", name).body.get("partitions")]
    space = f"public/{broker.local('ns')}"
    broker.rest("PUT", f"namespaces/{space}")
    for sent in (b'"true"', b"1", b"0", b'"TRUE"', b'"yes"', b"[true]", b"1.0"):
        path = f"namespaces/{space}/deduplication"
        said[f"flag {sent.decode()}"] = [raw(broker, "POST", path, sent), broker.rest("GET", path).body]
    for sent in (b'{"a":5}', b'{"b":true}', b'{"c":null}', b'{"d":1.5}', b'{"e":{}}', b'{"f":[1]}'):
        said[f"texts {sent.decode()}"] = raw(broker, "PUT", f"namespaces/{space}/properties", sent)
    said["texts"] = broker.rest("GET", f"namespaces/{space}/properties").body
    return said


@probe("11.3.5")
def anti_affinity_groups(broker: Broker) -> Json:
    """Bare, in quotes, empty."""
    space = f"public/{broker.local('ns')}"
    broker.rest("PUT", f"namespaces/{space}")
    path = f"namespaces/{space}/antiAffinity"
    said: dict[str, Json] = {}
    for sent in (b"group1", b'"group2"', b"", b"  "):
        said[sent.decode() or "nothing"] = [raw(broker, "POST", path, sent), broker.rest("GET", path).body]
    return said


@probe("14.16")
def topics_of_bundles(broker: Broker) -> Json:
    """The list of topics by bundle, one that does not exist included."""
    space = f"public/{broker.local('ns')}"
    halves = {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}
    broker.rest("PUT", f"namespaces/{space}", {"bundles": halves})
    for number in range(6):
        broker.rest("PUT", f"persistent/{space}/t{number}")
    return {
        bundle: sorted(broker.rest("GET", f"persistent/{space}?bundle={bundle}").body)
        for bundle in ("0x00000000_0x80000000", "0x80000000_0xffffffff", "0x00000000_0xffffffff", "nonsense")
    }


@probe("13.11")
def nonpersistent_topics_over_rest(broker: Broker) -> Json:
    """Live ones: properties, subscription properties, trim, expiry, truncation, termination."""
    client = broker.client()
    consumer = client.subscribe(broker.topic(domain="non-persistent"), "s")
    base = f"non-persistent/public/default/{broker.local()}"
    said: dict[str, Json] = {}
    for method, path, body in (
        ("GET", "/properties", None), ("PUT", "/properties", {"a": "b"}), ("DELETE", "/properties?key=a", None),
        ("GET", "/subscription/s/properties", None), ("PUT", "/subscription/s/properties", {"a": "b"}),
        ("GET", "/subscription/s/properties", None), ("GET", "/subscription/none/properties", None),
        ("POST", "/subscription/s/expireMessages/1", None), ("POST", "/all_subscription/expireMessages/1", None),
        ("POST", "/trim", None), ("DELETE", "/truncate", None), ("POST", "/terminate", None),
    ):  # fmt: skip
        said.setdefault(f"{method} {path}", []).append(broker.rest(method, base + path, body).told())
    consumer.close()
    return said


@probe("10.4")
def older_policy_of_schemas(broker: Broker) -> Json:
    """schemaAutoUpdateCompatibilityStrategy, and the newer policy over it."""
    said: dict[str, Json] = {}
    fields = [f'{{"name": "{name}", "type": "string"}}' for name in "ab"]
    schemas: list[Json] = [
        {"type": "AVRO", "schema": f'{{"type": "record", "name": "A", "fields": [{",".join(some)}]}}', "properties": {}}
        for some in (fields[:count] for count in range(3))
    ]  # fmt: skip
    for number, word in enumerate(
        ("AutoUpdateDisabled", "Backward", "Forward", "Full", "AlwaysCompatible", "BackwardTransitive")
    ):
        space = f"public/{broker.local(f'ns{number}')}"
        broker.rest("PUT", f"namespaces/{space}")
        broker.rest("POST", f"schemas/{space}/t/schema", schemas[1])
        set_ = broker.rest("PUT", f"namespaces/{space}/schemaAutoUpdateCompatibilityStrategy", word).status
        found = [broker.rest("POST", f"schemas/{space}/t/compatibility", schemas[count]) for count in (2, 0)]
        fits = [each.body["schemaCompatibilityStrategy"] if each.status == 202 else "no" for each in found]
        newer = broker.rest("PUT", f"namespaces/{space}/schemaCompatibilityStrategy", "FORWARD").status
        over = broker.rest("POST", f"schemas/{space}/t/compatibility", schemas[2]).body
        said[word] = [set_, fits, newer, over]
    return said


@probe("11.2.1")
def brokers_of_nowhere(broker: Broker) -> Json:
    """Routes below /brokers that name no cluster, no version, no namespace of this one: the status and what it is."""
    answers = {
        path: broker.rest("GET", path)
        for path in (
            "brokers/nowhere", "brokers/%20", "brokers/nowhere/x:1/ownedNamespaces", "brokers/nothing/at/all",
            "brokers/configuration/nothing", "clusters/nowhere/namespaceIsolationPolicies",
        )
    }  # fmt: skip
    return {
        path: [answer.status, answer.told().get("reason") if answer.status in (400, 409, 412) else "-"]
        for path, answer in answers.items()
    }


@probe("11.2.3")
def roles_of_tenants(broker: Broker) -> Json:
    """Administrators of a new tenant that are no names of roles, and what is kept of them."""
    found: list[Json] = []
    for number, roles in enumerate(([""], ["a", ""], [" "], [" a"], ["a,b"], ["b", "a", "b"])):
        path = f"tenants/{broker.local(str(number))}"
        made = broker.rest("PUT", path, {"adminRoles": roles, "allowedClusters": ["standalone"]}).told()
        kept = broker.rest("GET", path)
        found.append([roles, made, sorted(kept.body["adminRoles"]) if kept.status == 200 else kept.status])
    return found
