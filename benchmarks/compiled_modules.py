"""What compiling each folder of hot modules brings: `python -m benchmarks.compiled_modules`.

Builds with all modules of :data:`magnetar.compiled_build.COMPILED`, with all but those of one folder, and none are
made below ``build/compiled-parts`` (minutes; only what changed is compiled again), and :mod:`benchmarks.entry_cpu`
runs on each in turn. A row says by how much an entry gets dearer when that folder is left to the interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from magnetar.compiled_build import COMPILED

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "compiled-parts"
PURE, ALL = "pure", "all compiled"
FOLDERS = (
    "magnetar.protocol",
    "magnetar.storage.log",
    "magnetar.storage.ledgers",
    "magnetar.broker.delivery",
    "magnetar.broker.topic.publish",
    "magnetar.broker.topic.dispatch",
    "magnetar.broker.connection",
)


def builds() -> dict[str, tuple[str, ...]]:
    """The modules that each build compiles, by the build's name."""
    without = {
        f"without {folder}": tuple(name for name in COMPILED if not name.startswith(folder + ".")) for folder in FOLDERS
    }
    return {PURE: (), ALL: COMPILED, **without}


def make(name: str, modules: Iterable[str]) -> Path:
    """Return the ``src`` of that build. Raises SystemExit with the compiler's words."""
    home = HOME / name.replace(" ", "-")
    source, work = home / "src", home / "work"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    if wanted := ",".join(modules):
        shutil.rmtree(work / "lib", ignore_errors=True)
        command = [sys.executable, "-m", "tools.compiled.library", str(ROOT), str(work), "--modules", wanted]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
        for library in (work / "lib").rglob("*.so"):
            shutil.copy2(library, source / library.relative_to(work / "lib"))
    return source


def run(source: Path, steps: int) -> dict[str, float]:
    """Microseconds by workload of one process."""
    command = [sys.executable, "-m", "benchmarks.entry_cpu", "--json", "--steps", str(steps)]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=HOME, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)["microseconds"]
    return found


def main() -> None:
    """Make the builds, run them in turn, and print the least of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--make-only", action="store_true", help="compile, and measure nothing")
    parser.add_argument("--out", type=Path, help="JSON file for all samples")
    chosen = parser.parse_args()
    sources = {name: make(name, modules) for name, modules in builds().items()}
    if chosen.make_only:
        return
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
    for _ in range(chosen.rounds):
        for name, source in sources.items():
            samples[name].append(run(source, chosen.steps))
    if chosen.out:
        chosen.out.write_text(json.dumps(samples, indent=1) + "\n")
    least = {name: {work: min(each[work] for each in some) for work in some[0]} for name, some in samples.items()}
    print("| build | " + " | ".join(least[PURE]) + " |")
    print("|---|" + "---|" * len(least[PURE]))
    for name, row in least.items():
        cells = [f"{value:.2f} ({value / least[ALL][work]:.2f})" for work, value in row.items()]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
