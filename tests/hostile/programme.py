"""``make hostile``: every attack on an installed broker, beside a witness, with figures and a verdict.

    make hostile                                       everything, about ten minutes
    make hostile ARGS="--scale 0.05"                   the short form of the test suite
    make hostile ARGS="--only patterns,partitions"     some of it
    make hostile ARGS="--keep"                         leave data and log behind

A line each: the most processor time that the broker's loop took before it answered somebody else's PING, its highest
resident memory meanwhile, what the witness sent and received, and what is wrong, if anything is. The bounds are those
of docs/guarantees.md.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from magnetar.runtime.memory.trim import PATIENCE
from tests.hostile import clean
from tests.hostile.attacks import (
    Attack,
    browser,
    carried_out,
    floods,
    fuzz_rest,
    fuzz_wire,
    handshakes,
    http_requests,
    memory,
    numbers,
    patterns,
    sockets,
    websockets,
)
from tests.hostile.probe import Probe
from tests.hostile.victim import Victim
from tests.hostile.witness import Witness

STALL_MS: Final = 250.0
"""Processor time of the loop before it answers somebody else."""

RESIDENT_MB: Final = 300.0
"""Resident memory at any moment."""

GROWTH: Final = 1.35
"""Resident memory after the short form of everything against before: 1.21 and 1.22 were measured alone, 1.28 beside the
other tests (docs/decisions/025). It is here to notice what is kept for ever."""

GROWTH_OF_USED: Final = 1.2
"""Resident memory after everything against a broker on which everything was used once: what the bursts left behind.
1.13 and 1.11 were measured (docs/decisions/080)."""

_FIRST_USES: Final = 0.02
"""The scale at which everything is used once, that of the short form."""

LOG_LINES_MAX: Final = 400
"""Lines that one attack may cost in the log."""

_CALM_SECONDS: Final = 90.0
"""Until memory has gone back to the system, at most."""
_REST_SECONDS: Final = 12.0
"""Without a megabyte going back, it is calm: a run of everything waits three times as long, as the broker does."""

_ATTACK_SECONDS: Final = 600.0
_LOG_FAULTS: Final = ("Traceback", "could not be handled", "an internal error", "never retrieved", "Exception in")

ATTACKS: Final[tuple[Attack, ...]] = (
    numbers.partitions,
    memory.unfinished_frames,
    memory.held_frames,
    memory.long_names,
    memory.long_fields,
    memory.unread_answers,
    memory.unread_messages,
    floods.pings,
    floods.lookups,
    floods.metadata,
    floods.topic_lists,
    floods.acknowledgements,
    floods.joins,
    floods.subscriptions,
    numbers.batch_sizes,
    numbers.sticky_ranges,
    numbers.permits,
    numbers.seeks,
    numbers.poisoned_entries,
    numbers.numbers_in_rest,
    patterns.catastrophic,
    browser.pages,
    sockets.idle,
    sockets.starve,
    sockets.half_requests,
    sockets.leavers,
    sockets.churn,
    handshakes.half_open,
    handshakes.storm,
    handshakes.garbage,
    handshakes.key_changes,
    http_requests.chunks,
    http_requests.pipelines,
    http_requests.headers,
    websockets.frames,
    websockets.half_messages,
    websockets.absurd_messages,
    websockets.deaf,
    fuzz_wire.commands,
    fuzz_rest.routes,
)


def name_of(attack: Attack) -> str:
    """``floods.pings``."""
    return f"{attack.__module__.rpartition('.')[2]}.{attack.__name__}"


@dataclass
class Outcome:
    """What one attack did."""

    name: str
    did: str = ""
    stall_ms: float = 0.0
    wait_ms: float = 0.0
    peak_mb: float = 0.0
    messages: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        verdict = "ok" if not self.faults else "; ".join(self.faults)
        return (
            f"{self.name:24} {self.stall_ms:7.0f} ms CPU {self.wait_ms:7.0f} ms {self.peak_mb:6.0f} MB "
            f"{self.messages:6} witnessed {self.seconds:5.1f} s  {self.did}  {verdict}"
        )


class Programme:
    """All attacks on one broker."""

    def __init__(self, directory: Path, scale: float, descriptors: int | None = None) -> None:
        self.victim = Victim(directory, descriptors)
        self.scale = scale
        self.faults: list[str] = []
        # a process of its own for each attack, which takes half a second to import what it needs: once is enough
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload([__name__])

    def run(self, attacks: Iterable[Attack]) -> list[Outcome]:
        """Every attack, then what must hold after all of them."""
        self.victim.start()
        try:
            clean.check(self.victim.url, self.victim.target, "before")
            sockets.publish_much(self.victim.target)
            self._delete_everything()
            before = self._calm()
            chosen = list(attacks)
            used = self._used_once(chosen) if self.scale >= 1.0 else None
            outcomes = [self._attack(number, attack) for number, attack in enumerate(chosen)]
            self._afterwards(before, used)
        finally:
            if self.victim.alive():
                self.victim.stop()
        return outcomes

    def _used_once(self, attacks: Iterable[Attack]) -> float:
        """Resident memory with the modules, tables and caches of everything; at its start a broker has none of them."""
        for attack in attacks:
            with ProcessPoolExecutor(1, self._processes) as pool:
                pool.submit(carried_out, attack, self.victim.target, _FIRST_USES).result(_ATTACK_SECONDS)
        self._delete_everything()
        return self._calm()

    def _attack(self, number: int, attack: Attack) -> Outcome:
        outcome = Outcome(name_of(attack))
        began = time.monotonic()
        victim = self.victim
        lines = victim.log.count("\n")
        witness = Witness(victim.url, str(number))
        probe = Probe(victim.pid, victim.target.broker_port)
        victim.forget_peak()
        witness.start()
        probe.start()
        with ProcessPoolExecutor(1, self._processes) as pool:
            try:
                outcome.did = pool.submit(carried_out, attack, victim.target, self.scale).result(_ATTACK_SECONDS)
            except Exception as error:  # whatever it is, it belongs to this line
                outcome.faults.append(str(error) or repr(error))
        probe.stop()
        witness.stop()
        outcome.stall_ms, outcome.wait_ms, outcome.peak_mb = probe.worst_ms, probe.worst_wait_ms, victim.peak_mb()
        outcome.messages, outcome.seconds = witness.messages, time.monotonic() - began
        outcome.faults += witness.faults()
        if probe.failure:
            outcome.faults.append(probe.failure)
        if outcome.stall_ms > STALL_MS:
            outcome.faults.append(
                f"the loop worked {outcome.stall_ms:.0f} ms before it answered (at most {STALL_MS:g})"
            )
        if outcome.peak_mb > RESIDENT_MB:
            outcome.faults.append(f"{outcome.peak_mb:.0f} MB resident (at most {RESIDENT_MB:g})")
        if not outcome.messages:
            outcome.faults.append("the witness could publish nothing")
        written = victim.log.count("\n") - lines
        if written > LOG_LINES_MAX:
            outcome.faults.append(f"{written} lines in the log (at most {LOG_LINES_MAX})")
        try:
            clean.check(victim.url, victim.target, f"{number}")
        except Exception as error:  # whatever a clean client meets is a fault of the broker
            outcome.faults.append(f"a clean client afterwards: {type(error).__name__}: {error}")
        sys.stdout.write(outcome.line() + "\n")
        sys.stdout.flush()
        return outcome

    def _afterwards(self, before_mb: float, used_mb: float | None) -> None:
        victim = self.victim
        self._delete_everything()
        after = self._calm()
        most, since = (
            (before_mb * GROWTH, "before") if used_mb is None else (used_mb * GROWTH_OF_USED, "after first uses")
        )
        if after > most:
            self.faults.append(f"{used_mb or before_mb:.0f} MB resident {since}, {after:.0f} MB after all attacks")
        try:
            victim.stop()
        except RuntimeError as error:
            self.faults.append(str(error))
        began = time.monotonic()
        victim.start()
        clean.check(victim.url, victim.target, "after-a-restart")
        for text in _LOG_FAULTS:
            if text in victim.log:
                where = victim.log.index(text)
                self.faults.append(
                    f"the log has {victim.log.count(text)} times {text!r}: {victim.log[where - 300 : where + 900]}"
                )
        sys.stdout.write(
            f"resident memory {before_mb:.0f} MB before, "
            + ("" if used_mb is None else f"{used_mb:.0f} MB when everything was used once, ")
            + f"{after:.0f} MB after; "
            f"started again and checked in {time.monotonic() - began:.1f} s\n"
        )

    def _calm(self) -> float:
        """Resident memory when no more of it goes back to the system."""
        least = now = self.victim.resident_mb()
        since = time.monotonic()
        end = since + _CALM_SECONDS
        rest = _REST_SECONDS if self.scale < 1.0 else _REST_SECONDS * PATIENCE
        while time.monotonic() < min(since + rest, end):
            time.sleep(1.0)
            now = self.victim.resident_mb()
            if now < least - 1.0:
                least, since = now, time.monotonic()
        return min(least, now)

    def _delete_everything(self) -> None:
        """What attacks and witnesses made is theirs to take memory; without it the broker is as it was."""
        target = self.victim.target
        tenants = [tenant for tenant in self._listed("tenants") if tenant != "pulsar"]
        namespaces = [namespace for tenant in tenants for namespace in self._listed(f"namespaces/{tenant}")]
        for namespace in namespaces:
            for domain in ("persistent", "non-persistent"):
                for partitioned in ("/partitioned", ""):
                    for name in self._listed(f"{domain}/{namespace}{partitioned}"):
                        path = quote(name.partition("://")[2], safe="/") + (partitioned and "/partitions")
                        with contextlib.suppress(OSError):
                            target.rest("DELETE", f"/admin/v2/{domain}/{path}?force=true")

    def _listed(self, path: str) -> list[str]:
        _, names = self.victim.target.rest("GET", f"/admin/v2/{path}")
        return names if isinstance(names, list) else []


def chosen(only: str) -> Sequence[Attack]:
    """Those whose name holds one of these words; all of them for none."""
    words = [word for word in only.split(",") if word]
    return [attack for attack in ATTACKS if not words or any(word in name_of(attack) for word in words)]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the size of every attack")
    parser.add_argument("--only", default="", help="comma list of words in the attacks' names")
    parser.add_argument("--descriptors", type=int, help="start the broker with so many (ulimit -n)")
    parser.add_argument("--keep", action="store_true", help="leave data and log behind")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the broker must not outlive us
    directory = Path(tempfile.mkdtemp(prefix="magnetar-hostile-"))
    programme = Programme(directory, options.scale, options.descriptors)
    outcomes = programme.run(chosen(options.only))
    faulty = [outcome for outcome in outcomes if outcome.faults]
    for outcome in faulty:
        sys.stdout.write(f"\nFAULT {outcome.name}\n  " + "\n  ".join(outcome.faults) + "\n")
    for fault in programme.faults:
        sys.stdout.write(f"\nFAULT afterwards\n  {fault}\n")
    if options.keep or faulty or programme.faults:
        sys.stdout.write(f"data and log are in {directory}\n")
    else:
        shutil.rmtree(directory)
    sys.stdout.write(f"{len(outcomes)} attacks, {len(faulty)} with faults, {len(programme.faults)} faults afterwards\n")
    return 1 if faulty or programme.faults else 0


if __name__ == "__main__":
    sys.exit(main())
