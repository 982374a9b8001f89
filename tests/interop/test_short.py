"""The matrix without Java, on magnetar alone: our asyncio client and the official one. `make interop` has the rest."""

from __future__ import annotations

from pathlib import Path

from tools.servers import magnetar

from tests.interop import letters, transaction_acks
from tests.interop.encodings import encodings
from tests.interop.matrix import SETTINGS, Cell, Matrix, make_keys
from tests.interop.peers import started

CLIENTS = ("ours-asyncio", "official")


def test_ours_and_the_official_client_read_each_other(tmp_path: Path) -> None:
    """Every encoding, and letters; nothing differs from what was to be written."""
    cells: list[Cell] = []
    with (
        magnetar.start(tmp_path / "broker", settings=SETTINGS) as server,
        started(CLIENTS, server.broker_url, None, tmp_path) as peers,
    ):
        matrix = Matrix(server, peers, make_keys(tmp_path))
        for encoding in encodings():
            cells += matrix.cells(encoding)
        cells += [*letters.cells(peers), *transaction_acks.cells(peers)]
    assert [one for one in cells if one.differs] == []
    assert len(cells) > 150
