"""One question to a broker.

A probe is a function that talks to a broker and returns what it saw as JSON. It is registered with an id, the rules of
the book that it shows and the profile (set of broker settings) that it needs. Topics carry the probe's id in their
names, which are the same in every run, because hash rings make some answers depend on names: a broker that is asked
must be empty. Probes of one broker must not see each other, so each keeps to its own topics.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
from tools.servers.process import HOST

from tests.conformance import tokens
from tests.conformance.answers import Json, Normaliser
from tests.conformance.rest import Answer, call
from tests.conformance.wire import Entry, Frame, Wire, parse_entry

NAMESPACE = "public/default"

# What a broker is started with, by profile. `default` is the broker as shipped.
PROFILES: dict[str, dict[str, str]] = {
    "default": {},
    "suite": {
        "acknowledgmentAtBatchIndexLevelEnabled": "true",
        "subscriptionKeySharedUseConsistentHashing": "false",
    },
    "transactions": {
        "transactionCoordinatorEnabled": "true",
        "acknowledgmentAtBatchIndexLevelEnabled": "true",
    },
    "security": dict(tokens.SETTINGS),
    "anonymous": {**tokens.SETTINGS, "anonymousUserRole": "anonymous", "authenticateOriginalAuthData": "true"},
    "strict": {
        "allowAutoTopicCreation": "false",
        "allowAutoSubscriptionCreation": "false",
        "maxMessageSize": "1024000",
        "maxUnackedMessagesPerConsumer": "10",
    },
}


@dataclass
class Broker:
    """A broker as a probe sees it: addresses, connections that are closed for it afterwards, and its normaliser."""

    probe_id: str
    broker_port: int
    http_port: int
    normal: Normaliser = field(default_factory=Normaliser)
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def topic(self, name: str = "t", domain: str = "persistent") -> str:
        return f"{domain}://{NAMESPACE}/{self.local(name)}"

    def local(self, name: str = "t") -> str:
        return f"{self.probe_id}-{name}"

    def raw(self) -> Wire:
        """A connection before its handshake."""
        return self.stack.enter_context(Wire.open((HOST, self.broker_port)))

    def wire(self) -> Wire:
        """A connection after its handshake."""
        wire = self.raw()
        wire.connect()
        return wire

    def rest(self, method: str, path: str, body: Json = None) -> Answer:
        return call(f"http://{HOST}:{self.http_port}", method, path, body)

    def topic_rest(self, method: str, name: str, path: str, body: Json = None) -> Answer:
        return self.rest(method, f"persistent/{NAMESPACE}/{self.local(name)}{path}", body)

    def client(self) -> Json:
        """The official client; closed afterwards."""
        client = pulsar.Client(
            f"pulsar://{HOST}:{self.broker_port}",
            operation_timeout_seconds=10,
            logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
        )

        @self.stack.callback
        def close() -> None:
            with contextlib.suppress(Exception):
                client.close()

        return client

    def say(self, frame: Frame) -> Json:
        """A frame as it is reported: its type and its fields."""
        if frame.kind == "MESSAGE":
            return self.delivery(frame)
        body = self.normal.message(frame.body)
        # one that is the client's own says nothing: the answer was recognised by it
        if body.get("request_id", -1) >= 0:
            del body["request_id"]
        return {frame.kind: body} if body else frame.kind

    def delivery(self, frame: Frame) -> Json:
        """A MESSAGE: its messages, and of the command whatever is not the ordinary case."""
        got: Entry = parse_entry(frame.headers)
        texts = got.texts()
        said: dict[str, Json] = {"MESSAGE": texts[0] if len(texts) == 1 else texts}
        body = self.normal.message(frame.body)
        body.pop("message_id")
        if not got.checksum_right:
            body["checksum"] = "wrong or missing"
        return {**said, **body}


Question = Callable[[Broker], Json]


@dataclass(frozen=True, slots=True)
class Probe:
    id: str
    rules: tuple[str, ...]
    profile: str
    question: Question

    @property
    def about(self) -> str:
        return (self.question.__doc__ or "").strip().splitlines()[0]

    def ask(self, broker_port: int, http_port: int) -> Json:
        """The answer of the broker at these ports. What goes wrong on the way is the answer, too."""
        broker = Broker(self.id, broker_port, http_port)
        with broker.stack:
            try:
                return self.question(broker)
            except Exception as error:
                return {"did not finish": f"{type(error).__name__}: {error}"}


REGISTRY: dict[str, Probe] = {}


def probe(*rules: str, profile: str = "default") -> Callable[[Question], Question]:
    """Register a function as a probe; its name with dashes is the id."""

    def register(question: Question) -> Question:
        name = question.__name__.replace("_", "-")
        assert name not in REGISTRY, f"two probes are called {name}"
        assert question.__doc__, f"{name} does not say what it asks"
        REGISTRY[name] = Probe(name, rules, profile, question)
        return question

    return register
