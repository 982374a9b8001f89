"""``make mutants``: a sample of single faults in storage, delivery, topics, connections and protocol, judged by tests.

A fault that no test notices is a missing test, or it changes nothing: then it is listed in ``equivalent.tsv`` with the
reason. ``--seed`` picks another sample, ``--only TEXT`` judges the faults whose file, function or line holds the text.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.mutants.choice import AREAS, JUDGES, REST, Choice, all_faults, footprints
from tools.mutants.faults import Fault, faults_of
from tools.mutants.judge import Judge, Judgement
from tools.mutants.tree import Tree

FIXED = (
    (
        "src/magnetar/storage/backends/committer.py", "_append", "file.sync()", "pass",
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
        "held.log.barrier(closed)", "pass",
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
EQUIVALENT = Path(__file__).with_name("equivalent.tsv")


def equivalents() -> dict[str, str]:
    """Faults that change nothing which anybody was promised, with the reason."""
    listed = [line.split("\t") for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#")]
    return {"\t".join(fields[:4]): fields[4] for fields in listed}


def sample(faults: Sequence[Fault], count: int, seed: int) -> list[Fault]:
    """Faults known to change nothing are not drawn."""
    known = equivalents()
    wanted = [fault for fault in faults if fault.name not in known]
    return random.Random(seed).sample(wanted, min(count, len(wanted)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("areas", nargs="*", default=list(AREAS), metavar="AREA", help=f"of {', '.join(AREAS)}")
    parser.add_argument("--count", type=int, default=40, help="faults per area (40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="all faults with this text instead of a sample")
    parser.add_argument("--footprints", type=Path, help="use this map of lines to tests if it exists, else write it")
    parser.add_argument(
        "--whole", action="store_true", help="survivors are judged by the rest of `make test` too, minutes for each"
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
        _judge(known, tree)


def _judge(known: argparse.Namespace, tree: Tree) -> None:
    if known.footprints is not None and known.footprints.exists():
        found = json.loads(known.footprints.read_text())
        root = Path(found.pop("root"))
    else:
        to = tree.path / "footprints.json"
        found, root = footprints(tree, list(AREAS), JUDGES, to), tree.path
        if known.footprints is not None:
            known.footprints.write_text(json.dumps({**found, "root": str(root)}))
    choice, judge = Choice(found, root), Judge(tree)
    sound = judge.judge(choice.some(), 60)
    if sound.verdict != "survived":
        raise SystemExit(f"the judge sees faults where there are none: {sound.by}")
    totals: dict[str, Counter[str]] = {}
    survivors: list[tuple[Fault, Judgement]] = []
    for area in known.areas:
        faults = list(all_faults(tree, area))
        if known.only is not None:
            chosen = [fault for fault in faults if known.only in fault.name]
        else:
            chosen = sample(faults, known.count, known.seed)
        print(f"\n{area}: {len(chosen)} of {len(faults)} possible faults", flush=True)
        totals[area] = Counter()
        for fault in chosen:
            tests = choice.for_fault(fault)
            tree.put(fault)
            judgement = judge.judge(tests.tests, tests.seconds)
            if known.whole and judgement.verdict == "survived":
                judgement = _by_the_rest(judge, tree, fault, tests.others)
            tree.restore(fault)
            totals[area][judgement.verdict] += 1
            _print(fault, judgement, tests.passing)
            if judgement.verdict == "survived":
                survivors.append((fault, judgement))
    _summary(totals, survivors)


def _by_the_rest(judge: Judge, tree: Tree, fault: Fault, others: Sequence[str]) -> Judgement:
    """What the quick tests let through, judged by the slow ones that pass the line and by those of real brokers.

    Such tests have clocks: one that fails must fail again with the fault and pass without it.
    """
    judgement = Judgement("survived", "all of `make test` that meets brokers", 0.0)
    for tests in (list(others), list(REST)):
        if not tests:
            continue
        found = judge.judge(tests, 600)
        if found.verdict == "survived":
            continue
        again = judge.judge([found.by], 60)
        tree.restore(fault)
        without = judge.judge([found.by], 60)
        tree.put(fault)
        if again.verdict != "survived" and without.verdict == "survived":
            return found
        judgement = Judgement("survived", f"{found.by} fails without the fault as well, or not always", found.seconds)
    return judgement


def fixed(judge: Judge, tree: Tree) -> int:
    """The programme itself works: faults that must be noticed are, and where there is none, none is seen."""
    wrong = 0
    for path, where, before, after, test in FIXED:
        sound = judge.judge([test], 5)
        found = [
            fault
            for fault in faults_of(path, (tree.path / path).read_bytes())
            if (fault.where, fault.before, fault.after) == (where, before, after)
        ]
        if not found or sound.verdict != "survived":
            print(f"{path} {where}: {before!r} is no more, or {test} fails without a fault: {sound.by}")
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


def _summary(totals: dict[str, Counter[str]], survivors: Sequence[tuple[Fault, Judgement]]) -> None:
    print("\narea        faults  noticed  timed out  survived   share noticed")
    for area, counts in totals.items():
        judged = counts.total()
        stopped = counts["noticed"] + counts["timed out"]
        print(
            f"{area:10}  {judged:6}  {counts['noticed']:7}  {counts['timed out']:9}  {counts['survived']:8}"
            f"   {stopped / judged if judged else 1:.1%}"
        )
    if survivors:
        print("\nNobody noticed (a line for equivalent.tsv each, if it changes nothing):")
    for fault, _ in survivors:
        print(fault.name)


if __name__ == "__main__":
    main()
