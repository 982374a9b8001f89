"""`make bench`: the canonical workloads on magnetar, pulsar-lite and Apache Pulsar, in alternation.

All brokers start on empty directories and stay up; in each round each workload runs once on each broker, in an order
that turns from round to round, while the other brokers are paused. Each turn begins with an unmeasured warm-up (a JVM
needs one) and ends with a `sync` outside the clock, so that no broker's unwritten pages are written during another's
turn. Examples:

    make bench ARGS="--rounds 1 --scale 0.2"
    make bench ARGS="--brokers magnetar,pulsar-lite --workloads 100b"
    make bench ARGS="--brokers sink"                      what the generator itself can do
    make bench ARGS="--address 127.0.0.1:6650 --workloads produce"   a broker that runs already
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tools.servers.process import StartFailedError

from benchmarks import report
from benchmarks.brokers import BROKERS, DEFAULT, ROOT, RUNNING, Broker, BrokerError
from benchmarks.load.connection import Address
from benchmarks.load.loop import LoadTimeout
from benchmarks.load.wire import WireError
from benchmarks.workloads import WORKLOADS, Meter, Outcome, Workload, bare_latency

RESULTS = ROOT / "benchmarks" / "results"


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", default=",".join(DEFAULT), help=f"comma list of {', '.join(BROKERS)}")
    parser.add_argument("--address", help="host:port of a running broker, instead of --brokers")
    parser.add_argument("--workloads", default="", help="comma list of workload names, or parts of them (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of entries")
    parser.add_argument("--warm-up", type=float, default=0.2, help="share of the entries sent before, unmeasured")
    parser.add_argument("--directory", type=Path, help="where the brokers keep their data (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="leave the data and the brokers' logs there")
    parser.add_argument("--profile", type=Path, help="py-spy samples of each Python broker, as collapsed stacks, here")
    parser.add_argument("--out", type=Path, help="JSON file (default: benchmarks/results/<time>.json)")
    parser.add_argument("--list", action="store_true", help="name the workloads and end")
    return parser.parse_args(argv)


def selected(wanted: str) -> list[Workload]:
    """Return the workloads whose name is a part of the list, or holds one that is no name itself."""
    names = {one.name for one in WORKLOADS}
    parts = [part for part in wanted.split(",") if part]
    return [
        one
        for one in WORKLOADS
        if not parts or any(part == one.name or (part not in names and part in one.name) for part in parts)
    ]


@contextmanager
def profiled(broker: Broker, path: Path | None) -> Iterator[None]:
    """Sample the broker's Python stacks for as long as the body runs; costs the broker a few per cent."""
    if path is None or not broker.name.startswith("magnetar"):
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    py_spy = str(Path(sys.executable).parent / "py-spy")
    target = ["--pid", str(broker.pids()[0]), "--rate", "250", "--threads", "--format", "raw", "--output", str(path)]
    sampler = subprocess.Popen([py_spy, "record", *target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        sampler.send_signal(signal.SIGINT)
        sampler.wait(30)


def run(broker: Broker, workload: Workload, count: int, meter: Meter) -> Outcome:
    """Run the workload on the broker, or on the disk alone."""
    if broker.kind.bare:
        return bare_latency(workload, broker.directory, count, meter)
    return workload.run(workload, broker.address, count, meter)


def measure(broker: Broker, workload: Workload, round_: int, options: argparse.Namespace) -> report.Sample:
    """One turn of one broker: warm-up, then the workload with the broker's CPU and memory over the same time."""
    cpu = 0.0
    count = max(1, int(workload.entries * options.scale))
    profile: Path | None = options.profile and options.profile / f"{broker.name}-{workload.name}-{round_}.txt"

    def on_start() -> None:
        nonlocal cpu
        broker.reset_peak()
        cpu = -broker.cpu_seconds()

    def on_stop() -> None:
        nonlocal cpu
        cpu += broker.cpu_seconds()

    try:
        with broker.turn():
            if options.warm_up:
                run(broker, workload, max(1, int(count * options.warm_up)), Meter())
            with profiled(broker, profile):
                outcome = run(broker, workload, count, Meter(on_start, on_stop))
            peak = broker.peak_bytes()
        broker.check()
    except TimeoutError:
        raise BrokerError(f"{broker.name} does not answer any more; left out from here on") from None
    except (WireError, LoadTimeout, OSError) as error:
        return report.Sample(broker.name, workload.name, round_, problems=[f"{type(error).__name__}: {error}"])
    return report.Sample.of(broker.name, round_, workload, outcome, cpu, peak)


def start(brokers: list[Broker]) -> dict[str, dict[str, object]]:
    """Start each broker alone, and pause it again; what is known about each."""
    about: dict[str, dict[str, object]] = {}
    for broker in brokers:
        print(f"starting {broker.name}", flush=True)
        broker.pausing = len(brokers) > 1
        broker.start()
        about[broker.name] = {
            "durability": broker.kind.durability,
            "limit": broker.kind.limit,
            "start_seconds": broker.start_seconds,
            "resident_mb_after_start": broker.resident_bytes() / report.MEGA,
        }
        broker.pause()
    return about


def compare(brokers: list[Broker], workloads: list[Workload], options: argparse.Namespace) -> report.Results:
    """All rounds; the result is written after each, so that an interrupted run is not lost."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    out: Path = options.out or RESULTS / f"{stamp}.json"
    results = report.Results(report.machine(), start(brokers))
    dead: set[str] = set()
    for round_ in range(1, options.rounds + 1):
        for at, workload in enumerate(workloads):
            turn = (round_ - 1 + at) % len(brokers)
            for broker in brokers[turn:] + brokers[:turn]:
                if broker.name in dead or (broker.kind.bare and not workload.rate):
                    continue
                try:
                    sample = measure(broker, workload, round_, options)
                except BrokerError as error:
                    dead.add(broker.name)
                    sample = report.Sample(broker.name, workload.name, round_, problems=[str(error)])
                os.sync()
                results.samples.append(sample)
                print(report.brief(sample), flush=True)
        results.machine["load_average_at_end"] = os.getloadavg()[0]
        results.write(out)
    print(f"\n{report.text(results)}\n\nwritten to {out}")
    return results


def main(argv: list[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # brokers that are paused must not outlive us
    options = arguments(sys.argv[1:] if argv is None else argv)
    workloads = selected(options.workloads)
    if options.list or not workloads:
        print("\n".join(one.name for one in WORKLOADS))
        return 0 if options.list else 2
    directory = Path(options.directory or tempfile.mkdtemp(prefix="magnetar-bench-")).resolve()
    brokers: list[Broker] = []
    try:
        if options.address:
            host, _, port = options.address.rpartition(":")
            brokers = [Broker(RUNNING, directory, Address(host, int(port)))]
        else:
            unknown = [name for name in options.brokers.split(",") if name not in BROKERS]
            if unknown:
                print(f"unknown broker {unknown[0]}; known are {', '.join(BROKERS)}")
                return 2
            brokers = [Broker(BROKERS[name], directory / name) for name in options.brokers.split(",")]
        results = compare(brokers, workloads, options)
    except (BrokerError, StartFailedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        for broker in brokers:
            broker.stop()
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    return 1 if any(one.problems for one in results.samples) else 0


if __name__ == "__main__":
    sys.exit(main())
