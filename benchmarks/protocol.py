"""Microseconds per command of the wire's hot paths: `python -m benchmarks.protocol`.

Entries of 100 bytes, 500 commands per feed, best of seven rounds; garbage collection is off, as timeit has it.
"""

from __future__ import annotations

from collections.abc import Callable
from timeit import repeat

from magnetar.protocol.codec import encode
from magnetar.protocol.commands import (
    AckType,
    Command,
    CommandAck,
    CommandFlow,
    CommandMessage,
    CommandSend,
    CommandSuccess,
    MessageIdData,
    TxnId,
)
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.entries import EntryMetadata, build_entry, metadata_of, publish_time
from magnetar.protocol.handmade_frames.deliveries import Deliveries
from magnetar.protocol.handmade_frames.receipts import Receipts
from magnetar.protocol.sticky_key import sticky_key

COUNT = 500
FIRST = 123_456
LEDGER = 1234


def measure(name: str, run: Callable[[], object], per: int = 1) -> None:
    number = 20_000 // per
    best = min(repeat(run, number=number, repeat=7)) / number / per
    print(f"{name:34} {best * 1e6:6.2f} us")


def stream(make: Callable[[int], Command]) -> bytes:
    return b"".join(encode(make(FIRST + i)) for i in range(COUNT))


def main() -> None:
    entry = build_entry(EntryMetadata("standalone-0-1", 7, 1_700_000_000_000), b"x" * 62)
    individual = AckType.Individual
    decoder = Decoder()
    streams = {
        "SEND": stream(lambda n: CommandSend(3, n, 1, None, False, None, False, None, entry)),
        "SEND in a transaction (codec)": stream(
            lambda n: CommandSend(3, n, 1, None, False, TxnId(1, 2), False, None, entry)
        ),
        "ACK": stream(lambda n: CommandAck(3, individual, (MessageIdData(LEDGER, n),))),
        "ACK with ack set (codec)": stream(
            lambda n: CommandAck(3, individual, (MessageIdData(LEDGER, n, ack_set=(5,)),))
        ),
        "MESSAGE": stream(lambda n: CommandMessage(3, MessageIdData(LEDGER, n), 0, (), None, None, entry)),
        "FLOW (codec)": stream(lambda n: CommandFlow(3, 1000)),
    }
    for name, data in streams.items():
        measure(f"decode {name}", lambda data=data: decoder.feed(data), COUNT)  # type: ignore[misc]  # bound now
    receipts = Receipts(3, LEDGER)
    ids = list(range(FIRST, FIRST + COUNT))
    measure("receipt", lambda: receipts(FIRST, 77_777))
    measure("receipts, run of 500", lambda: receipts.run(ids, 77_777), COUNT)
    deliveries = Deliveries(3)
    entries = [entry] * COUNT
    measure("MESSAGE header", lambda: deliveries.header(LEDGER, 77_777, 100))
    measure("MESSAGE header, redelivered", lambda: deliveries.header(LEDGER, 77_777, 100, 1))
    measure(
        "MESSAGE frames, 500 entries",
        lambda: deliveries.frames(LEDGER, range(77_777, 77_777 + len(entries)), entries, []),
        COUNT,
    )
    measure("encode SUCCESS (codec)", lambda: encode(CommandSuccess(1)))
    measure("publish_time", lambda: publish_time(entry))
    measure("sticky_key", lambda: sticky_key(entry))
    measure("metadata_of", lambda: metadata_of(entry))


if __name__ == "__main__":
    main()
