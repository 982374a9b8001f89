"""Offsets of a query as Spark keeps them in its checkpoint: JSON, versioned, half-open.

    {"v": 1, "p": {"persistent://public/default/t-partition-0": "12:400:0", ...}}

Each value is a place, the point before the next message to read (`client.place`), perhaps followed by ``@index`` (the
broker's running number of that message), which this version accepts and does not need. Keys are sorted, so equal
offsets are equal texts; Spark compares texts to see whether there is something new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from magnetar.client.place import Place
from magnetar.model.errors import InvalidValueError

VERSION: Final = 1


def to_json(places: Mapping[str, Place]) -> dict[str, Any]:
    """What Spark stores."""
    return {"v": VERSION, "p": {topic: str(places[topic]) for topic in sorted(places)}}


def from_json(offset: Mapping[str, Any]) -> dict[str, Place]:
    """What Spark gives back; InvalidValueError for a checkpoint of another source or a later version."""
    version, places = offset.get("v"), offset.get("p")
    if version != VERSION or not isinstance(places, dict):
        raise InvalidValueError(
            f"the checkpoint holds offsets of version {version!r}, this is version {VERSION}: it was written by "
            "another source or a later release; use that release, or a new checkpoint"
        )
    return {topic: Place.parse(str(text).partition("@")[0]) for topic, text in places.items()}
