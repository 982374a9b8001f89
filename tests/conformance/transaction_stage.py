"""A topic, a transaction and clients on a broker that is asked about transactions."""

from __future__ import annotations

import re

from tools.servers.process import HOST

from tests.conformance.answers import Json, select
from tests.conformance.probe import Broker
from tests.conformance.rest import call
from tests.conformance.roles import (
    until,
)
from tests.conformance.wire import Frame, Wire, command, entry, frame

ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"
_TXN = re.compile(r"\((\d+),(\d+)\)")
_PLACE = re.compile(r"\b(\d+):(\d+)\b")


class Stage:
    """A connection that knows its transactions by name: T0, T1, ... in the order in which they were begun."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.wire: Wire = broker.wire()
        self.names: dict[tuple[int, int], str] = {}
        self.wire.request("LOOKUP", topic=f"{ASSIGN}-partition-0")
        until("TC_CLIENT_CONNECT_RESPONSE", self._connect)

    def _connect(self) -> Frame:
        got = self.wire.request("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
        return Frame("not yet", got.body) if got.has("error") else got

    def begin(self, ttl_ms: int = 60_000) -> dict[str, int]:
        begun = self.wire.request("NEW_TXN", tc_id=0, txn_ttl_seconds=ttl_ms)
        most, least = begun.get("txnid_most_bits"), begun.get("txnid_least_bits")
        self.names[most, least] = f"T{len(self.names)}"
        return {"txnid_most_bits": most, "txnid_least_bits": least}

    def adds(self, txn: dict[str, int], topic: str, subscription: str = "") -> Json:
        if subscription:
            named = [{"topic": topic, "subscription": subscription}]
            return self.say(self.wire.request("ADD_SUBSCRIPTION_TO_TXN", subscription=named, **txn))
        return self.say(self.wire.request("ADD_PARTITION_TO_TXN", partitions=[topic], **txn))

    def send(self, txn: dict[str, int], text: str, sequence: int, producer_id: int = 1) -> Json:
        self.wire.write(
            frame(
                command("SEND", producer_id=producer_id, sequence_id=sequence, **txn),
                entry(text.encode(), checksum=None, magic=True, sequence_id=sequence, **txn),
            )
        )
        return self.say(self.wire.receive("SEND_RECEIPT", "SEND_ERROR"))

    def plain(self, text: str, sequence: int) -> Frame:
        self.wire.publish(1, sequence, text)
        return self.wire.receive("SEND_RECEIPT", "SEND_ERROR")

    def ack(self, txn: dict[str, int], *places: Json, kind: str = "Individual") -> Json:
        self.wire.requests += 1
        number = self.wire.requests
        self.wire.send("ACK", consumer_id=1, ack_type=kind, message_id=list(places), request_id=number, **txn)
        return self.say(self.wire.receive("ACK_RESPONSE"))

    def end(self, txn: dict[str, int], action: str) -> Json:
        return self.say(self.wire.request("END_TXN", txn_action=action, **txn))

    def redelivered(self) -> Json:
        """After a request for everything: texts, with the ack set if there is one."""
        self.wire.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1)
        return self.deliveries()

    def deliveries(self) -> Json:
        return [self.broker.say(each) for each in self.wire.rest(0.6)]

    def say(self, got: Frame) -> Json:
        """Say it as Broker.say does, with transactions and places by name."""
        said = self.broker.say(got)
        if not isinstance(said, dict):
            return said
        fields = said[got.kind]
        most, least = fields.pop("txnid_most_bits", 0), fields.pop("txnid_least_bits", None)
        if least is not None and (most, least) in self.names:
            fields["txn"] = self.names[most, least]
        return {got.kind: self.text(fields)}

    def text(self, value: Json) -> Json:
        if isinstance(value, dict):
            return {self.text(key): self.text(each) for key, each in value.items()}
        if not isinstance(value, str):
            return value
        value = _TXN.sub(lambda m: self.names.get((int(m[1]), int(m[2])), m[0]), value)
        return _PLACE.sub(lambda m: f"{self.broker.normal.ledger(int(m[1]))}:{m[2]}", value)

    def stats(self, name: str, *members: str, subscription: str = "") -> Json:
        found = self.broker.topic_rest("GET", name, "/stats").body
        return select(found["subscriptions"][subscription] if subscription else found, members)

    def v3(self, path: str, method: str = "GET") -> Json:
        """Status and body, identifiers by name."""
        answer = call(f"http://{HOST}:{self.broker.http_port}", method, f"/admin/v3/transactions/{path}")
        return [answer.status, self.text(answer.body)]
