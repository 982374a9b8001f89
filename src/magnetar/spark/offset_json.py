"""Offsets as Spark keeps them in a checkpoint: JSON, versioned, half-open.

    {"v": 1, "p": {"persistent://public/default/t-partition-0": "12:400:0", ...}, "n": [0, 0]}

``n``, in the ends of micro-batches, is minPartitions and maxPartitions when it was planned: a repetition is cut into
tasks as the first attempt was, whatever the options say by then.

``s``, in the offsets that a stream gives, is its subscription: a stream that goes on with another one says so.

Each value is a read position (`client.read_position`), perhaps followed by ``@index`` (the broker's running number of
the message after it), which this version accepts and does not need. Keys are sorted, so equal offsets are equal texts;
Spark compares texts to see whether there is something new.

The end of a micro-batch may have more, under "c": positions where the ranges that end there are cut into tasks. Only
the driver that made it could ask the broker for them, and a driver that plans the micro-batch again must cut alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError

VERSION: Final = 1


Cuts = Mapping[str, Sequence[ReadPosition]]
"""Per topic-partition, in order."""


def to_json(
    positions: Mapping[str, ReadPosition],
    tasks: tuple[int, int] | None = None,
    cuts: Cuts | None = None,
    subscription: str | None = None,
) -> dict[str, Any]:
    """Return what Spark stores; ``tasks`` are the least and the most that are wanted, 0 is "no limit"."""
    found: dict[str, Any] = {"v": VERSION, "p": {topic: str(positions[topic]) for topic in sorted(positions)}}
    if tasks is not None:
        found["n"] = list(tasks)
    if cuts:
        found["c"] = {topic: [str(position) for position in cuts[topic]] for topic in sorted(cuts)}
    if subscription is not None:
        found["s"] = subscription
    return found


def tasks_of(offset: Mapping[str, Any], otherwise: tuple[int, int]) -> tuple[int, int]:
    """Return the ``tasks`` that went into an offset."""
    least, most = offset.get("n", otherwise)
    return int(least), int(most)


def own_offset(given: Any) -> dict[str, Any] | None:
    """Return an offset of ours, given as text or as what the text holds; None if it is another source's."""
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return None
    ours = isinstance(found, dict) and isinstance(found.get("v"), int) and isinstance(found.get("p"), dict)
    return found if ours else None


def from_json(offset: Mapping[str, Any]) -> dict[str, ReadPosition]:
    """Return the positions of an offset that Spark gives back; InvalidValueError for a checkpoint of another source or
    a later version."""
    version, positions = offset.get("v"), offset.get("p")
    if version != VERSION or not isinstance(positions, dict):
        raise InvalidValueError(
            f"the checkpoint holds offsets of version {version!r}, this is version {VERSION}: it was written by "
            "another source or a later release; use that release, or a new checkpoint"
        )
    return {topic: ReadPosition.parse(str(text).partition("@")[0]) for topic, text in positions.items()}


def cuts_of(offset: Mapping[str, Any]) -> dict[str, list[ReadPosition]]:
    """Return where the micro-batch that ends at this offset is cut; nothing if it does not say."""
    return {topic: [ReadPosition.parse(text) for text in texts] for topic, texts in offset.get("c", {}).items()}
