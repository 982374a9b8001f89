"""Ask Apache Pulsar and magnetar the same questions and print where the answers differ.

Without options both brokers are started, once per set of settings, and asked everything; exit status 1 if a difference
is not listed in docs/differences.md. `--recorded` takes Apache Pulsar's answers from tests/conformance/recorded (no
Java).
`--record` only asks Apache Pulsar and writes them. `--recorded --ours apache` asks Apache Pulsar again: what differs
then depends on the run and must be normalised.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tools.servers import magnetar

from tests.conformance import brokers, differences, recording
from tests.conformance.answers import Json
from tests.conformance.probe import Probe
from tests.conformance.probes import REGISTRY


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    add = parser.add_argument
    add("probes", nargs="*", help="ask only probes whose id or file contains one of these")
    add("--list", action="store_true", help="only list the probes with the rules they test")
    add("--record", action="store_true", help="ask Apache Pulsar and write its answers to tests/conformance/recorded")
    add("--recorded", action="store_true", help="compare with the recorded answers instead of a running Apache Pulsar")
    add("--show", choices=brokers.KINDS, help="ask only this broker and print its answers")
    add("--ours", choices=brokers.KINDS, default="magnetar", help="the broker that is compared")
    add("--command", default=magnetar.COMMAND, help="how to start magnetar")
    add("--jobs", type=int, default=4, help="probes at once; most of a probe's time is waiting")
    return parser.parse_args(given)


def answers_of(kind: str, chosen: Sequence[Probe], options: argparse.Namespace) -> dict[str, Json]:
    """Every chosen probe's answer from brokers of one kind."""
    answers: dict[str, Json] = {}
    for profile, probes in brokers.by_profile(chosen).items():
        started = time.monotonic()
        with brokers.running(kind, profile, options.command) as server:
            print(f"{server.name}, {profile}: up in {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
            started = time.monotonic()
            for probe, answer in brokers.ask(server, probes, options.jobs):
                answers[probe.id] = recording.canonical(answer)
            spent = time.monotonic() - started
            print(f"  {len(probes)} probes in {spent:.1f} s", file=sys.stderr, flush=True)
    return answers


def compare(chosen: Sequence[Probe], theirs: dict[str, Json], ours: dict[str, Json]) -> int:
    """Print the differences; how many are neither equal nor listed, or listed and gone."""
    listed = differences.on_purpose()
    wrong = same = excused = 0
    for probe in chosen:
        if probe.id not in theirs:
            print(f"NOT RECORDED {probe.id}: run with --record")
            wrong += 1
            continue
        verdict = differences.judge(theirs[probe.id], ours[probe.id], listed.get(probe.id, ()))
        for each in verdict.gone:
            print(f"NO LONGER DIFFERENT {probe.id} at {each.places}: take it off docs/differences.md ({each.reason})")
        for each in verdict.on_purpose:
            print(f"on purpose {probe.id} at {each.places}: {each.reason}")
        if verdict.to_mend:
            print(f"DIFFERENT {probe.id} ({', '.join(probe.rules)}): {probe.about}")
            print("\n".join(f"  {one}" for one in verdict.to_mend))
        if verdict.to_mend or verdict.gone:
            wrong += 1
        elif verdict.on_purpose:
            excused += 1
        else:
            same += 1
    print(f"{same} the same, {excused} different on purpose, {wrong} to mend, of {len(chosen)}")
    return 1 if wrong else 0


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    wanted = options.probes or [""]
    chosen = [
        each for each in REGISTRY.values() if any(part in each.id or part == recording.subject(each) for part in wanted)
    ]
    if options.list:
        for each in chosen:
            print(f"{each.id}\t{', '.join(each.rules)}\t{each.profile}\t{each.about}")
        return 0
    if options.show:
        print(recording.layout(answers_of(options.show, chosen, options)))
        return 0
    theirs = recording.read() if options.recorded else answers_of("apache", chosen, options)
    if options.record:
        for path in recording.write(theirs):
            print(path)
        return 0
    return compare(chosen, theirs, answers_of(options.ours, chosen, options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
