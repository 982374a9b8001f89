"""What one client acknowledges in a transaction another gets again after an abort, and no more after a commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tests.interop.encodings import Fields, b64
from tests.interop.letters import asked
from tests.interop.matrix import Cell
from tests.interop.peers import Peer, PeerFailedError

MESSAGES: Final[list[Fields]] = [{"data": b64(b"%d" % number), "properties": {}} for number in range(5)]


def cells(peers: Mapping[str, Peer]) -> Iterator[Cell]:
    """Return one cell for each end of a transaction, each client that has them, and each that comes after it."""
    for end in ("commit", "abort"):
        for first in [name for name in peers if name != "official"]:
            for second in peers:
                try:
                    wrong = _ended(peers, first, second, end)
                except PeerFailedError as error:
                    wrong = str(error)
                yield Cell(f"acknowledged in a transaction, {end}", first, second, wrong)


def _ended(peers: Mapping[str, Peer], first: str, second: str, end: str) -> str:
    topic = f"interop-acknowledged-{end}-{first}-{second}"
    producer = {"name": "writer", "batching": True}
    asked(peers[first], do="write", topic=topic, schema=None, messages=MESSAGES, producer=producer)
    asked(
        peers[first], do="read", topic=topic, subscription="s", schema=None, count=len(MESSAGES), transaction=end,
        consumer={"type": "Shared"},
    )  # fmt: skip
    left = MESSAGES if end == "abort" else []
    answer = asked(
        peers[second], do="read", topic=topic, subscription="s", schema=None, count=len(left), nothing_more=True,
        consumer={"type": "Shared"},
    )  # fmt: skip
    found = sorted(one["data"] for one in answer["messages"])
    return "" if found == [one["data"] for one in left] else f"{found} came, and not {left}"
