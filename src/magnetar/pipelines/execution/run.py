"""The query of a pipeline: it is started, shown while it runs, and stopped.

A signal (Ctrl-C, SIGTERM, SIGHUP) stops the query when the running micro-batch has ended; a second one stops it at
once, which is safe too, since a micro-batch is repeated from any point. Java ignores all, so it does not matter whether
the signal goes to this process or to its group. Where it goes to Spark's Python workers too (systemd), they end and the
micro-batch fails, which then counts as a stop. An error ends the query and the command; the next start continues where
it was.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.read_position import START
from magnetar.lakehouse import register
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.pipelines.declaration import functions
from magnetar.pipelines.declaration.model import DEAD_LETTERS, Pipeline, Trigger
from magnetar.pipelines.declaration.secrets import redact
from magnetar.pipelines.execution import outputs
from magnetar.pipelines.execution.batch import BatchRun
from magnetar.pipelines.execution.frames import short, source_options
from magnetar.pipelines.execution.plan import Analysis, analyse
from magnetar.pipelines.execution.progress import ProgressView
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.status import open_lookup
from magnetar.runtime.command_line import ending_signals
from magnetar.spark.options.source_options import source_options as checked_options
from magnetar.spark.options.topic_selection import topic_partitions, topics_by_name
from magnetar.spark.session import end_session, errors_into, local_session
from magnetar.spark.source.planning.topic_tracker import TopicTracker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL: Final = 0.25
_LAST_BATCH: Final = 60.0
"""How long a micro-batch may take to end once a signal has come, seconds."""
_LOG: Final = "spark.log"
_FRAME: Final = re.compile(r'\s*File "([^"]+)", line (\d+)')
_LIBRARIES: Final = ("site-packages", "pyspark.zip", "/lib/python", "<")


class PipelineFailedError(MagnetarError):
    """The query has ended with an error; its text is the explanation."""


class Stop:
    """A request to stop, set by signals."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.starting = True
        """Whether no micro-batch can have begun yet: Spark may take a minute to start, and is not stopped meanwhile."""
        self._answers = 2

    def __call__(self, number: int, _frame: object) -> None:
        if self.asked.is_set():
            raise KeyboardInterrupt
        self.asked.set()
        if self.starting:  # in a handler nothing may be printed through a stream that may be at work
            with contextlib.suppress(OSError):
                os.write(self._answers, b"stopping as soon as Spark has started; once more to stop at once\n")

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals within this context; other threads than the main one cannot."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ending_signals())}
        self._answers = os.dup(2)  # a session has its children's log there
        self.listen()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._answers)

    def listen(self) -> None:
        """Install the handlers again: Spark's session takes Ctrl-C for itself when it starts."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, *ending_signals()):
                signal.signal(number, self)


class RunOutcome(NamedTuple):
    """What a run has done."""

    batches: int
    rows: int
    dead: int
    dropped: int
    stopped: bool
    """Whether a signal stopped it."""


@contextlib.contextmanager
def session(pipeline: Pipeline, *, brief: bool = True) -> Iterator[SparkSession]:
    """Give a Spark session in this process with the settings of the file; Spark's own log goes into the checkpoint.

    ``brief``: for what takes minutes and not hours (`spark.session`).
    """
    directory = Path(pipeline.checkpoint)
    directory.mkdir(parents=True, exist_ok=True)
    functions.make_findable(Path(pipeline.file).parent)
    with errors_into(directory / _LOG):
        spark = local_session(
            f"magnetar pipeline {pipeline.name}",
            cores=os.cpu_count() or 2,
            brief=brief,
            deaf=True,
            settings={"spark.log.level": "ERROR", **pipeline.spark},
        )
        try:
            yield spark
        finally:
            end_session(spark)


def require_free(pipeline: Pipeline) -> None:
    """Raise what a run would raise about its checkpoint, before Spark starts: another process runs the pipeline, or the
    directory is not its own. A run that comes between is found by `run`."""
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    _require_own(pipeline, checkpoint)
    if checkpoint.identity() is not None:
        with checkpoint.alone():
            pass


def prepare(pipeline: Pipeline) -> PipelineCheckpoint:
    """Return the checkpoint. A new one records where each source begins, kept in the broker as a durable
    subscription."""
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    _require_own(pipeline, checkpoint)
    if checkpoint.identity() is None:
        starts = {}
        for source in pipeline.topic_sources:
            tracker = TopicTracker(checked_options(source_options(pipeline, source)), source.subscription)
            try:
                starts[source.name] = tracker.initial()
            finally:
                tracker.close()
        checkpoint.begin(pipeline.name, starts)
    outputs.check_places(pipeline, checkpoint)
    if pipeline.dead_letter is not None:
        _keep_letters(pipeline, pipeline.dead_letter)
    return checkpoint


def _require_own(pipeline: Pipeline, checkpoint: PipelineCheckpoint) -> None:
    identity = checkpoint.identity()
    if identity is None:
        if there := checkpoint.remains():
            raise InvalidValueError(
                f"{pipeline.checkpoint} has {', '.join(there)} and no pipeline.json: it is the checkpoint of another "
                "query, or something else; name an empty or a new directory"
            )
    elif identity["pipeline"] != pipeline.name:
        raise InvalidValueError(
            f"{pipeline.checkpoint} belongs to pipeline {identity['pipeline']!r} and not to {pipeline.name!r}; "
            "name another directory"
        )
    elif (last := checkpoint.sources()) != (now := sorted(source.name for source in pipeline.topic_sources)):
        raise InvalidValueError(
            f"{pipeline.checkpoint} was written with the sources {', '.join(last)}, and the file has now "
            f"{', '.join(now)}: sources cannot be added, removed or renamed; use a new checkpoint"
        )


def _keep_letters(pipeline: Pipeline, topic: str) -> None:
    """Keep a subscription that no client reads: without one, brokers trim the topic, and delete it when it is idle."""
    with open_lookup(pipeline) as lookup:
        for name in topic_partitions(lookup, topics_by_name([topic]), create=True):
            with CheckpointSubscription(lookup, name, f"{pipeline.name}.{DEAD_LETTERS}") as subscription:
                subscription.hold(START)


def run(
    spark: SparkSession, pipeline: Pipeline, watch: ProgressView, stop: Stop, trigger: Trigger | None = None
) -> RunOutcome:
    """Run until there is nothing more to do, or a stop is requested. Raises PipelineFailedError with the reason."""
    with PipelineCheckpoint(pipeline.checkpoint).alone():
        return _run_alone(spark, pipeline, watch, stop, trigger)


def _run_alone(
    spark: SparkSession, pipeline: Pipeline, watch: ProgressView, stop: Stop, trigger: Trigger | None
) -> RunOutcome:
    checkpoint = prepare(pipeline)
    register(spark)
    analysis = analyse(spark, pipeline)
    batches = BatchRun(pipeline, checkpoint, analysis, watch.batch_done)
    if stop.asked.is_set():
        return RunOutcome(0, 0, 0, 0, True)
    stop.starting = False
    query = _start(pipeline, checkpoint, analysis, batches, trigger or pipeline.trigger)
    stopped = False
    try:
        while query.isActive:
            if stop.asked.wait(_POLL) and not stopped:
                stopped = True
                watch.say("stopping when this micro-batch is done; once more to stop at once")
                _stop_between(query, batches)
            progress = query.lastProgress
            if progress is not None:
                watch.progressed(progress, analysis.order)
        error = query.exception()
    finally:
        if query.isActive:
            query.stop()
    # A query that a signal ended has not failed, even if it ended before it could be stopped.
    stopped = stopped or stop.asked.is_set()
    if stopped and isinstance(batches.failure, MagnetarError):
        # An error of ours is more than a process that ended; it may occur again at the next start.
        watch.say(f"the last micro-batch has failed, the next run will repeat it: {redact(str(batches.failure))}")
    if not stopped and (batches.failure is not None or error is not None):
        watch.errors += 1
        raise PipelineFailedError(explanation(pipeline, batches.failure or error)) from None
    return RunOutcome(watch.batches, watch.rows_in, watch.dead, watch.dropped, stopped)


def _start(
    pipeline: Pipeline, checkpoint: PipelineCheckpoint, analysis: Analysis, batches: BatchRun, trigger: Trigger
) -> Any:
    writer = analysis.clock.writeStream.foreachBatch(batches).queryName(pipeline.name)
    writer = writer.option("checkpointLocation", str(checkpoint.directory)).outputMode(pipeline.output_mode)
    if trigger is Trigger.AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    elif trigger is Trigger.ONCE:
        writer = writer.trigger(once=True)
    elif trigger is Trigger.INTERVAL:
        writer = writer.trigger(processingTime=f"{round(pipeline.interval * 1000)} milliseconds")
    return writer.start()


def _stop_between(query: Any, batches: BatchRun) -> None:
    got = batches.busy.acquire(timeout=_LAST_BATCH)
    try:
        query.stop()
    finally:
        if got:
            batches.busy.release()


def cause_of(error: BaseException) -> str:
    """Return the innermost reason, without traces: the last line of a task's Python error."""
    if isinstance(error, MagnetarError):
        return str(error)
    lines = str(error).splitlines()
    ours = [line.strip() for line in lines if line.strip().startswith("magnetar.") and "Error: " in line]
    if ours:
        return ours[-1].partition("Error: ")[2]
    named = [line.strip() for line in lines if line[:1].isalpha() and "Error: " in line.split(" ", 2)[0] + " "]
    return named[-1] + _raised_at(lines) if named else f"{type(error).__name__}: {short(error)}"


def _raised_at(lines: list[str]) -> str:
    """Return the last place of a task's Python error that is no library's: that of a user's function."""
    found = [match for line in lines if (match := _FRAME.match(line))]
    own = [match for match in found if not any(part in match[1] for part in _LIBRARIES)]
    return f" ({own[-1][1]}:{own[-1][2]})" if own else ""


def explanation(pipeline: Pipeline, error: BaseException | None) -> str:
    """Return one paragraph: what happened, where, and what to do."""
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    begun, done = max(checkpoint.batches(), default=-1), checkpoint.committed()
    where = f"in micro-batch {begun}" if begun > done else f"after micro-batch {done}" if done >= 0 else "at its start"
    cause = redact(cause_of(error) if error is not None else "unknown").rstrip(".")
    return (
        f"pipeline {pipeline.name} has failed {where}: {cause}. Nothing is lost: `magnetar pipeline run "
        f"{pipeline.file}` goes on at this point. Spark's log is {Path(pipeline.checkpoint) / _LOG}."
    )
