"""``magnetar standalone`` whose imports on the thread of its event loop are written down.

``python -m tests.app.watched_imports LOG ARGUMENTS…``: each module that is looked for there is a line of ``LOG``, those
of the start too.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path


class Watch:
    """Finds nothing, and notes who looks for what; before all others in ``sys.meta_path``."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._loop = threading.get_ident()

    def find_spec(self, name: str, *_: object) -> None:
        if threading.get_ident() == self._loop:
            with self._log.open("a") as log:
                log.write(f"{name}\n")


def main() -> None:
    log, *arguments = sys.argv[1:]
    sys.meta_path.insert(0, Watch(Path(log)))
    from magnetar.app.main import app

    app(arguments, prog_name="magnetar")


if __name__ == "__main__":
    main()
