"""What the user's Ctrl-C is among the errors that functions of an application raise."""

from __future__ import annotations

import threading


def is_ctrl_c(error: BaseException) -> bool:
    """Whether an error out of a function of the application is the user's Ctrl-C, which is to end the program.

    Signals reach the main thread only. Everywhere else KeyboardInterrupt and SystemExit are what such a function has
    raised itself: it has failed, which must not end the thread that called it.
    """
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()
