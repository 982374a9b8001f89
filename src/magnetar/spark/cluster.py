"""A Spark standalone cluster on this machine: one master and some workers, as processes of ours on 127.0.0.1.

For the demo and the tests: executors are processes of their own there, as on any cluster, so what a task needs has to
reach them. They find this Python and its packages because they inherit our environment; on machines of their own both
have to be installed (docs/clusters.md).
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import magnetar
from magnetar.model.errors import ServiceNotReadyError
from magnetar.runtime.clock import steady_seconds
from magnetar.spark.interpreter import of_session
from magnetar.spark.java.installation import check_java
from magnetar.spark.java.options import with_archive
from magnetar.spark.process import await_end

_HOST: Final = "127.0.0.1"
_START: Final = 60.0
_STOP: Final = 10.0
_PACKAGES: Final = str(Path(magnetar.__file__).parent.parent)
"""Where this package is imported from."""
_POLL: Final = 0.05


@contextmanager
def standalone_cluster(directory: Path, workers: int = 2, *, cores: int = 1, memory: str = "640m") -> Iterator[str]:
    """Started and ended by id; gives the master's URL. Logs and the executors' work go into ``directory``."""
    check_java()
    with ExitStack() as stack:
        port = _free_port()
        url = f"spark://{_HOST}:{port}"
        master = ["master.Master", "--host", _HOST, "--port", str(port), "--webui-port", "0"]
        stack.enter_context(_running(master, directory / "master.log", "I have been elected leader"))
        for number in range(workers):
            position = directory / f"worker-{number}"
            worker = ["worker.Worker", url, "--host", _HOST, "--webui-port", "0", "--work-dir", str(position)]
            worker += ["--cores", str(cores), "--memory", memory]
            stack.enter_context(_running(worker, directory / f"worker-{number}.log", "Successfully registered"))
        yield url


@contextmanager
def _running(command: list[str], log: Path, ready: str) -> Iterator[None]:
    """One daemon of Spark's in the foreground; entered when its log says that it is ``ready``."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": with_archive("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
        "PYSPARK_PYTHON": of_session(),
        # Executors work in directories of their own, where a relative path leads elsewhere.
        "PYTHONPATH": os.pathsep.join(os.path.abspath(str(path)) for path in (_PACKAGES, *_python_path())),
    }
    line = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{command[0]}", *command[1:]]
    with log.open("w") as errors:
        process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        deadline = steady_seconds() + _START
        while ready not in log.read_text():
            if process.poll() is not None or steady_seconds() > deadline:
                raise ServiceNotReadyError(f"Spark's {command[0]} did not start; see {log}")
            time.sleep(_POLL)
        yield
    finally:
        process.terminate()
        await_end(process, _STOP)


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
