"""Retry letters and dead letters between clients: one refuses what another takes up again (rules 6.4.1, 6.5.3).

A message is retried by one client, received and retried by another with the same subscription, and dies with the first;
its names and values are Java's at each step. Dead letters of every client are read by every client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tests.interop.encodings import EVENT_TIME, Fields, b64
from tests.interop.matrix import Cell
from tests.interop.peers import Peer, PeerFailedError

MESSAGE: Final[Fields] = {
    "data": b64(b"-5 EUR"), "key": "customer", "properties": {"shop": "north"}, "event_time": EVENT_TIME,
}  # fmt: skip
SUBSCRIPTION: Final = "s"
DELAY_MS: Final = 300
WHY: Final = {"why": "full"}


def cells(peers: Mapping[str, Peer]) -> Iterator[Cell]:
    """Return one cell for each pair that retries, and one for each that dies and is read."""
    retriers = [name for name in peers if name != "official"]
    for first in retriers:
        for second in retriers:
            try:
                wrong = _retried(peers, first, second)
            except PeerFailedError as error:
                wrong = str(error)
            yield Cell("retry letters", first, second, wrong)
    for writer in peers:
        try:
            read = dict(_dead(peers, writer))
        except PeerFailedError as error:
            read = {"": str(error)}
        for reader, wrong in read.items():
            yield Cell("dead letters", writer, reader, wrong)


def asked(peer: Peer, **job: object) -> Fields:
    """Return the answer of a job. Raises PeerFailedError for an error too."""
    answer = peer.ask(**job)
    if "error" in answer:
        raise PeerFailedError(f"{peer.name}: {answer['error']}")
    return answer


def _write(peer: Peer, topic: str) -> str:
    """Return the original's id as Java's client writes it into properties."""
    answer = asked(peer, do="write", topic=topic, schema=None, messages=[MESSAGE], producer={"name": "writer"})
    one = answer["ids"][0]
    return f"{one['ledger']}:{one['entry']}:-1"


def _retried(peers: Mapping[str, Peer], first: str, second: str) -> str:
    topic = f"interop-retry-{first}-{second}"
    consumer = {"type": "Shared", "retry": True, "max_redeliver_count": 2}
    origin = _write(peers[first], topic)
    found: list[Fields] = []
    for name in (first, second, first):
        answer = asked(
            peers[name], do="read", topic=topic, subscription=SUBSCRIPTION, consumer=consumer, count=1, then="retry",
            delay_ms=DELAY_MS, properties=WHY, schema=None,
        )  # fmt: skip
        found += answer["messages"]
    wanted = [retry_properties(topic, origin, times) for times in range(3)]
    wrong = [
        f"try {number}: {part}"
        for number, (one, properties) in enumerate(zip(found, wanted, strict=True))
        for part in _differences(one, properties)
    ]
    for reader in peers:
        answer = asked(
            peers[reader], do="read", topic=f"{topic}-{SUBSCRIPTION}-DLQ", subscription=f"read by {reader}", count=1,
            schema=None,
        )  # fmt: skip
        wanted_at_last = {**retry_properties(topic, origin, 3), "REAL_SUBSCRIPTION": SUBSCRIPTION}
        wrong += [f"dead: {part}" for part in _differences(answer["messages"][0], wanted_at_last, more=True)]
    return "; ".join(wrong[:3])


def _dead(peers: Mapping[str, Peer], writer: str) -> Iterator[tuple[str, str]]:
    topic = f"interop-dead-{writer}"
    origin = _write(peers[writer], topic)
    asked(
        peers[writer], do="read", topic=topic, subscription=SUBSCRIPTION, count=2, then="refuse", hold=True,
        schema=None, consumer={"type": "Shared", "max_redeliver_count": 1},
    )  # fmt: skip
    wanted = {
        **MESSAGE["properties"],
        "REAL_TOPIC": f"persistent://public/default/{topic}",
        "ORIGIN_MESSAGE_ID": origin,
    }
    if writer == "official":  # which has a form of its own
        wanted["ORIGIN_MESSAGE_ID"] = f"({origin.removesuffix(':-1').replace(':', ',')},-1,-1)"
    for reader in peers:
        answer = peers[reader].ask(
            do="read", topic=f"{topic}-{SUBSCRIPTION}-DLQ", subscription=f"read by {reader}", count=1, schema=None
        )
        if "error" in answer:
            yield reader, str(answer["error"])
        else:
            yield reader, "; ".join(_differences(answer["messages"][0], wanted, more=True))
    if writer != "official":  # which crashes at times when such a consumer closes
        asked(peers[writer], do="release", subscription=SUBSCRIPTION)


def retry_properties(topic: str, origin: str, times: int) -> dict[str, str]:
    """Return what Java's client gives a message that was retried so often."""
    properties: dict[str, str] = dict(MESSAGE["properties"])
    if times:
        properties |= WHY | {
            "REAL_TOPIC": f"persistent://public/default/{topic}", "REAL_SUBSCRIPTION": SUBSCRIPTION,
            "ORIGIN_MESSAGE_ID": origin, "ORIGIN_MESSAGE_IDY_TIME": origin,
            "RECONSUMETIMES": str(times), "DELAY_TIME": str(DELAY_MS),
        }  # fmt: skip
    return properties


def _differences(found: Fields, properties: Mapping[str, str], *, more: bool = False) -> Iterator[str]:
    """``more``: whether the letter may have properties of its writer beside those of Java's client."""
    if (found.get("data"), found.get("key_bytes")) != (MESSAGE["data"], b64(MESSAGE["key"].encode())):
        yield f"payload and key are {found.get('data')} and {found.get('key_bytes')}"
    given = found["properties"]
    compared = {name: value for name, value in given.items() if not more or name in properties}
    if compared != properties:
        yield f"properties are {given}, and not {dict(properties)}"
