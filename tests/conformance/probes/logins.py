"""Who somebody is: tokens on the wire and over HTTP, expiry and refreshing, principals behind a proxy."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.security_stage import Stage, asked, said
from tests.conformance.tokens import SUPERUSER, credentials, signed, token
from tests.conformance.wire import ClosedError, SilentError, Wire

REFRESH = {"supports_auth_refresh": True}
WEBSOCKET = "__websocket_dummy_original_principle"


def expiring(role: str, seconds: float) -> bytes:
    return token(role, exp=int(time.time() + seconds)).encode()


@probe("12.1", "12.2", profile="security")
def logins(broker: Broker) -> Json:
    """CONNECT with good, bad and odd credentials, and what the connection may do then."""
    stage = Stage(broker, "t")
    now = int(time.time())
    admin = b'{"sub":"admin"}'
    tokens: dict[str, str | bytes] = {
        "good": token("ns-producer"),
        "garbage": "garbage",
        "empty": "",
        "Bearer in front": f"Bearer {token(SUPERUSER)}",
        "another key": signed(admin, key=b"another secret of the same length, which did not sign anything"),
        "algorithm none": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
        "expired": token(SUPERUSER, exp=now - 5),
        "not yet": token(SUPERUSER, nbf=now + 500),
        "issued in the future": token("ns-producer", iat=now + 500),
        "key id of a path": signed(b'{"sub":"ns-producer"}', kid="../../etc/passwd"),
        "no subject": signed(b'{"name":"admin"}'),
        "an empty subject": signed(b'{"sub":""}'),
        "subjects in a list": signed(b'{"sub":["ns-producer","admin"]}'),
        "a number as subject": signed(b'{"sub":5}'),
        "cut": token(SUPERUSER)[:-4],
    }
    methods: dict[str, dict[str, Json]] = {
        "nothing": {},
        "method without data": {"auth_method_name": "token"},
        "method none": {"auth_method_name": "none"},
        "unknown method": {"auth_method_name": "bogus", "auth_data": token(SUPERUSER).encode()},
        "another case": {"auth_method_name": "Token", "auth_data": token(SUPERUSER).encode()},
    }
    for label, value in tokens.items():
        data = value if isinstance(value, bytes) else value.encode()
        methods[label] = {"auth_method_name": "token", "auth_data": data}
    found: dict[str, Json] = {}
    for label, fields in methods.items():
        wire, found[label] = stage.attempt(**fields)
        if found[label] == "CONNECTED":
            found[label] = ["CONNECTED", "PRODUCER", said(stage.producer(wire, stage.name()))]
    return found


@probe("12.1", "12.6", profile="security")
def logins_out_of_turn(broker: Broker) -> Json:
    """AUTH_RESPONSE before CONNECT and unasked, and a second CONNECT."""
    stage = Stage(broker, "t")
    found: dict[str, Json] = {}

    def response(wire: Wire, role: str) -> None:
        data = {"auth_method_name": "token", "auth_data": token(role).encode()}
        wire.send("AUTH_RESPONSE", client_version="oracle", protocol_version=21, response=data)

    wire = broker.raw()
    response(wire, SUPERUSER)
    found["before CONNECT, closed"] = wire.closed()
    for role in ("ns-producer", SUPERUSER):
        wire = stage.login("ns-producer")
        response(wire, role)
        found[f"unasked as {role}, closed"] = wire.closed(1.0)
    wire = stage.login("ns-producer")
    wire.send("CONNECT", client_version="oracle", protocol_version=21, **credentials(SUPERUSER))
    found["second CONNECT"] = [wire.closed(), [each.kind for each in wire.queued]]
    return found


@probe("12.6", profile="security")
def logins_refreshed(broker: Broker) -> Json:
    """A token that expires while a producer is open: the challenge, and answers of every kind."""
    stage = Stage(broker, "t")
    answers = {
        "good": lambda: expiring("ns-producer", 600),
        "garbage": lambda: b"garbage",
        "expired": lambda: expiring("ns-producer", -5),
        "another role": lambda: expiring(SUPERUSER, 600),
        "none": None,
    }

    def ask(label: str) -> Json:
        fields: dict[str, Json] = {} if label == "no flag" else {"feature_flags": REFRESH}
        wire = stage.login("", auth_method_name="token", auth_data=expiring("ns-producer", 3), **fields)
        stage.producer(wire, stage.name())
        try:
            challenge = broker.say(wire.receive("AUTH_CHALLENGE", seconds=10))
            answer = answers[label]
            if answer is not None:
                data = {"auth_method_name": "token", "auth_data": answer()}
                wire.send("AUTH_RESPONSE", client_version="oracle", protocol_version=21, response=data)
            if label == "good":
                wire.publish(1, 0, "m")
                return [challenge, wire.receive("SEND_RECEIPT", "SEND_ERROR").kind]
            return [broker.say(wire.receive("ERROR", seconds=5)), wire.closed()]
        except ClosedError:
            return "closed"
        except SilentError:
            return "no answer"

    # side by side: an answer must come before the broker looks the next time
    labels = [*answers, "no flag"]
    with ThreadPoolExecutor(len(labels)) as pool:
        return dict(zip(labels, pool.map(ask, labels), strict=True))


@probe("12.13", "12.21", profile="security")
def principals(broker: Broker) -> Json:
    """CONNECT with an original principal, from proxies and others, and what the connection may do then."""
    stage = Stage(broker, "t")
    pairs: list[tuple[str, str | None]] = [
        *(("proxy", one) for one in (None, "", SUPERUSER, "tenant-admin", "ns-producer", "stranger")),
        *(("proxy", one) for one in ("proxy", "low-proxy")),
        *(("low-proxy", one) for one in (SUPERUSER, "ns-producer")),
        *((SUPERUSER, one) for one in ("", SUPERUSER, "stranger")),
        *(("stranger", one) for one in (SUPERUSER, "stranger", WEBSOCKET)),
    ]
    found: dict[str, Json] = {}
    for role, original in pairs:
        fields = {} if original is None else {"original_principal": original}
        wire, said_so = stage.attempt(**credentials(role), **fields)
        if said_so == "CONNECTED":
            said_so = {
                "PRODUCER": said(stage.producer(wire, stage.name())),
                "SUBSCRIBE": said(stage.consumer(wire, stage.name(), "s")),
                "GET_TOPICS_OF_NAMESPACE": said(asked(wire, "GET_TOPICS_OF_NAMESPACE", namespace=stage.namespace)),
            }
        found[f"{role} for {original}"] = said_so
    for role, version in ((SUPERUSER, "1"), ("proxy", "1")):
        fields = {"original_principal": SUPERUSER} if role == "proxy" else {}
        found[f"{role} with proxy_version"] = stage.attempt(**credentials(role), **fields, proxy_version=version)[1]
    return found


@probe("12.21", profile="security")
def principals_over_http(broker: Broker) -> Json:
    """Over HTTP the header X-Original-Principal names the original: what does each pair get?"""
    stage = Stage(broker, "t")
    routes = {
        "topic": f"persistent/{stage.namespace}/t/stats",
        "namespace": f"namespaces/{stage.namespace}/topics",
        "policy": f"namespaces/{stage.namespace}/retention",
        "tenant": f"namespaces/{stage.tenant}",
        "administering": f"namespaces/{stage.namespace}/properties",
        "all tenants": "tenants",
        "brokers": "brokers",
    }
    pairs: list[tuple[str, str | None]] = [
        *(("proxy", one) for one in (None, SUPERUSER, "tenant-admin", "ns-producer", "proxy")),
        *(("low-proxy", one) for one in (SUPERUSER,)),
        *((SUPERUSER, one) for one in (SUPERUSER, "stranger")),
        *(("ns-producer", one) for one in (SUPERUSER, "ns-producer", WEBSOCKET)),
    ]
    found: dict[str, Json] = {}
    for role, original in pairs:
        headers = {} if original is None else {"X-Original-Principal": original}
        found[f"{role} for {original}"] = {
            label: stage.verdict(stage.rest("GET", path, role, headers=headers)) for label, path in routes.items()
        }
    return found


@probe("12.1", "12.2", profile="security")
def logins_over_http(broker: Broker) -> Json:
    """Credentials in requests: which are taken."""
    stage = Stage(broker, "t")
    path, good = f"persistent/{stage.namespace}/t/stats", token("ns-producer")
    sent: dict[str, dict[str, str]] = {
        "Bearer": {"Authorization": f"Bearer {good}"},
        "nothing": {},
        "garbage": {"Authorization": "Bearer garbage"},
        "no scheme": {"Authorization": good},
        "Basic": {"Authorization": "Basic eDp5"},
        "method token": {"Authorization": f"Bearer {good}", "X-Pulsar-Auth-Method-Name": "token"},
        "unknown method": {"Authorization": f"Bearer {good}", "X-Pulsar-Auth-Method-Name": "bogus"},
        "expired": {"Authorization": f"Bearer {expiring('ns-producer', -5).decode()}"},
    }
    found: dict[str, Json] = {
        label: stage.rest("GET", path, None, headers=headers).status for label, headers in sent.items()
    }
    found["in the query"] = stage.rest("GET", f"{path}?token={good}", None).status
    nobody = {"Authorization": f"Bearer {signed(b'{}')}"}
    for label, where in (("topic", path), ("clusters", "clusters"), ("tenants", "tenants")):
        answer = stage.rest("GET", where, None, headers=nobody)
        found[f"no subject, {label}"] = stage.verdict(answer)
    for where in ("/admin/v2/brokers/version", "/admin/v2/nothing", "/lookup/v2/nothing", "/metrics/"):
        found[f"nobody, {where}"] = stage.rest("GET", where, None).status
    return found


@probe("12.20", profile="anonymous")
def anonymous_logins(broker: Broker) -> Json:
    """Where there is a role for whoever does not log in: who gets it."""
    stage = Stage(broker, "t")
    stage.make("POST", f"namespaces/{stage.namespace}/permissions/anonymous", ["produce"])
    connects: dict[str, dict[str, Json]] = {
        "nothing": {},
        "method none": {"auth_method_name": "none"},
        "unknown method": {"auth_method_name": "bogus", "auth_data": b"x"},
        "garbage": {"auth_method_name": "token", "auth_data": b"garbage"},
        "method without data": {"auth_method_name": "token"},
        "another role": credentials("stranger"),
    }
    found: dict[str, Json] = {}
    for label, fields in connects.items():
        wire, found[label] = stage.attempt(**fields)
        if found[label] == "CONNECTED":
            found[label] = [said(stage.producer(wire, stage.name())), said(stage.consumer(wire, stage.name(), "s"))]
    requests: dict[str, dict[str, str]] = {
        "nothing": {},
        "garbage": {"Authorization": "Bearer garbage"},
        "garbage with method": {"Authorization": "Bearer garbage", "X-Pulsar-Auth-Method-Name": "token"},
        "Basic": {"Authorization": "Basic eDp5"},
        "unknown method": {"X-Pulsar-Auth-Method-Name": "bogus"},
        "another role": {"Authorization": f"Bearer {token('stranger')}"},
    }
    for label, headers in requests.items():
        paths = (f"persistent/{stage.namespace}/t/stats", f"persistent/{stage.namespace}/t/subscriptions")
        found[f"HTTP, {label}"] = [stage.rest("GET", path, None, headers=headers).status for path in paths]
    return found


@probe("12.21", profile="anonymous")
def original_credentials(broker: Broker) -> Json:
    """authenticateOriginalAuthData: the proxy passes on the client's own credentials."""
    stage = Stage(broker, "t")
    data = {"original_auth_data": token("ns-producer"), "original_auth_method": "token"}
    passed: dict[str, dict[str, Json]] = {
        "nothing": {},
        "a principal alone": {"original_principal": "ns-producer"},
        "its credentials": {"original_principal": "ns-producer", **data},
        "another's credentials": {"original_principal": SUPERUSER, **data},
        "garbage": {"original_principal": "ns-producer", **data, "original_auth_data": "garbage"},
        "credentials alone": data,
        "an unknown method": {"original_principal": "ns-producer", **data, "original_auth_method": "bogus"},
        "a proxy's credentials": {"original_principal": "x", **data, "original_auth_data": token("low-proxy")},
    }
    found: dict[str, Json] = {}
    for label, fields in passed.items():
        for role in ("proxy", "stranger"):
            wire, outcome = stage.attempt(**credentials(role), **fields)
            if outcome == "CONNECTED":
                outcome = [said(stage.producer(wire, stage.name())), said(stage.consumer(wire, stage.name(), "s"))]
            found[f"{role}: {label}"] = outcome
    return found
