"""A child process that was forked off a test, and runs a part of it."""

from __future__ import annotations

import gc
import os
import signal
import traceback
from collections.abc import Callable

_SECONDS = 60


def forked(body: Callable[[], object]) -> int:
    """Run something in a child, and return its process id: status 0 says that it came to its end without an error.

    The child runs nothing else of the test, and ends after a minute at the latest. What other tests left is collected
    before: the official client's consumer, ended in a child, waits for ever for the threads that only its parent has.
    """
    gc.collect()
    process = os.fork()
    if process:
        return process
    gc.disable()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS)
    status = 1
    try:
        body()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
