"""``make mutants``: a sample of single faults in storage, delivery, topics, connections and protocol, judged by tests.

A fault that no test notices is a missing test, or it changes nothing: then it is listed in ``equivalent.tsv`` with the
reason. ``--seed`` picks another sample, ``--only TEXT`` judges the faults whose file, function or line holds the text.
``--kind`` (several times) and ``--thin`` leave faults of these kinds, and those that few tests could notice: where the
next survivors are.
What was found is kept under ``build/mutants``: the same command goes on where it was cut off, and after new tests it
judges survivors again.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tools.mutants.choice import AREAS, QUICK, REAL, Choice, Chosen, all_faults
from tools.mutants.faults import KINDS, Fault, faults_of
from tools.mutants.footprint_map import FootprintMap
from tools.mutants.judge import Judge, Judgement
from tools.mutants.sample import Sample, equivalents
from tools.mutants.tree import Tree

FIXED = (
    (
        "src/magnetar/storage/backends/committer.py", "_write", "file.sync()", "pass",
        "tests/sim/test_durability.py",
    ),
    (
        "src/magnetar/broker/delivery/dispatchers/failover.py", "Failover._choose", "if chosen is self.active:",
        "if chosen is not self.active:", "tests/unit/delivery/test_failover.py",
    ),
    (
        "src/magnetar/broker/topic/dispatch/dispatch_filter.py", "DispatchFilter.pass_over",
        "if at == start:", "if at != start:",
        "tests/unit/topic/dispatch/test_dispatch_filter.py",
    ),
    (
        "src/magnetar/broker/connection/handlers/producer_commands.py", "close_producer",
        "held.log.barrier(closed, lambda error: closed())", "pass",
        "tests/sim/test_blocked_disk.py::test_nothing_is_answered_or_seen_before_it_is_on_the_disk"
        "[CLOSE_PRODUCER behind its sends]",
    ),
    (
        "src/magnetar/protocol/frames.py", "check_total", "if total + 4 > max_frame_size:",
        "if total + 4 >= max_frame_size:", "tests/unit/protocol/test_frames.py",
    ),
    (
        "src/magnetar/transactions/coordinator.py", "Coordinator.end", "found.status = status", "pass",
        "tests/unit/transactions/test_coordinator.py",
    ),
)  # fmt: skip
"""File, function, line before and after, and who must notice it."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("areas", nargs="*", default=list(AREAS), metavar="AREA", help=f"of {', '.join(AREAS)}")
    parser.add_argument("--count", type=int, default=40, help="faults per area (40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="all faults with this text instead of a sample")
    parser.add_argument(
        "--kind", action="append", default=[], choices=KINDS, help="only faults of this kind; several times for several"
    )
    parser.add_argument("--thin", type=int, help="only faults whose line no more than so many tests pass")
    parser.add_argument("--at-once", type=int, default=2, help="faults judged at a time (2)")
    parser.add_argument(
        "--whole", action="store_true", help="survivors are judged by the rest of `make test` too, minutes for each"
    )
    parser.add_argument("--show", action="store_true", help="only what is known of the sample")
    parser.add_argument(
        "--unpassed", action="store_true", help="no fault: what no test passes at all, to look at first"
    )
    parser.add_argument("--fixed", action="store_true", help="the few faults that must be noticed, within seconds")
    known = parser.parse_args()
    for area in known.areas:
        if area not in AREAS:
            parser.error(f"no area {area}: there are {', '.join(AREAS)}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Tree(Path(folder).resolve())
        if known.fixed:
            sys.exit(fixed(Judge(tree), tree))
        if known.unpassed:
            _print_unpassed(known, tree)
            return
        if known.only is not None:
            _judge_only(known, tree)
            return
        sample = Sample(
            lambda: {area: list(_possible(known, tree, area)) for area in known.areas}, known.count, known.seed,
            part=part_of(known.kind, known.thin),
        )  # fmt: skip
        if not known.show:
            _judge_all(sample, tree, known.whole, known.at_once)
    _summary(sample)


def part_of(kinds: Sequence[str], thin: int | None) -> str:
    """What a sample of a part of all faults is called, so that it is not taken for another one."""
    words = [word for kind in sorted(set(kinds)) for word in kind.replace(",", "").split()]
    return "-".join([*words, *([] if thin is None else ["thin", str(thin)])])


def _possible(known: argparse.Namespace, tree: Tree, area: str) -> Iterator[Fault]:
    """The faults of an area from which to draw."""
    choice = None if known.thin is None else Choice(_map(tree, known.whole, known.at_once))
    for fault in all_faults(tree, area):
        if known.kind and fault.kind not in known.kind:
            continue
        if choice is None or choice.for_fault(fault).passing <= known.thin:
            yield fault


def _map(tree: Tree, whole: bool, at_once: int) -> FootprintMap:
    found, judge = FootprintMap(), Judge(tree)
    prefixes = [prefix for area in AREAS.values() for prefix in area]
    found.renew(
        prefixes, [*QUICK, *(REAL if whole else ())], at_once,
        lambda test: judge.judge([test], 60).verdict == "survived",
    )  # fmt: skip
    return found


def _print_unpassed(known: argparse.Namespace, tree: Tree) -> None:
    found = _map(tree, known.whole, known.at_once)
    for area in known.areas:
        for prefix in AREAS[area]:
            for path, first, last in found.unpassed(prefix):
                text = (tree.path / path).read_text().splitlines()[first - 1]
                print(f"{path}:{first}-{last}\t{text.strip()}")


def _judge_only(known: argparse.Namespace, tree: Tree) -> None:
    """Chosen by their text; nothing is kept."""
    choice, judge = Choice(_map(tree, known.whole, known.at_once)), Judge(tree)
    for area in known.areas:
        for fault in _possible(known, tree, area):
            if known.only in fault.name:
                tests = choice.for_fault(fault)
                judgement = by_quick(judge, tree, fault, tests)
                if known.whole and judgement.verdict == "survived":
                    judgement = by_all(judge, tree, fault, tests)
                _print(fault, judgement, tests.passing)


def _judge_all(sample: Sample, tree: Tree, whole: bool, at_once: int) -> None:
    """All by the quick tests first, then those that survive by the others."""
    choice = Choice(_map(tree, whole, at_once))
    sound = Judge(tree).judge(choice.some(), 60)
    if sound.verdict != "survived":
        raise SystemExit(f"the judge sees faults where there are none: {sound.by}")
    for stage, judged in (("quick", by_quick), ("whole", by_all)):
        if stage == "whole" and not whole:
            break
        numbers = [one.number for one in sample.drawn if sample.is_open(one, stage)]
        print(f"\n{stage}: {len(numbers)} of {len(sample.drawn)} faults to judge", flush=True)
        workers = []
        for part in range(min(at_once, len(numbers))):
            worker = os.fork()
            if worker == 0:
                _work(sample, choice, judged, set(numbers[part::at_once]))
            workers.append(worker)
        for worker in workers:
            os.waitpid(worker, 0)


def _work(
    sample: Sample, choice: Choice, judged: Callable[[Judge, Tree, Fault, Chosen], Judgement], numbers: set[int]
) -> None:
    """Judge some of them, in a tree of its own; does not return."""
    try:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            tree = Tree(Path(folder).resolve())
            judge = Judge(tree)
            for one in sample.drawn:
                fault = sample.fault(one) if one.number in numbers else None
                if fault is None:
                    continue
                tests = choice.for_fault(fault)
                judgement = judged(judge, tree, fault, tests)
                sample.keep(one, judgement)
                _print(fault, judgement, tests.passing)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def by_quick(judge: Judge, tree: Tree, fault: Fault, tests: Chosen) -> Judgement:
    """The tests of single modules and the simulations, within seconds."""
    tree.put(fault)
    try:
        return judge.judge(tests.tests, tests.seconds)
    finally:
        tree.restore(fault)


def by_all(judge: Judge, tree: Tree, fault: Fault, tests: Chosen) -> Judgement:
    """What the quick tests let through, judged by the slow ones that pass the line and by those of real brokers.

    Such tests have clocks: one that fails must fail again with the fault and pass without it.
    """
    judgement = Judgement("survived", f"{len(tests.others)} more tests, {len(tests.real)} real ones", 0.0, "whole")
    for names in (tests.others, tests.real):
        if not names:
            continue
        tree.put(fault)
        found = judge.judge(names, 300)
        again = judge.judge([found.by], 60) if found.verdict != "survived" else found
        tree.restore(fault)
        if found.verdict == "survived":
            continue
        if again.verdict != "survived" and judge.judge([found.by], 60).verdict == "survived":
            return Judgement(found.verdict, found.by, found.seconds, "whole")
        by = f"{found.by} fails without the fault as well, or not always"
        judgement = Judgement("survived", by, found.seconds, "whole")
    return judgement


def fixed(judge: Judge, tree: Tree) -> int:
    """The programme itself works: faults that must be noticed are, and where there is none, none is seen."""
    sound = judge.judge([test for *_, test in FIXED], 5 * len(FIXED))
    wrong = int(sound.verdict != "survived")
    if wrong:
        print(f"without a fault: {sound.by}")
    for path, where, before, after, test in FIXED:
        found = [
            fault
            for fault in faults_of(path, (tree.path / path).read_bytes())
            if (fault.where, fault.before, fault.after) == (where, before, after)
        ]
        if not found:
            print(f"{path} {where}: {before!r} is no more")
            wrong += 1
            continue
        tree.put(found[0])
        judgement = judge.judge([test], 5)
        tree.restore(found[0])
        wrong += judgement.verdict != "noticed"
        _print(found[0], judgement, 1)
    return wrong


def _print(fault: Fault, judgement: Judgement, passing: int) -> None:
    print(
        f"  {judgement.verdict:9}  {fault.path.removeprefix('src/magnetar/')}:{fault.line}  {fault.kind}; "
        f"{judgement.by} ({passing} pass it, {judgement.seconds:.1f} s)",
        flush=True,
    )
    if judgement.verdict != "noticed":
        print(f"    - {fault.before}\n    + {fault.after}", flush=True)


def _summary(sample: Sample) -> None:
    """Shares are of those that change something."""
    known = equivalents()
    print(f"\ndrawn from {sample.commit}")
    print("area        drawn  equivalent  quick  whole  timed out  survived  open   share noticed")
    totals: Counter[str] = Counter()
    survivors = []
    areas = list(dict.fromkeys(one.area for one in sample.drawn))
    for area in [*areas, "all"]:
        counts: Counter[str] = Counter()
        for one in sample.drawn if area != "all" else ():
            if one.area != area:
                continue
            judgement = sample.judgement(one)
            if one.name in known:
                counts["equivalent"] += 1
            elif judgement is None:
                counts["open"] += 1
            else:
                counts[judgement.stage if judgement.verdict == "noticed" else judgement.verdict] += 1
                if judgement.verdict == "survived":
                    survivors.append((one, judgement))
        totals += counts
        if area == "all":
            counts = totals
        noticed = counts["quick"] + counts["whole"] + counts["timed out"]
        changing = noticed + counts["survived"]
        print(
            f"{area:10} {counts.total():6} {counts['equivalent']:11} {counts['quick']:6} {counts['whole']:6}"
            f" {counts['timed out']:10} {counts['survived']:9} {counts['open']:5}"
            f"   {noticed / changing if changing else 1:.1%}"
        )
    reasons = Counter(known.values())
    print(f"\nnot drawn because they change nothing (equivalent.tsv): {len(known)}; the commonest reasons:")
    for reason, number in reasons.most_common(12):
        if number > 1:
            print(f"{number:5}  {reason}")
    if survivors:
        print("\nNobody noticed (a line for equivalent.tsv each, if it changes nothing):")
    for one, judgement in survivors:
        print(f"{one.number}\t{one.name}\t[{judgement.stage}: {judgement.by}]")


if __name__ == "__main__":
    main()
