"""A local Spark session with the settings that Python data sources want, each with what it is for."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from magnetar.model.errors import InvalidValueError, ServiceNotReadyError
from magnetar.spark.forks.server_start import end, started
from magnetar.spark.interpreter import of_session
from magnetar.spark.java.installation import check_java, explain_failed_start
from magnetar.spark.java.launch import launch
from magnetar.spark.java.options import with_archive
from magnetar.spark.process import await_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_EXIT: Final = 10.0

SETTINGS: Final[dict[str, str]] = {
    # A Python task costs 12 ms over a unix socket and 51 ms over TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # Hours and days are cut in this zone, whatever the machine's is.
    "spark.sql.session.timeZone": "UTC",
    # Needed by the option pushDownFilters; without it nothing is pushed.
    "spark.sql.python.filterPushdown.enabled": "true",
    # Two attempts of one task must not write at the same time.
    "spark.speculation": "false",
    # The number of tasks of a replayed micro-batch must not depend on sizes.
    "spark.sql.adaptive.enabled": "false",
    # Each poll asks the broker.
    "spark.sql.streaming.pollingDelay": "100ms",
    # The default runs chmod and readlink as processes of their own for every file of a local checkpoint, 50 ms per
    # micro-batch. This one writes and renames the same files with the same checksums (docs/decisions/016).
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_EXECUTOR_OPTIONS: Final = "spark.executor.extraJavaOptions"
_CLUSTER_HERE: Final = "spark://127.0.0.1:"

BRIEF: Final[dict[str, str]] = {
    # Java's optimising compiler pays off after a minute or two and takes a third of the CPU until then.
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    _EXECUTOR_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "ERROR",
}

_LATER: Final = " ".join(
    f"-XX:Tier4{name}Threshold={calls}"
    for name, calls in (
        ("Invocation", 25_000),
        ("MinInvocation", 3_000),
        ("Compile", 75_000),
        ("BackEdge", 200_000),
    )
)
"""Java's optimising compiler starts after five times the usual calls. It takes two fifths of the CPU of a first query
otherwise; later queries are as fast (docs/decisions/067-compile-later.md)."""
_SERIAL: Final = "-XX:+UseSerialGC"
_SMALL_HEAP: Final = 2 << 30
"""Bytes of a heap up to which Java collects with one thread: that is quicker on two cores, and code that is not
compiled yet pays less for each reference that it writes. A large heap would stand still for seconds."""

_LEAST_HEAP: Final = 450 << 20
"""Bytes; Spark refuses less."""


def lasting(memory: str) -> dict[str, str]:
    """Return the settings of a session for hours with ``memory``, as Spark writes it: ``512m``, ``2g``."""
    size = re.fullmatch(r"(\d+)([kmgt]?)b?", memory.strip().lower())
    small = size is not None and int(size[1]) << {"k": 10, "": 20, "m": 20, "g": 30, "t": 40}[size[2]] <= _SMALL_HEAP
    return {JAVA_OPTIONS: f"{_SERIAL} {_LATER}" if small else _LATER}


def require_memory(memory: str) -> None:
    """Raise InvalidValueError about what Java does not take as the size of its heap, or Spark finds too small."""
    size = re.fullmatch(r"(\d{1,9})([kmgt]?)", memory.strip().lower())
    if size is None or int(size[1]) << {"k": 10, "": 0, "m": 20, "g": 30, "t": 40}[size[2]] < _LEAST_HEAP:
        raise InvalidValueError(
            f"{memory[:100]!r} is no memory for Spark's Java process (--memory, spark.driver.memory): write 800m or "
            "2g, 450m at least"
        )


def local_session(
    name: str,
    *,
    cores: int = 2,
    memory: str = "1g",
    brief: bool = False,
    deaf: bool = False,
    settings: dict[str, str] | None = None,
) -> SparkSession:
    """Return the session of this process, with `register` done; ``brief`` for what runs a minute and not for hours.

    ``deaf``: Java hears neither SIGTERM, which systemd sends to all processes, nor SIGHUP, which a terminal that closes
    sends to a group; it ends with this process, which can end in good order then. ``settings`` go before all else; with
    ``spark.master`` it runs elsewhere (docs/clusters.md). Raises NotFoundError and ServiceNotReadyError, which say what
    is wrong with Java.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    from magnetar.spark import register

    check_java()
    # Else workers are whatever python3 the PATH names, without what is installed here.
    os.environ.setdefault("PYSPARK_PYTHON", of_session())
    # Java starts one too, to find out which sources there are.
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", of_session())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    chosen = {
        "spark.app.name": name,
        "spark.master": f"local[{cores}]",
        **SETTINGS,
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(cores),
        **(BRIEF if brief else lasting(memory)),
        **(settings or {}),
    }
    require_memory(chosen["spark.driver.memory"])
    if SparkContext._gateway is None:
        chosen[JAVA_OPTIONS] = with_archive(chosen.get(JAVA_OPTIONS, ""))
        if chosen["spark.master"].startswith(_CLUSTER_HERE):
            chosen[_EXECUTOR_OPTIONS] = with_archive(chosen.get(_EXECUTOR_OPTIONS, ""))
    if chosen["spark.master"].startswith("local") and os.environ["PYSPARK_PYTHON"] == of_session():
        # Java takes two seconds to start, and Python has something to import meanwhile.
        started(of_session())
    try:
        if SparkContext._gateway is None:
            conf = SparkConf().setAll(list(chosen.items()))
            SparkContext._ensure_initialized(gateway=launch(conf, deaf=deaf), conf=conf)
        with ctrl_c_kept():
            spark = SparkSession.builder.config(map=dict(chosen)).getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() == "JAVA_GATEWAY_EXITED":
            raise ServiceNotReadyError(
                explain_failed_start()
                or f"Spark's Java ended as it started, with {chosen['spark.driver.memory']} of memory (--memory, "
                f"spark.driver.memory) and the options {chosen.get(JAVA_OPTIONS, '')!r}; what it said stands "
                "above, or in the pipeline's spark.log"
            ) from error
        raise
    register(spark)
    return spark


@contextlib.contextmanager
def ctrl_c_kept() -> Iterator[None]:
    """Have Ctrl-C do afterwards what it did before: a context of pyspark takes it, and asks Java from the handler, over
    a connection that may be in the middle of an answer. That is a traceback of py4j."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def errors_into(path: Path) -> Iterator[None]:
    """Send what this process's children write to stderr into a file; they keep that for life."""
    kept = os.dup(2)
    with path.open("w") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def end_session(spark: SparkSession, *, patience: float = _JAVA_EXIT) -> None:
    """Stop the session and its Java process, and wait until that has ended; may be called twice.

    ``patience``: seconds after which Java is killed.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # publishes no types
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    try:
        if gateway is not None:
            with warnings.catch_warnings():
                # where Ctrl-C has cut the connection pyspark cannot tell Java to stop; it ends all the same, below
                warnings.filterwarnings("ignore", "Unable to cleanly shutdown", RuntimeWarning)
                spark.stop()
    except (Py4JError, OSError):
        # Java has ended before, for want of memory perhaps; what is left is to be cleared away all the same.
        if process is None:
            raise
    finally:
        end()
        if gateway is not None and process is not None:
            _end_java(gateway, process, patience)


def _end_java(gateway: Any, process: Any, patience: float) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway.shutdown()
    # The Java process ends when its standard input does.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    await_end(process, patience)
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
