"""What a broker in the process of a test costs: `python -m benchmarks.broker_in_process`.

Each figure is the least of its runs: the work itself, without what else the machine does. Cold is a new interpreter.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from time import perf_counter, process_time

RUNS = 20
COLD = """
from time import perf_counter
began = perf_counter()
from magnetar.testing import PulsarBroker
imported = perf_counter()
with PulsarBroker():
    print(imported - began, perf_counter() - imported)
"""


def cold() -> tuple[float, float]:
    """Return the seconds of the import, and of the first broker, in a new interpreter."""
    runs = [
        subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(5)
    ]
    return min(float(run[0]) for run in runs), min(float(run[1]) for run in runs)


def resident_kib() -> int:
    """Return the memory of this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def main() -> None:
    """Measure and print."""
    from magnetar.testing import PulsarBroker

    imported, first = cold()
    print(f"import, cold: {imported * 1000:.0f} ms; the first broker after it: {first * 1000:.1f} ms")
    starts, ends = [], []
    for _ in range(RUNS):
        began = perf_counter()
        broker = PulsarBroker()
        started = perf_counter()
        broker.close()
        starts.append(started - began)
        ends.append(perf_counter() - started)
    print(f"start: {min(starts) * 1000:.1f} ms; close: {min(ends) * 1000:.1f} ms")
    gc.collect()
    before, threads = resident_kib(), threading.active_count()
    brokers = [PulsarBroker() for _ in range(RUNS)]
    each = (resident_kib() - before) / RUNS
    print(f"one of {RUNS} brokers: {each:.0f} KiB, {(threading.active_count() - threads) / RUNS:g} threads")
    for broker in brokers:
        broker.close()
    for hours in (1, 24, 24 * 30):
        with PulsarBroker() as broker, broker.client() as client:
            client.create_producer("t")
            began, busy = perf_counter(), process_time()
            broker.clock.advance(hours=hours)
            print(
                f"advance by {hours} h with a client: {(perf_counter() - began) * 1000:.0f} ms, "
                f"{(process_time() - busy) * 1000:.0f} ms of CPU"
            )


if __name__ == "__main__":
    main()
