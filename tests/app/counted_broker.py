"""``magnetar standalone`` whose calls of fsync and fdatasync are written down, below its code, in both processes.

``python -m tests.app.counted_broker LOG FAULT ARGUMENTS…``: each sync that the kernel has finished is a line of
``LOG``: which process, the file, its length then. ``FAULT`` breaks the build on purpose: ``deaf process`` never syncs
in the sync process, ``deaf file`` has an ``OsFile.sync`` that does nothing; ``-`` is the build as it is.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

COUNT = """
import os
def count(who, log):
    def counted(real):
        def sync(fd):
            real(fd)
            line = f"{who}\\t{os.readlink(f'/proc/self/fd/{fd}')}\\t{os.fstat(fd).st_size}\\n"
            out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(out, line.encode())
            os.close(out)
        return sync
    os.fsync, os.fdatasync = counted(os.fsync), counted(os.fdatasync)
"""
WRAPPER = """#!{python} -IS
import sys
{count}
count("process", {log!r})
program, sys.argv = sys.argv[4], ["-c", *sys.argv[5:]]
exec(compile(program, "sync process", "exec"))
"""


def main() -> None:
    log, fault, *arguments = sys.argv[1:]
    wrapper = Path(log + ".python")
    wrapper.write_text(WRAPPER.format(python=sys.executable, count=COUNT, log=log))
    wrapper.chmod(0o700)
    namespace: dict[str, object] = {}
    exec(COUNT, namespace)
    namespace["count"]("broker", log)  # type: ignore[operator]  # from the text above
    from magnetar.app.main import app
    from magnetar.storage.backends import files, sync_process

    if fault == "deaf process":
        assert "os.fdatasync(file)" in sync_process._PROGRAM
        sync_process._PROGRAM = sync_process._PROGRAM.replace("os.fdatasync(file)", "pass")  # type: ignore[misc]
    elif fault == "deaf file":
        files.OsFile.sync = lambda self: None  # type: ignore[method-assign]  # a wrong build
    sys.executable = str(wrapper)
    app(arguments, prog_name="magnetar")


if __name__ == "__main__":
    os.umask(0o077)
    main()
