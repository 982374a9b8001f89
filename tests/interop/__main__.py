"""Interop of four clients: each writes every encoding and each reads it, on magnetar and on Apache Pulsar.

``python -m tests.interop`` starts the brokers, prints a table and writes docs/client-interop.md; exit status 1 if
anything differs. ``--record`` has Java's client write and keeps the bytes for `tests.interop.test_java_entries`.
Java's client comes with the distribution of Apache Pulsar, which Maven downloads once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.servers import apache, magnetar
from tools.servers.process import Server

from tests.interop import golden, letters, report, transaction_acks
from tests.interop.encodings import CLIENTS, Encoding, encodings
from tests.interop.matrix import SETTINGS, Cell, Matrix, make_keys
from tests.interop.peers import started


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    add = parser.add_argument
    add("encodings", nargs="*", help="only those whose name contains one of these; the page is not written then")
    add("--broker", choices=("magnetar", "apache", "both"), default="both")
    add("--clients", nargs="+", choices=CLIENTS, default=CLIENTS, help="both writers and readers")
    add("--record", action="store_true", help="write tests/interop/java_entries.json and do nothing else")
    return parser.parse_args(given)


def start(kind: str, place: Path) -> Server:
    """Start a broker with the settings of the matrix."""
    if kind == "apache":
        return apache.start(place, settings=SETTINGS)
    return magnetar.start(place, settings=SETTINGS)


def run(kind: str, chosen: Sequence[Encoding], clients: Sequence[str], *, whole: bool) -> list[Cell]:
    """Return the cells of one broker, and print those that differ as they come."""
    found: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="magnetar-interop-") as folder:
        place = Path(folder)
        home = apache.home() if "java" in clients else None
        with start(kind, place / "broker") as server, started(clients, server.broker_url, home, place) as peers:
            began = time.monotonic()
            matrix = Matrix(server, peers, make_keys(place))
            for encoding in chosen:
                found += matrix.cells(encoding)
                _print(kind, [one for one in found if one.encoding == encoding.name])
            if whole:
                for each in (*letters.cells(peers), *transaction_acks.cells(peers)):
                    found.append(each)
                    _print(kind, [each])
            print(f"{server.name}: {len(found)} cells in {time.monotonic() - began:.0f} s", flush=True)
    return found


def _print(kind: str, cells: Sequence[Cell]) -> None:
    wrong = [one for one in cells if one.differs]
    if not wrong and cells:
        print(f"{kind}: {cells[0].encoding}: {len(cells)} pairs agree", flush=True)
    for one in wrong:
        print(f"{kind}: DIFFERENT {one.encoding}: {one.writer} -> {one.reader or '-'}: {one.wrong}", flush=True)


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    if options.record:
        print(golden.record(apache.home()))
        return 0
    parts = options.encodings
    chosen = [one for one in encodings() if not parts or any(part in one.name for part in parts)]
    kinds = ("magnetar", "apache") if options.broker == "both" else (options.broker,)
    whole = not parts or "letters" in parts
    found = {kind: run(kind, chosen, options.clients, whole=whole) for kind in kinds}
    wrong = sum(one.differs for cells in found.values() for one in cells)
    if not parts and options.broker == "both" and tuple(options.clients) == CLIENTS:
        print(report.write(found))
    print(f"{wrong} of {sum(map(len, found.values()))} pairs differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
