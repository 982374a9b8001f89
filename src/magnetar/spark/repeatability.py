"""Whether a write task gets its rows straight from a stream of ours: how a sink knows that a repetition will be one.

A repeated micro-batch has the same tasks with the same rows if nothing stands between reading and writing but what
works row by row: the tasks then follow from the offsets in the checkpoint (`planner`). A shuffle breaks that: how many
tasks there are is decided while it runs (adaptive execution), and the network decides which rows come first. Spark
shows a sink neither its plan nor the number of tasks (docs/decisions/009). But without a shuffle the reader runs in the
very task that writes, in another Python process of the same executor. So a reader leaves a note of its task in the
executor's directory, and a writer looks for the note of its own when its first row comes, which is always after the
reader began.

A note is 8 bytes, the attempt id of the task, which is unique in its application, in a ring of the last `_NOTES` of one
process: a file per process and application that is never larger. A reader is at most as many tasks ahead of a writer as
rows lie in the pipes between them, a handful.
"""

from __future__ import annotations

import os
import struct
import tempfile
from pathlib import Path
from typing import Final

from pyspark import SparkFiles, TaskContext

_NOTE: Final = struct.Struct("<q")
_NOTES: Final = 512
_PREFIX: Final = ".magnetar-read-"

_written: dict[str, int] = {}
"""How many notes this process has written, by file."""


def note_source_read() -> None:
    """Note that this task reads from a stream; does nothing outside a task."""
    context = TaskContext.get()
    if context is None:
        return
    path = _directory() / f"{_prefix(context)}{os.getpid()}"
    count = _written.get(str(path), 0)
    _written[str(path)] = count + 1
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        # The attempt ids of a context begin at 0, which a hole in the file would look like.
        os.pwrite(file, _NOTE.pack(context.taskAttemptId() + 1), count % _NOTES * _NOTE.size)
    finally:
        os.close(file)


def is_repeatable() -> bool:
    """Return whether this task reads from a stream of ours as well."""
    context = TaskContext.get()
    if context is None:
        return False
    wanted = _NOTE.pack(context.taskAttemptId() + 1)
    for path in _directory().glob(f"{_prefix(context)}*"):
        data = path.read_bytes()
        if any(data[at : at + _NOTE.size] == wanted for at in range(0, len(data), _NOTE.size)):
            return True
    return False


def _prefix(context: TaskContext) -> str:
    return f"{_PREFIX}{context.getLocalProperty('spark.app.id') or 'application'}-"


def _directory() -> Path:
    """Return the executor's own directory, which goes with it; the same for all of its Python processes."""
    own = SparkFiles.getRootDirectory()
    return Path(own if own and os.access(own, os.W_OK) else tempfile.gettempdir())
