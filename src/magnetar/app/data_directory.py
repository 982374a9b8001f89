"""What ``--data`` names: a directory that holds ``ledgers/``, locked as a whole for one broker.

``ledgers/`` has a lock of its own. This one still holds when somebody moves ``ledgers/`` away while the broker runs and
starts another broker there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from magnetar.model.errors import PersistenceError
from magnetar.storage.directory import close_to_others, lock_directory, make_directory

_FACTS: Final = "metadata.sqlite"


class DataDirectory:
    """Holds the lock until :meth:`close`."""

    def __init__(self, path: Path) -> None:
        """Make it, so that its name lasts, and take it. Raises PersistenceError."""
        self._lock = -1
        try:
            make_directory(str(path))
            self._lock = lock_directory(str(path))
        except BlockingIOError:
            raise PersistenceError(
                f"{path} is in use by another process; stop that one or choose another directory"
            ) from None
        except OSError as error:
            raise PersistenceError(f"{path} cannot be used as data directory: {error}") from error
        names = sorted(entry.name for entry in path.iterdir())
        facts = [name for name in names if name.startswith(_FACTS)]
        # what holds other people's things too keeps its permissions: somebody may have said --data .
        close_to_others(str(path), facts, itself=set(names) <= {"ledgers", *facts})

    def close(self) -> None:
        """Give it back."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
