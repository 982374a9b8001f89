"""A data directory that an earlier version wrote opens with this one, and says the same.

``written_by_5a6ca06.tar.xz`` was written by the broker of that commit (22 November 2026, segments of 128 KB) in two
lives, both ended by SIGKILL; ``.json`` is what the same broker said of a copy of it. In it are batches and single
messages with holes of acknowledgements, down to messages of a batch, on a deduplicated namespace; a committed, an
aborted and an open transaction; delayed messages; a compacted topic with newer messages; an Avro schema; policies of
the namespace and of a topic; partitions; and a topic whose consumed ledgers were trimmed, so that segments are missing
and living entries were moved out of others. The reserve was taken out of it.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Final

from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.verify import verify
from tests.compatibility.broker_contents import broker_contents
from tests.support.live_broker import HOST, free_port, live_broker

HERE: Final = Path(__file__).parent
NAME: Final = "written_by_5a6ca06"


def unpacked(directory: Path) -> Path:
    """The data directory, in a place of its own."""
    with tarfile.open(HERE / f"{NAME}.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    return directory / "data"


def test_an_older_versions_directory_holds_what_it_held(tmp_path: Path) -> None:
    unpacked(tmp_path)
    web = free_port()
    settings = {
        "webServicePort": web,
        "transactionCoordinatorEnabled": "true",
        "acknowledgmentAtBatchIndexLevelEnabled": "true",
        "brokerDeleteInactiveTopicsEnabled": "false",
    }
    with live_broker(tmp_path, **settings) as broker:
        found = broker_contents(broker.url, f"http://{HOST}:{web}")
    wanted = json.loads((HERE / f"{NAME}.json").read_text())
    assert found["policies"] == wanted["policies"]
    for part in ("topics", "messages"):
        assert sorted(found[part]) == sorted(wanted[part])
        for topic, said in wanted[part].items():
            assert found[part][topic] == said, topic


def test_an_older_versions_directory_is_whole(tmp_path: Path) -> None:
    assert verify(OsFileSystem(str(unpacked(tmp_path) / "ledgers"))).damage == []
