"""What Java's client wrote, kept in the repository: entries as the broker stored them, with the schemas beside them.

`make interop ARGS=--record` has Java's client write anew; `tests.interop.test_java_entries` reads them without Java.
"""

from __future__ import annotations

import json
import lzma
import tempfile
from pathlib import Path
from typing import Any, Final

from tools.servers import magnetar
from tools.servers.process import HOST, Server

from tests.conformance.wire import Wire
from tests.interop.encodings import Encoding, b64, encodings
from tests.interop.matrix import SETTINGS, Matrix, make_keys
from tests.interop.peers import started

PLACE: Final = Path(__file__).parent / "java_entries.json.xz"
WRITER: Final = "java"
KEYS: Final = "keys"
"""Where the file has the keys of what is encrypted."""
LARGEST: Final = 12_000
"""``maxMessageSize`` of the recording, so that what is chunked stays small."""


def record(home: Path) -> Path:
    """Have Java's client write every encoding that is kept, and write the file. ``home``: the distribution."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="magnetar-interop-") as folder:
        place = Path(folder)
        with (
            magnetar.start(place / "broker", settings={**SETTINGS, "maxMessageSize": str(LARGEST)}) as server,
            started([WRITER], server.broker_url, home, place) as peers,
        ):
            keys = make_keys(place)
            matrix = Matrix(server, peers, keys)
            for encoding in golden_encodings():
                written = matrix.write(encoding, WRITER)
                found[encoding.name] = _stored(server, written.topic)
            found[KEYS] = {name: Path(path).read_text() for name, path in keys.items()}
    PLACE.write_bytes(lzma.compress(json.dumps(found, indent=0, sort_keys=True).encode(), preset=9))
    return PLACE


def _stored(server: Server, topic: str) -> dict[str, Any]:
    """Return the entries of a topic, and the schema that was registered, as they go over the wire."""
    with Wire.open((HOST, server.broker_port)) as wire:
        wire.connect()
        name = f"persistent://public/default/{topic}"
        wire.request("LOOKUP", topic=name)
        wire.request(
            "SUBSCRIBE",
            topic=name,
            subscription="keeps",
            subType="Exclusive",
            consumer_id=1,
            initialPosition="Earliest",
        )
        wire.send("FLOW", consumer_id=1, messagePermits=1_000)
        entries = [b64(one.headers) for one in wire.rest() if one.kind == "MESSAGE"]
        schema = wire.request("GET_SCHEMA", topic=name).body
        registered = b64(schema.schema.SerializeToString()) if schema.HasField("schema") else None  # type: ignore[attr-defined]  # of the generated class
        return {"entries": entries, "schema": registered}


def kept() -> dict[str, Any]:
    """Return what the file has, by the names of encodings."""
    found: dict[str, Any] = json.loads(lzma.decompress(PLACE.read_bytes()))
    return found


def golden_encodings() -> list[Encoding]:
    """Return the encodings that the file has."""
    return [one for one in encodings(LARGEST) if one.golden]
