"""``python -m tools.coverage WORD``: run the count of that name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> int:
    """Return the exit code: 0 if nothing is wrong."""
    words = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if "main(" in path.read_text("utf-8"))
    words = [word for word in words if not word.startswith("_")]
    if len(sys.argv) != 2 or sys.argv[1] not in words:
        print(f"usage: python -m tools.coverage {'|'.join(words)}", file=sys.stderr)
        return 2
    return int(importlib.import_module(f"tools.coverage.{sys.argv[1]}").main())


if __name__ == "__main__":
    sys.exit(main())
