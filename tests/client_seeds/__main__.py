"""What of the native client takes long to show.

2,015 seeds of its simulations through crashes, cuts and cancellation, each call cancelled at each await, and 10,000
times opened and closed: clients, producers, consumers and readers, blocking and with asyncio, after which memory,
threads and file descriptors are what they were at 1,000. Exit status 1 if anything fails or grows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.servers import magnetar

from tests.client_seeds.cycles import KINDS

ROOT: Final = Path(__file__).resolve().parents[2]
SIMULATIONS: Final = tuple(
    f"tests/sim/test_{name}.py" for name in ("native_client", "native_letters", "handlers", "outbox", "cancellation")
)
SEEDS_AT_ONCE: Final = 31
"""So many seeds have the simulations when each has what `make test` gives it."""
GROWTH_KB_MAX: Final = 2_048
"""From 1,000 cycles to 10,000; what leaks 1 KB in each would be 9 MB."""


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.client_seeds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_015, help="0 for none")
    parser.add_argument("--cycles", type=int, default=10_000, help="0 for none")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    return parser.parse_args(given)


def seeds(count: int) -> int:
    """Run the simulations; returns the exit status."""
    environment = {**os.environ, "MAGNETAR_SEEDS": str(count / SEEDS_AT_ONCE)}
    command = [sys.executable, "-m", "pytest", "--timeout=7200", "--durations=12", *SIMULATIONS]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def cycles(kinds: Sequence[str], count: int) -> int:
    """Open and close; print a row for each kind, and return how many grow."""
    wrong = 0
    print(
        f"| {count:,} times | RSS, MB, at {count // 10:,} | at {count:,} | file descriptors | threads | s |", flush=True
    )
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="magnetar-cycles-") as folder, magnetar.start(Path(folder)) as server:
        for kind in kinds:
            began = time.monotonic()
            command = [sys.executable, "-m", "tests.client_seeds.cycles", kind, server.broker_url, str(count)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            first, last = json.loads(done.stdout)
            grown = last["rss_kb"] - first["rss_kb"] > GROWTH_KB_MAX
            grown = grown or any(last[name] > first[name] for name in ("fds", "threads"))
            wrong += grown
            print(
                f"| {kind} | {first['rss_kb'] / 1024:.1f} | {last['rss_kb'] / 1024:.1f} "
                f"| {first['fds']}, {last['fds']} | {first['threads']}, {last['threads']} "
                f"| {time.monotonic() - began:.0f}{' GROWS' if grown else ''} |",
                flush=True,
            )
    return wrong


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    failed = cycles(options.kinds, options.cycles) if options.cycles else 0
    failed += seeds(options.seeds) if options.seeds else 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
