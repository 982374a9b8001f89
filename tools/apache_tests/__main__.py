"""`python -m tools.apache_tests [PART ...]`: the test classes whose names contain a part, or all."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.apache_tests.class_path import ClassPath
from tools.apache_tests.class_run import ROOT, run

SECONDS = 600.0


def chosen(names: Sequence[str], parts: Sequence[str]) -> list[str]:
    """The classes whose names contain a part, or all; of a class that parts name with methods only these."""
    found = []
    for name in names:
        if not parts or any(part in name for part in parts if "#" not in part):
            found.append(name)
            continue
        methods = [part.split("#", 1) for part in parts if "#" in part]
        found += [f"{name}#{method}" for kind, method in methods if f".{name}".endswith(f".{kind}")]
    return found


def main() -> int:
    """Run the classes one after the other. Returns 1 if a test failed, or a class did not come to its end."""
    parser = argparse.ArgumentParser(prog="make apache-tests", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help="of a class's full name; `Class#method` for one method"
    )
    parser.add_argument("--list", action="store_true", help="print the names, and run nothing")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for one class (%(default)g)")
    parser.add_argument(
        "--results", type=Path, default=Path("build/apache-tests"), help="for output and logs (%(default)s)"
    )
    parser.add_argument("--sources", type=Path, default=ROOT / "src", help="the magnetar that is tried (%(default)s)")
    given = parser.parse_args()
    class_path = ClassPath()
    class_path.prepare()
    names = chosen(class_path.test_classes(), given.parts)
    if not names:
        parser.error(f"no test class has {' or '.join(given.parts)} in its name; --list prints them")
    total: Counter[str] = Counter()
    unfinished = 0
    for name in names:
        if given.list:
            print(name)
            continue
        found, ended = run(class_path, name, given.results.resolve(), given.seconds, given.sources.resolve())
        counts = Counter(verdict.word for verdict in found)
        total += counts
        unfinished += not ended
        state = "" if ended else f", not at its end after {given.seconds:g} s"
        print(
            f"{name}: {', '.join(f'{n} {word}' for word, n in sorted(counts.items())) or 'nothing'}{state}",
            flush=True,
        )
        for verdict in found:
            if verdict.word in {"FAIL", "SETUP", "REFUSED"}:
                print(f"    {verdict.word} {verdict.test}: {verdict.reason}", flush=True)
    if not given.list:
        print(
            f"{len(names)} classes, {unfinished} not at their end: "
            + ", ".join(f"{n} {word}" for word, n in sorted(total.items()))
        )
    return 1 if total["FAIL"] or total["SETUP"] or unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
