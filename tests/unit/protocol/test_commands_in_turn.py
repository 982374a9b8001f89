"""SENDs of many producers and ACKs of many consumers that are laid out alike are read as they are read one by one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from crc32c import crc32c

from magnetar.protocol import codec, decoder
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder, MalformedBytesError
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.protocol.frames import with_checksum

ENTRY = build_entry(EntryMetadata("p", 0, 1), b"payload")


def send(producer_id: int, sequence_id: int, entry: bytes = ENTRY) -> bytes:
    return codec.encode(c.CommandSend(producer_id, sequence_id, 1, None, False, None, False, None, entry))


def ack(consumer_id: int, entry: int, ledger: int = 7) -> bytes:
    return codec.encode(c.CommandAck(consumer_id, c.AckType.Individual, (c.MessageIdData(ledger, entry),)))


def outcome(frames: bytes, *, from_client: bool) -> tuple[list[c.Command], str | None]:
    """The commands, those of runs one by one, and the error at the end of them."""
    refused = None
    try:
        found = Decoder(1 << 16, from_client=from_client).feed(frames)
    except MalformedBytesError as error:
        found, refused = error.decoded, str(error)
    one_by_one: list[c.Command] = []
    for some in found:
        one_by_one += some.commands() if isinstance(some, c.SendRun | c.AckRun) else [some]
    return one_by_one, refused


def same(frames: bytes) -> None:
    assert outcome(frames, from_client=True) == outcome(frames, from_client=False)


@pytest.fixture
def singles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read on its own from here on."""
    found: list[str] = []
    for name in ("read_send", "read_ack"):
        read: Callable[..., object] = getattr(decoder, name)

        def counted(*given: object, name: str = name, read: Callable[..., object] = read) -> object:
            found.append(name)
            return read(*given)

        monkeypatch.setattr(decoder, name, counted)
    return found


@pytest.mark.parametrize("made", [send, ack])
@pytest.mark.parametrize("first", [0, 126, 200, 16_300])
@pytest.mark.parametrize("number", [0, 126, 16_300, (1 << 21) - 30, (1 << 56) - 30])
def test_commands_of_many_in_turn(
    made: Callable[[int, int], bytes], first: int, number: int, singles: list[str]
) -> None:
    """Ids of one byte and of two, and numbers of every length; only where a length changes one is read on its own."""
    frames = b"".join(made(first + turn % 60, number + turn) for turn in range(180))
    found = Decoder(from_client=True).feed(frames)
    assert len(found) == 180
    assert len(singles) <= 8
    same(frames)


def test_ledgers_of_their_own() -> None:
    """Each topic has its own, one after the other or far apart."""
    for ledgers in (range(100, 160), range(16_360, 16_400), [1 << (index % 60) for index in range(60)]):
        same(b"".join(ack(index, index * 3, ledger) for index, ledger in enumerate(ledgers)))


def test_entries_of_many_sizes(singles: list[str]) -> None:
    """What is laid out alike is the command; payloads may differ."""
    entries = [build_entry(EntryMetadata("p", turn, 1), bytes(turn % 97)) for turn in range(100)]
    frames = b"".join(send(turn % 30, 1000 + turn, entry) for turn, entry in enumerate(entries))
    found = Decoder(from_client=True).feed(frames)
    assert [one.entry for one in found if isinstance(one, c.CommandSend)] == entries
    assert not singles


@pytest.mark.parametrize(("made", "run"), [(send, c.SendRun), (ack, c.AckRun)])
def test_a_run_behind_commands_in_turn_is_whole(made: Callable[[int, int], bytes], run: type) -> None:
    found = Decoder(from_client=True).feed(
        b"".join([*(made(turn, 5) for turn in range(10)), *(made(20, turn) for turn in range(30))])
    )
    assert [type(one) for one in found[10:]] == [run]
    assert len(found[10].commands()) == 30  # type: ignore[union-attr]


@pytest.mark.parametrize("pairs", [send, ack])
def test_two_of_each(pairs: Callable[[int, int], bytes]) -> None:
    same(b"".join(pairs(turn // 2, turn) for turn in range(40)))


BEYOND = (1 << 20).to_bytes(4, "big") + bytes(30)
"""Metadata that would end behind their frame."""
ODD = [
    codec.encode(c.CommandPing()),
    codec.encode(c.CommandSend(3, 7, 5, None, False, None, False, None, ENTRY)),
    codec.encode(c.CommandSend(3, 7, 1, 9, False, None, False, None, ENTRY)),
    codec.encode(c.CommandSend(3, 7, 1, None, True, None, False, None, ENTRY)),
    codec.encode(c.CommandSend(3, 7, 1, None, False, c.TxnId(1, 2), False, None, ENTRY)),
    send(3, 7, ENTRY[:-1] + b"!"),
    send(3, 7, build_entry(EntryMetadata("p", 0, 1), bytes(5_000))),
    send(3, 7, b"\x0e\x01" + crc32c(BEYOND).to_bytes(4, "big") + BEYOND),
    send(1 << 20, 7),
    codec.encode(c.CommandAck(3, c.AckType.Cumulative, (c.MessageIdData(7, 4),))),
    codec.encode(c.CommandAck(3, c.AckType.Individual, (c.MessageIdData(7, 4, 3, 2),))),
    codec.encode(c.CommandAck(3, c.AckType.Individual, (c.MessageIdData(7, 4), c.MessageIdData(7, 5)))),
    codec.encode(c.CommandAck(3, c.AckType.Individual, (c.MessageIdData(7, 4),), request_id=5)),
    codec.encode(c.CommandAck(3, c.AckType.Individual, (c.MessageIdData(7, 4),), txn=c.TxnId(1, 2))),
    ack(1 << 20, 4),
]


@pytest.mark.parametrize("odd", range(len(ODD)))
@pytest.mark.parametrize("made", [send, ack])
def test_what_is_not_alike_is_read_as_before(made: Callable[[int, int], bytes], odd: int) -> None:
    """Wherever it stands among the others."""
    for at in (0, 1, 2, 9, 10):
        frames = [made(turn, turn) for turn in range(10)]
        frames.insert(at, ODD[odd])
        same(b"".join(frames))


@pytest.mark.parametrize("made", [send, ack])
def test_any_byte_of_one_changed(made: Callable[[int, int], bytes]) -> None:
    """The second of four, each byte of it to those that mean something and to its neighbours."""
    frames = [made(130 + turn, 300 + turn) for turn in range(4)]
    for at in range(len(frames[1])):
        old = frames[1][at]
        for value in {0, 1, 7, 8, 0x10, 0x1A, 0x32, 0x52, 0x7F, 0x80, 0xFF, old ^ 1, old ^ 0x80}:
            changed = frames[1][:at] + bytes((value,)) + frames[1][at + 1 :]
            same(b"".join([frames[0], changed, *frames[2:]]))


@pytest.mark.parametrize("made", [send, ack])
def test_an_unfinished_frame_at_every_byte(made: Callable[[int, int], bytes]) -> None:
    frames = b"".join(made(turn, 124 + turn) for turn in range(8))
    for cut in range(len(frames)):
        of_client = Decoder(from_client=True)
        assert of_client.feed(frames[:cut]) + of_client.feed(frames[cut:]) == Decoder().feed(frames), cut


@pytest.mark.parametrize("made", [send, ack])
def test_a_slice_bounds_them(made: Callable[[int, int], bytes]) -> None:
    frames = b"".join(made(turn % 100, 200 + turn) for turn in range(1000))
    of_client = Decoder(from_client=True)
    of_client.slice_bytes = 10 * len(made(0, 200))
    found = of_client.feed_slice(frames)
    assert 10 <= len(found) <= 11
    while of_client.waiting:
        more = of_client.more()
        assert len(more) <= 11
        found += more
    assert found == Decoder().feed(frames)


def test_a_frame_that_is_too_large_is_one_among_them_as_well() -> None:
    small = [send(turn, turn) for turn in range(4)]
    large = send(5, 5, build_entry(EntryMetadata("p", 0, 1), bytes(200)))
    for from_client in (True, False):
        with pytest.raises(MalformedBytesError, match="bytes") as raised:
            Decoder(len(small[0]) + 100, from_client=from_client).feed(b"".join([*small, large, *small]))
        assert len(raised.value.decoded) == 4


@pytest.mark.parametrize("seed", range(10))
def test_any_mixture_of_both(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        number = rng.choice((0, 120, 16_380, 1 << 28))
        ids = rng.sample(range(300), rng.randrange(1, 5))
        frames = bytearray()
        for offset in range(rng.randrange(16)):
            frames += rng.choice((send, send, ack, ack))(rng.choice(ids), number + offset)
        if rng.random() < 0.5 and frames:
            frames[rng.randrange(len(frames))] = rng.randrange(256)
        same(bytes(frames))


@pytest.mark.parametrize("turns", [1, 0])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 10, 11, 20, 21])
def test_metadata_that_end_beyond_their_entry_are_found_as_they_are_alone(beyond: int, turns: int) -> None:
    """Of many producers in turn, and of one; the checksum is right."""
    metadata = bytes(ENTRY[10:])
    wrong = with_checksum((len(metadata) + beyond).to_bytes(4, "big") + metadata)
    assert len(wrong) == len(ENTRY)
    frames = b"".join(send(turn % 60 * turns, 500 + turn, wrong if turn == 50 else ENTRY) for turn in range(60))
    same(frames)
    found, refused = outcome(frames, from_client=True)
    assert (len(found), refused is None) == ((60, True) if beyond <= 0 else (50, False))
