"""Every client writes every encoding, and every client reads it: what differs from what was to be written is named."""

from __future__ import annotations

import base64
import re
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tools.servers.process import Server

from tests.interop.encodings import LARGEST, Encoding, Fields, b64
from tests.interop.peers import Peer, PeerFailedError

SETTINGS: Final = {
    "transactionCoordinatorEnabled": "true", "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "maxMessageSize": str(LARGEST),
}  # fmt: skip

SOMETIMES: Final = ("sequence_id",)
"""What not every client shows of a message."""


@dataclass(frozen=True)
class Cell:
    """One writer and one reader of one encoding. ``wrong``: what differs, or nothing."""

    encoding: str
    writer: str
    reader: str
    wrong: str = ""
    why: str = ""
    """Of two clients that are not ours and are known to differ: why."""

    @property
    def differs(self) -> bool:
        """Whether that is for us to mend."""
        return bool(self.wrong) and not self.why


@dataclass
class Written:
    """What a writer has left in a topic."""

    topic: str
    ids: list[Fields]
    payloads: list[str | None] = field(default_factory=list)
    """As the first reader saw them, in base64; None without a value."""


def make_keys(place: Path) -> dict[str, str]:
    """Write a key pair of RSA and one of an elliptic curve; returns paths by the names that encodings use."""
    paths: dict[str, str] = {}
    pem, no = serialization.Encoding.PEM, serialization.NoEncryption()
    for kind, key in (("rsa", rsa.generate_private_key(65537, 2048)), ("ec", ec.generate_private_key(ec.SECP256R1()))):
        paths[f"{kind}-private"] = str(place / f"{kind}-private.pem")
        paths[f"{kind}-public"] = str(place / f"{kind}-public.pem")
        # Java's client reads no PKCS #8
        private = key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, no)
        Path(paths[f"{kind}-private"]).write_bytes(private)
        public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
        Path(paths[f"{kind}-public"]).write_bytes(public)
    return paths


class Matrix:
    """The encodings at one broker, between peers that run."""

    def __init__(self, server: Server, peers: Mapping[str, Peer], keys: Mapping[str, str]) -> None:
        self._server = server
        self._peers = peers
        self._keys = keys

    def cells(self, encoding: Encoding) -> Iterator[Cell]:
        """Write by every writer, read by every reader."""
        payloads: dict[str, list[str | None]] = {}
        for writer in self._peers:
            if writer not in encoding.writers:
                continue
            try:
                written = self.write(encoding, writer)
            except PeerFailedError as error:
                yield Cell(encoding.name, writer, "", f"cannot write: {error}")
                continue
            for reader in self._peers:
                if reader in encoding.readers:
                    wrong = self._read(encoding, written, writer, reader)
                    why = encoding.others.get((writer, reader), "") if wrong else ""
                    yield Cell(encoding.name, writer, reader, wrong, why)
            payloads[writer] = written.payloads
        if encoding.same_payload and "java" in payloads:
            for writer, found in payloads.items():
                if found != payloads["java"]:
                    yield Cell(encoding.name, writer, "", "the payload is not that of Java's client")

    def topic(self, encoding: Encoding, writer: str) -> str:
        """Return the topic of a writer's messages."""
        return "interop-" + re.sub(r"[^a-z0-9]+", "-", f"{encoding.name}-{writer}".lower())

    def write(self, encoding: Encoding, writer: str) -> Written:
        """Have one client write. Raises PeerFailedError."""
        topic = self.topic(encoding, writer)
        if encoding.partitions:
            self._rest("PUT", f"/admin/v2/persistent/public/default/{topic}/partitions", b"%d" % encoding.partitions)
        # the subscriptions of the readers begin at the earliest message, so one has to keep them until then
        self._rest("PUT", f"/admin/v2/persistent/public/default/{topic}/subscription/keeps", b'"earliest"')
        answer = self._peers[writer].ask(
            do="write", topic=topic, schema=_schema(encoding.schema), messages=encoding.messages,
            producer={"name": f"{writer}-writer", **self._with_keys(encoding.producer)},
            **({"transaction": encoding.transaction} if encoding.transaction else {}),
        )  # fmt: skip
        if "error" in answer:
            raise PeerFailedError(f"{writer}: {answer['error']}")
        return Written(topic, answer["ids"])

    def _rest(self, method: str, path: str, body: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._server.http_url + path, body, headers, method=method)
        urllib.request.urlopen(request, timeout=30).close()

    def _with_keys(self, options: Fields) -> Fields:
        return {
            name: self._keys.get(value, value) if isinstance(value, str) else value for name, value in options.items()
        }

    def _read(self, encoding: Encoding, written: Written, writer: str, reader: str) -> str:
        aborted = encoding.transaction == "abort"
        raw = reader in encoding.bytes_only
        try:
            answer = self._peers[reader].ask(
                do="read", topic=written.topic, subscription=f"read by {reader}",
                schema=None if raw else _schema(encoding.read_as or encoding.schema),
                consumer=self._with_keys(encoding.consumer), count=0 if aborted else len(encoding.messages),
                nothing_more=aborted,
            )  # fmt: skip
        except PeerFailedError as error:
            return str(error)
        if "error" in answer:
            return str(answer["error"])
        found: list[Fields] = answer["messages"]
        if encoding.partitions or encoding.producer.get("by_key"):
            found = in_order_of(written.ids, found)
        wrong = differences(encoding, written, found, writer, official=reader == "official", raw=raw)
        payloads = [one.get("data") for one in found]
        if not written.payloads:
            written.payloads = payloads
        elif written.payloads != payloads:
            wrong.append("the payload is not what another client read")
        return "; ".join(wrong[:3])


def _schema(kind: str | None) -> Fields | None:
    return None if kind is None else {"kind": kind}


def _place(one: Fields) -> tuple[int, int, int]:
    return one["ledger"], one["entry"], one["batch_index"]


def in_order_of(ids: Sequence[Fields], messages: Sequence[Fields]) -> list[Fields]:
    """Return messages in the order in which they were sent."""
    places = {_place(one): number for number, one in enumerate(ids)}
    return sorted(messages, key=lambda one: places.get(_place(one["id"]), -1))


def differences(
    encoding: Encoding, written: Written, found: Sequence[Fields], writer: str, *, official: bool, raw: bool
) -> list[str]:
    """Return what of the messages that were read is not as it was to be written."""
    wanted = () if encoding.transaction == "abort" else encoding.messages
    if len(found) != len(wanted):
        return [f"{len(found)} messages, and not {len(wanted)}"]
    wrong: list[str] = []
    for number, (sent, read) in enumerate(zip(wanted, found, strict=True)):
        for name, value in expected(encoding, sent, writer, official=official, raw=raw).items():
            if (name in read or name not in SOMETIMES) and read.get(name) != value:
                wrong.append(f"message {number}: {name} is {shown(read.get(name))}, and not {shown(value)}")
        if not encoding.partitions and _place(read["id"]) != _place(written.ids[number]):
            wrong.append(f"message {number}: its id is {read['id']['text']}, and not {written.ids[number]['text']}")
    return wrong


def expected(encoding: Encoding, sent: Fields, writer: str, *, official: bool, raw: bool) -> Fields:
    """Return what a reader is to show of a message."""
    found: Fields = {
        "null": sent.get("null"), "properties": sent["properties"], "event_time": sent.get("event_time", 0),
        "producer": f"{writer}-writer",
    }  # fmt: skip
    if "data" in sent:
        found["data"] = sent["data"]
    if "value" in sent and not raw:
        found["value"] = sent["value"]
    if "sequence_id" in sent:
        found["sequence_id"] = sent["sequence_id"]
    key = base64.b64decode(sent["key_bytes"]) if "key_bytes" in sent else sent.get("key", "").encode()
    separated = (encoding.schema or "") == "pair_separated"
    if separated:
        key = sent["value"]["key"].encode()
    if official and ("key_bytes" in sent or separated):
        key = base64.b64encode(key)
    has_key = "key" in sent or "key_bytes" in sent or separated
    found["key_bytes"] = b64(key) if has_key or official else None
    found["ordering_key"] = sent.get("ordering_key")
    return found


def shown(value: Any) -> str:
    """Return a value, shortened."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"
