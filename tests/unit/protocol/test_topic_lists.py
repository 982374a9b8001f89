"""Lists of topics in pieces are the frames that the codec makes in one go."""

from __future__ import annotations

from collections.abc import Generator

from hypothesis import given
from hypothesis import strategies as st

from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.handmade_frames import topic_lists

PIECES = st.lists(st.lists(st.text("aé/", min_size=1, max_size=200), max_size=5), max_size=4)
ID = st.integers(0, (1 << 64) - 1)


def made(frame: Generator[int, None, list[bytes]]) -> tuple[int, bytes]:
    names = 0
    while True:
        try:
            names += next(frame)
        except StopIteration as end:
            return names, b"".join(end.value)


@given(ID, PIECES, st.booleans(), st.booleans())
def test_topics_of_namespace(request: int, pieces: list[list[str]], filtered: bool, changed: bool) -> None:
    names = tuple(name for piece in pieces for name in piece)
    expected = codec.encode(c.CommandGetTopicsOfNamespaceResponse(request, names, filtered, "0a1b2c3d", changed))
    frame = topic_lists.topics_of_namespace(request, pieces, filtered=filtered, digest="0a1b2c3d", changed=changed)
    assert made(frame) == (len(names), expected)


@given(ID, ID, PIECES)
def test_watch_topic_list_success(request: int, watcher: int, pieces: list[list[str]]) -> None:
    names = tuple(name for piece in pieces for name in piece)
    expected = codec.encode(c.CommandWatchTopicListSuccess(request, watcher, names, "0a1b2c3d"))
    assert made(topic_lists.watch_topic_list_success(request, watcher, pieces, "0a1b2c3d")) == (len(names), expected)


def test_many_names_are_many_steps() -> None:
    names = [f"persistent://public/default/{number}" for number in range(100_000)]
    steps = list(topic_lists.watch_topic_list_success(1, 2, [names], "00000000"))
    assert steps == [topic_lists.NAMES_PER_STEP] * 200
