"""How the Java process of a session is started, and that none is left where the start is interrupted."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from typing_extensions import override

if TYPE_CHECKING:
    from pyspark import SparkConf

_NUMBER_MAX = 32


def launch(conf: SparkConf, *, deaf: bool) -> Any:
    """Start Java and return pyspark's gateway to it; ``deaf``: Java hears neither SIGTERM nor SIGHUP.

    Whoever is interrupted meanwhile has no handle of the process, and Java, whose place to write its port to is gone by
    then, neither serves nor ends. So its number is kept here, and it is killed.
    """
    from pyspark.java_gateway import launch_gateway

    reading, writing = os.pipe()
    try:
        return launch_gateway(conf, _Arguments(deaf, writing))  # type: ignore[no-untyped-call]  # pyspark has no types there
    except BaseException:
        os.close(writing)
        writing = -1
        # the process closes its own end when it begins as another program
        _kill(os.read(reading, _NUMBER_MAX))
        raise
    finally:
        for end in (reading, writing):
            if end >= 0:
                os.close(end)


def _kill(number: bytes) -> None:
    """Kill the process if it has begun and is not waited for yet: its number may be another's then."""
    try:
        if number and os.waitpid(int(number), os.WNOHANG)[0] == 0:
            os.kill(int(number), signal.SIGKILL)
            os.waitpid(int(number), 0)
    except ChildProcessError:
        pass


class _Arguments(dict[str, Any]):
    """Arguments of the Popen that starts Java: before Java begins its number is written, and signals ignored if wanted.

    Java leaves signals alone that are ignored when it starts. Pyspark has it so for SIGINT.
    """

    def __init__(self, deaf: bool, writing: int) -> None:
        super().__init__()
        self._deaf, self._writing = deaf, writing

    @override
    def __setitem__(self, name: str, value: Any) -> None:
        if name != "preexec_fn":
            super().__setitem__(name, value)
            return

        def before() -> None:
            value()
            os.write(self._writing, b"%d" % os.getpid())
            if self._deaf:
                for number in (signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)

        super().__setitem__(name, before)
