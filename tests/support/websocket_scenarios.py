"""Conversations over WebSocket, played against a broker and written down in a form that two brokers can share.

A scenario is a list of steps. A transcript has one line for each thing that came back: the status of a handshake, a
frame, the end of a connection. What no two brokers can have in common (ids, times) is replaced by its kind.
"""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, SecurityError
from websockets.sync.client import ClientConnection, connect

Step = tuple[Any, ...]

_PAYLOAD = "aGVsbG8="
_SHORT = 0.2
"""Seconds after which nothing comes any more."""


def _producer(topic: str, query: str = "") -> str:
    return f"/ws/v2/producer/persistent/public/default/{topic}{query}"


def _consumer(topic: str, subscription: str = "s", query: str = "") -> str:
    return f"/ws/v2/consumer/persistent/public/default/{topic}/{subscription}{query}"


def _reader(topic: str, query: str = "") -> str:
    return f"/ws/v2/reader/persistent/public/default/{topic}{query}"


def _sends(who: str, *frames: Any) -> list[Step]:
    """Frames of a producer, each with its answer."""
    return [step for frame in frames for step in (("send", who, frame), ("hear", who))]


_MESSAGE = {"payload": _PAYLOAD}
SCENARIOS: dict[str, list[Step]] = {
    "one message": [
        ("open", "c", _consumer("a")),
        ("open", "p", _producer("a")),
        ("send", "p", {
            **_MESSAGE, "properties": {"k": "v"}, "key": "kk", "context": "5", "eventTime": "2024-01-02T03:04:05.006Z",
        }),
        ("hear", "p"),
        ("hear", "c"),
        ("send", "c", {"messageId": 0}),
        ("silent", "c"),
        *[
            step
            for frame in (
                {"payload": ""}, {**_MESSAGE, "replicationClusters": ["standalone"]},
                {**_MESSAGE, "deliverAfterMs": 50}, {**_MESSAGE, "deliverAt": 1},
            )
            for step in (("send", "p", frame), ("hear", "p"), ("hear", "c"))
        ],
    ],
    "wrong messages": [
        ("open", "p", _producer("b")),
        *_sends(
            "p", "junk", [], {"payload": "%%"}, {"payload": "aGVsbG8"}, {"context": "x"},
            {"payload": None, "context": "y"}, {**_MESSAGE, "eventTime": "soon", "context": "1"},
            {**_MESSAGE, "eventTime": 123, "context": "1"}, {**_MESSAGE, "properties": []},
            {**_MESSAGE, "properties": {"a": 1}}, {**_MESSAGE, "bogus": 1, "context": 7}, "",
        ),
        ("send", "p", b"\x00\x01"),
        ("silent", "p"),
        *_sends(
            "p", _MESSAGE, {"payload": "aGVs\nbG8="}, {**_MESSAGE, "key": 5}, {**_MESSAGE, "deliverAfterMs": "x"},
        ),
    ],
    "an oversized frame": [
        ("open", "p", _producer("o")),
        ("send", "p", {"payload": "A" * (1 << 20)}),
        ("hear", "p"),
    ],
    "refused": [
        ("open", path, path)
        for path in (
            "/ws/v2/producer/persistent/public/nope/x", "/ws/v2/producer/persistent/nope/nope/x",
            *(
                _producer("r", "?" + query)
                for query in (
                    "messageRoutingMode=Bogus", "compressionType=Bogus", "hashingScheme=Bogus", "sendTimeoutMillis=-5",
                    "encryptionKeys=a", "initialSequenceId=5", "maxPendingMessages=-1", "batchingMaxMessages=x",
                )
            ),
            *(
                _consumer("r", "s", "?" + query)
                for query in (
                    "subscriptionType=Bogus", "receiverQueueSize=x", "subscriptionMode=Bogus",
                    "subscriptionInitialPosition=Bogus", "ackTimeoutMillis=5", "priorityLevel=-1",
                    "maxRedeliverCount=-1", "negativeAckRedeliveryDelay=-1",
                )
            ),
            _reader("r", "?messageId=junk"), _reader("r", "?receiverQueueSize=x"),
            "/ws/v2/producer/persistent/public/default", "/ws/v2/consumer/persistent/public/default/x",
            "/ws/v2/bogus/persistent/public/default/x",
            "/ws/producer/persistent/public/standalone/default/x",
        )
    ],
    "in use": [
        ("open", "p", _producer("y", "?producerName=n")),
        ("open", "q", _producer("y", "?producerName=n")),
        ("open", "c", _consumer("y")),
        ("open", "d", _consumer("y")),
        ("open", "e", _consumer("y", "s", "?subscriptionType=Shared")),
        ("open", "f", _consumer("y", "t", "?subscriptionType=Shared")),
        ("open", "g", _consumer("y", "t", "?subscriptionType=Shared")),
    ],
    "a window of two": [
        ("open", "c", _consumer("c", "s", "?receiverQueueSize=2&subscriptionType=Shared")),
        ("open", "p", _producer("c")),
        *[("send", "p", {**_MESSAGE, "context": str(i)}) for i in range(5)],
        ("hear", "p", 5),
        ("hear", "c", 2),
        ("silent", "c"),
        ("send", "c", {"messageId": 0}),
        ("hear", "c"),
        ("silent", "c"),
        ("send", "c", {"type": "negativeAcknowledge", "messageId": 1}),
        ("hear", "c"),
        ("silent", "c"),
    ],
    "negative acknowledgement": [
        ("open", "c", _consumer("n", "s", "?subscriptionType=Shared&negativeAckRedeliveryDelay=100")),
        ("open", "p", _producer("n")),
        *_sends("p", _MESSAGE),
        ("hear", "c"),
        ("send", "c", {"type": "negativeAcknowledge", "messageId": 0}),
        ("hear", "c"),
        ("send", "c", {"messageId": 1}),
        ("silent", "c", 0.5),
    ],
    "pulling": [
        ("open", "c", _consumer("q", "s", "?pullMode=true")),
        ("open", "p", _producer("q")),
        *_sends("p", *[_MESSAGE] * 5),
        ("silent", "c"),
        ("send", "c", {"type": "permit", "permitMessages": 2}),
        ("hear", "c", 2),
        ("silent", "c"),
        ("send", "c", {"messageId": 0}),
        ("silent", "c"),
        ("send", "c", {"type": "permit", "permitMessages": 1}),
        ("hear", "c"),
        ("silent", "c"),
        ("send", "c", {"type": "permit"}),
        ("hear", "c"),
    ],
    "wrong frames of consumers": [
        *[
            step
            for number, frame in enumerate((
                "junk", "[]", {}, {"type": "bogus"}, {"messageId": "%%"}, {"type": "permit", "permitMessages": "x"},
            ))
            for step in (
                ("open", f"c{number}", _consumer("z", f"s{number}")), ("send", f"c{number}", frame),
                ("hear", f"c{number}"),
            )
        ],
        ("open", "e", _consumer("z", "e")),
        ("send", "e", {"type": "permit", "permitMessages": 5}),
        ("silent", "e"),
        ("send", "e", {"messageId": "CAEQAA=="}),
        ("silent", "e"),
        ("send", "e", b"\x00"),
        ("silent", "e"),
    ],
    "the end of a topic": [
        ("open", "c", _consumer("u")),
        ("send", "c", {"type": "isEndOfTopic"}),
        ("hear", "c"),
        ("rest", "POST", "/admin/v2/persistent/public/default/u/terminate"),
        ("silent", "c", 0.5),
        ("send", "c", {"type": "isEndOfTopic"}),
        ("hear", "c"),
        ("send", "c", {"type": "unsubscribe"}),
        ("silent", "c", 0.5),
        ("rest", "DELETE", "/admin/v2/persistent/public/default/u/subscription/s"),
        ("open", "p", _producer("u")),
    ],
    "reading": [
        ("open", "p", _producer("d")),
        *_sends("p", *[{**_MESSAGE, "key": str(i)} for i in range(3)]),
        ("open", "r", _reader("d", "?messageId=earliest&receiverQueueSize=2")),
        ("hear", "r", 2),
        ("silent", "r"),
        ("send", "r", {"messageId": 0}),
        ("hear", "r"),
        ("send", "r", {"type": "isEndOfTopic"}),
        ("hear", "r"),
        ("open", "l", _reader("d")),
        ("silent", "l"),
        *_sends("p", _MESSAGE),
        ("hear", "l"),
        ("send", "r", "junk"),
        ("hear", "r"),
    ],
    "partitions": [
        ("rest", "PUT", "/admin/v2/persistent/public/default/pt/partitions", 3),
        ("open", "c", _consumer("pt")),
        ("open", "p", _producer("pt", "?messageRoutingMode=RoundRobinPartition")),
        *_sends("p", {**_MESSAGE, "key": "a"}),
        ("hear", "c"),
        ("send", "c", {"messageId": 0}),
        ("open", "r", _reader("pt", "?messageId=earliest")),
        ("hear", "r"),
    ],
    "a batch": [
        ("open", "c", _consumer("bt")),
        ("open", "p", _producer("bt", "?batchingEnabled=true&batchingMaxMessages=2&batchingMaxPublishDelay=60000"
                                "&compressionType=LZ4")),
        ("send", "p", {**_MESSAGE, "context": "1"}),
        ("silent", "p"),
        ("send", "p", {**_MESSAGE, "context": "2"}),
        ("hear", "p", 2),
        ("hear", "c", 2),
    ],
    "a dead letter": [
        ("open", "c", _consumer(
            "dl", "s", "?subscriptionType=Shared&maxRedeliverCount=1&negativeAckRedeliveryDelay=100"
        )),
        ("open", "p", _producer("dl")),
        *_sends("p", {**_MESSAGE, "key": "k", "properties": {"a": "b"}}),
        ("hear", "c"),
        ("send", "c", {"type": "negativeAcknowledge", "messageId": 0}),
        ("hear", "c"),
        ("open", "q", _consumer("dl-s-DLQ", "x", "?subscriptionInitialPosition=Earliest")),
        ("send", "c", {"type": "negativeAcknowledge", "messageId": 1}),
        ("hear", "q"),
        ("silent", "c"),
    ],
    "a non-persistent topic": [
        ("open", "c", "/ws/v2/consumer/non-persistent/public/default/np/s"),
        ("open", "p", "/ws/v2/producer/non-persistent/public/default/np"),
        *_sends("p", _MESSAGE),
        ("hear", "c"),
        ("send", "c", {"messageId": 0}),
        ("silent", "c"),
    ],
    "several topics": [
        ("open", "p", _producer("v3a")),
        ("open", "c", "/ws/v3/consumer/s?topics=persistent://public/default/v3a,persistent://public/default/v3b"),
        ("open", "d", "/ws/v3/consumer/s2?topicsPattern=persistent://public/default/v3."),
        *_sends("p", _MESSAGE),
        ("hear", "c"),
        ("hear", "d"),
    ],
    "no handshake": [
        ("rest", "GET", _producer("g")),
        ("rest", "POST", _producer("g")),
        ("rest", "GET", "/ws/v2/bogus"),
    ],
}  # fmt: skip

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def play(steps: Sequence[Step], http: str) -> list[Any]:
    """Play a scenario against the broker whose REST interface is at ``http``; returns what came back."""
    stage = _Stage(http)
    try:
        for step in steps:
            getattr(stage, step[0])(*step[1:])
    finally:
        stage.finish()
    return stage.heard


class _Stage:
    def __init__(self, http: str) -> None:
        self.http = http
        self.heard: list[Any] = []
        self._open: dict[str, ClientConnection] = {}
        self._ids: dict[str, list[str]] = {}

    def rest(self, method: str, path: str, body: Any = None) -> None:
        """A request that prepares something; its status is written down."""
        answer = httpx.request(method, self.http + path, json=body, timeout=20)
        self.heard.append([method, path, answer.status_code])

    def open(self, who: str, path: str, headers: dict[str, str] | None = None) -> None:
        """A handshake."""
        url = self.http.replace("http://", "ws://") + path
        try:
            self._open[who] = connect(
                url,
                compression=None,
                legacy=True,
                open_timeout=20,
                close_timeout=5,
                max_size=None,
                additional_headers=headers,
            )
        except InvalidStatus as error:
            self.heard.append(
                [who, "refused", error.response.status_code, reason_in(bytes(error.response.body or b""))]
            )
        except (InvalidURI, SecurityError):
            self.heard.append([who, "redirected"])
        else:
            self.heard.append([who, "open"])

    def send(self, who: str, frame: Any) -> None:
        """Send a frame; ``{"messageId": n}`` stands for the id of the n-th message that ``who`` received."""
        if isinstance(frame, dict) and isinstance(frame.get("messageId"), int):
            frame = {**frame, "messageId": self._ids[who][frame["messageId"]]}
        self._open[who].send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    def hear(self, who: str, frames: int = 1, timeout: float = 10) -> None:
        """Receive so many frames, or write down why not."""
        for _ in range(frames):
            try:
                frame = self._open[who].recv(timeout=timeout)
            except TimeoutError:
                self.heard.append([who, "silent"])
                return
            except ConnectionClosed as closed:
                end = closed.rcvd
                self.heard.append([who, "closed", *(("lost",) if end is None else (end.code, end.reason))])
                return
            found = json.loads(frame)
            if "messageId" in found:
                self._ids.setdefault(who, []).append(found["messageId"])
            self.heard.append([who, shared(found)])

    def silent(self, who: str, seconds: float = _SHORT) -> None:
        """Nothing comes for a while."""
        self.hear(who, 1, seconds)

    def leave(self, who: str) -> None:
        """Close properly."""
        self._open.pop(who).close()

    def finish(self) -> None:
        for one in self._open.values():
            one.close()


def reason_in(body: bytes) -> str:
    """Why a handshake was refused: the reason in JSON, or the message on Jetty's page."""
    try:
        found = json.loads(body)
        return str(found.get("reason", found.get("message", "")))
    except ValueError:
        message = re.search(rb"<th>MESSAGE:</th><td>(.*?)</td>", body, re.DOTALL)
        return html.unescape(message.group(1).decode()) if message else ""


def shared(frame: dict[str, Any]) -> dict[str, Any]:
    """A frame without what is different each time; its members stay in their order."""
    return {name: _kind(name, value) for name, value in frame.items()}


def _kind(name: str, value: Any) -> Any:
    if name == "messageId" and isinstance(value, str):
        return f"id of fields {fields_of(base64.b64decode(value))}"
    if isinstance(value, str):
        return _TIME.sub(lambda match: f"time with {match.group(2)}", value)
    return value


def fields_of(message_id: bytes) -> list[int]:
    """Numbers of the fields of a serialized message id."""
    numbers, at = [], 0
    while at < len(message_id):
        tag, at = _varint(message_id, at)
        numbers.append(tag >> 3)
        if tag & 7 == 0:
            _, at = _varint(message_id, at)
        else:
            size, at = _varint(message_id, at)
            at += size
    return numbers


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


if __name__ == "__main__":
    # python -m tests.support.websocket_scenarios URL: what the broker there says, as tests/admin/websocket has it
    said = {name: play(steps, sys.argv[1]) for name, steps in SCENARIOS.items()}
    sys.stdout.write(json.dumps(said, indent=1, ensure_ascii=False) + "\n")
