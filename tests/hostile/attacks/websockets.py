"""WebSockets: floods of small frames, messages that never become whole, and messages that are absurd."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Final

from tests.hostile.raw_websocket import CONSUMER, PRODUCER, READER, RawWebSocket, drained
from tests.hostile.victim import Target
from tests.support.websocket_frames import BINARY, CONTINUATION, PING, PONG, TEXT, ws_frame

_MESSAGE_MAX: Final = 1_000_000
"""Just below what a message may have by default."""


def frames(target: Target, scale: float) -> str:
    """As many small frames as the socket takes, of every kind that costs the sender two bytes and more."""
    count = int(80_000 * scale)
    permit = b'{"type":"permit","permitMessages":1}'
    floods = (
        (PRODUCER, b"", ws_frame(PING)),
        (PRODUCER, b"", ws_frame(PONG, b"x" * 100)),
        (PRODUCER, ws_frame(TEXT, b"{", last=False), ws_frame(CONTINUATION, last=False)),
        (PRODUCER, ws_frame(TEXT, b'"', last=False), ws_frame(CONTINUATION, b"x", last=False)),
        (PRODUCER, b"", ws_frame(BINARY)),
        (PRODUCER, b"", ws_frame(TEXT)),
        (PRODUCER, b"", ws_frame(TEXT, b'{"payload":""}')),
        (CONSUMER, b"", ws_frame(TEXT, b'{"type":"isEndOfTopic"}')),
        (CONSUMER, b"", ws_frame(TEXT, permit)),
        (CONSUMER, b"", ws_frame(TEXT, b'{"messageId":"CAAQAA=="}')),
        (READER, b"", ws_frame(TEXT, b"{}")),
    )
    for number, (kind, first, one) in enumerate(floods):
        path = f"{kind}frames-{number}" + ("/s" if kind is CONSUMER else "")
        with RawWebSocket(target.http_port, path, timeout=120.0) as opened:
            opened.say(first)
            drained(opened.socket, one * 1000, max(1, count // 1000))
    return f"{len(floods)} floods of {count:,} frames"


def half_messages(target: Target, scale: float) -> str:
    """Very many sockets hold all of a message but its end, in one frame or in many; then again."""
    count = max(20, int(600 * scale))
    whole = ws_frame(TEXT, b"x" * _MESSAGE_MAX)[:-1]
    parts = b"".join(
        ws_frame(TEXT if number == 0 else CONTINUATION, b"x" * 500, last=False) for number in range(_MESSAGE_MAX // 500)
    )
    for _ in range(2):
        held: list[RawWebSocket] = []
        for number in range(count):
            with contextlib.suppress(OSError):
                one = RawWebSocket(target.http_port, f"{PRODUCER}half-{number % 7}", timeout=20.0)
                held.append(one)
                one.socket.settimeout(0.2)  # the broker stops reading when its budget is spent
                one.say(whole if number % 2 else parts)
        time.sleep(3.0 * min(scale, 1.0))
        for one in held:
            one.close()
    return f"twice {count} WebSockets with a megabyte of a message each"


def absurd_messages(target: Target, scale: float) -> str:
    """Messages of very many properties, levels, digits and names, from twenty sockets at once; then a good one."""
    count = max(1, int(3 * scale))
    many = json.dumps({str(number): "" for number in range(60_000)})
    below = json.dumps({str(number): "" for number in range(19_000)})
    texts = [
        '{"payload":"","properties":' + many + "}",
        '{"payload":"","properties":' + below + "}",
        '{"payload":"","properties":{"k":"' + "x" * 900_000 + '"}}',
        '{"payload":"","key":"' + "k" * 900_000 + '"}',
        '{"payload":"","context":"' + "\\u0000" * 150_000 + '"}',
        '{"payload":"","replicationClusters":[' + ",".join(['"c"'] * 19_000) + "]}",
        '{"payload":"","sequenceId":' + "9" * 900_000 + "}",
        '{"payload":"","deliverAfterMs":1e' + "9" * 900_000 + "}",
        '{"payload":"","eventTime":"' + "2" * 900_000 + '"}',
        '{"payload":"' + "A" * 900_000 + "!" + '"}',
        '{"payload":' + "[" * 400_000 + "]" * 400_000 + "}",
        '{"a":' * 150_000 + "1" + "}" * 150_000,
        '{"payload":"","properties":{' + ",".join(['"a":"b"'] * 19_000) + "}}",
        "[" + "{}," * 300_000 + "{}]",
        " " * 900_000,
        '"' + "\\ud800" * 150_000 + '"',
    ]
    held = []
    for number in range(20):
        held.append(RawWebSocket(target.http_port, f"{PRODUCER}absurd-{number % 3}?maxPendingMessages=1000"))
    for number in range(count * len(texts)):
        text = texts[number % len(texts)].encode()
        for one in held:
            with contextlib.suppress(OSError):
                one.socket.settimeout(20.0)
                one.say(ws_frame(TEXT, text))
    for one in held:
        with contextlib.suppress(OSError):
            one.hear()
        one.close()
    for _ in range(count):
        with contextlib.suppress(OSError), RawWebSocket(target.http_port, f"{CONSUMER}absurd-0/s") as one:
            for kind in ("acknowledge", "negativeAcknowledge", "permit", "unsubscribe"):
                one.say(ws_frame(TEXT, json.dumps({"type": kind, "messageId": "A" * 700_000}).encode()))
                one.say(ws_frame(TEXT, b'{"type":"%s","permitMessages":%s}' % (kind.encode(), b"9" * 900_000)))
            one.hear()
    with RawWebSocket(target.http_port, f"{PRODUCER}absurd-0") as one:
        one.say(ws_frame(TEXT, b'{"payload":"eA=="}'))
        answer = one.hear()
        assert answer["result"] == "ok", f"a good message afterwards: {answer}"
    return f"{count * len(texts)} absurd messages from each of 20 WebSockets"


def deaf(target: Target, scale: float) -> str:
    """Peers that are sent much and take nothing of it."""
    with RawWebSocket(target.http_port, f"{PRODUCER}deaf") as one:
        for _ in range(max(1, int(60 * scale))):
            one.say(ws_frame(TEXT, b'{"payload":"%s"}' % (b"A" * 900_000)))
            assert one.hear()["result"] == "ok"
    held = []
    for number in range(max(10, int(100 * scale))):
        path = f"{READER}deaf?messageId=earliest" if number % 2 else f"{CONSUMER}deaf/s{number}"
        with contextlib.suppress(OSError):
            held.append(RawWebSocket(target.http_port, f"{path}{'&' if '?' in path else '?'}receiverQueueSize=1000"))
    time.sleep(5.0 * min(scale, 1.0))
    for one in held:
        one.close()
    return f"{len(held)} WebSockets that take nothing"
