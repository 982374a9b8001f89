"""``python -m tools.compiled``: make the compiled twin, and say where it is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.compiled.library import missing
from tools.compiled.twin import make_twin


def main() -> None:
    """Make it; exit 3 with the reason where this machine cannot compile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", default="2", help="the compiler's optimization, 0 to 3")
    chosen = parser.parse_args()
    if reason := missing():
        print(f"the compiled build cannot be made here: {reason}", file=sys.stderr)
        sys.exit(3)
    source = make_twin(Path(__file__).resolve().parents[2], chosen.level)
    print(f"{source}\nPYTHONPATH={source} magnetar standalone runs it")


if __name__ == "__main__":
    main()
