"""``magnetar pipeline``: arguments, text and exit codes. The commands import everything else when they run."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import commands, complain, file_name, interruption_said

if TYPE_CHECKING:
    from magnetar.pipelines.declaration.model import Pipeline

FAILED = 1
INVALID = 2
UNPROVEN = 3
UNSEEN = 4

app = commands(
    "Pipelines on Spark that a YAML file declares (docs/pipelines.md). "
    "Exit codes: 0 good, 1 failed, 2 the file is not valid, 3 verify has found something, 4 it has found nothing and "
    "could not look at everything.",
    example="Example: magnetar pipeline check orders.yaml",
)

File = Annotated[Path, typer.Argument(parser=file_name, help="The pipeline, as YAML.", metavar="FILE")]


def _say(line: str) -> None:
    from magnetar.pipelines.declaration.secrets import redact

    sys.stdout.write(redact(line) + "\n")
    sys.stdout.flush()


def _list(problems: Iterable[str]) -> None:
    for one in problems:
        complain(one, lead="")


@contextlib.contextmanager
def _explained(interrupted: str = "nothing was changed") -> Iterator[None]:
    """Turn our errors into one paragraph and an exit code.

    SIGTERM and SIGHUP end a command as Ctrl-C does: with a line that says what is left, ``interrupted``.
    """
    from magnetar.pipelines.declaration.document import InvalidPipelineError
    from magnetar.pipelines.declaration.secrets import redact

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    with interruption_said(interrupted):
        try:
            yield
        except InvalidPipelineError as error:
            _list(map(str, error.problems))
            raise typer.Exit(INVALID) from None
        except (MagnetarError, OSError) as error:
            complain(redact(str(error)))
            raise typer.Exit(FAILED) from None


def _loaded(file: Path) -> Pipeline:
    from magnetar.pipelines.declaration.parser import load, problems_of_functions

    pipeline = load(file)
    if wrong := problems_of_functions(pipeline):
        _list(wrong)
        raise typer.Exit(INVALID)
    return pipeline


@app.command(epilog="Example: magnetar pipeline check orders.yaml --connect")
def check(
    file: File,
    connect: Annotated[bool, typer.Option("--connect", help="Also ask the broker for every topic.")] = False,
) -> None:
    """Find all mistakes of a file, without Spark; functions of Python steps are imported."""
    with _explained():
        pipeline = _loaded(file)
        if connect:
            from magnetar.pipelines.state.status import topics_of

            for line in topics_of(pipeline):
                _say(line)
        _say(
            f"{file}: pipeline {pipeline.name} with {len(pipeline.sources)} sources, {len(pipeline.steps)} steps and "
            f"{len(pipeline.sinks)} sinks is valid"
        )


@app.command(epilog="Example: magnetar pipeline plan orders.yaml")
def plan(file: File) -> None:
    """Show the graph: sources, steps, sinks, their columns, and what each sink promises."""
    with _explained():
        pipeline = _loaded(file)
        from magnetar.pipelines.execution.plan import analyse, text
        from magnetar.pipelines.execution.run import session

        with session(pipeline) as spark:
            lines = text(pipeline, analyse(spark, pipeline))
        for line in lines:
            _say(line)


@app.command(epilog="Example: magnetar pipeline run orders.yaml")
def run(
    file: File,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Process what is there and end, whatever the file's trigger is.")
    ] = False,
) -> None:
    """Run until it is done or stopped (Ctrl-C, SIGTERM, SIGHUP: after the micro-batch); start again to go on."""
    with _explained("the same command goes on after the last whole micro-batch"):
        pipeline = _loaded(file)
        from magnetar.pipelines.declaration.model import Trigger
        from magnetar.pipelines.execution.progress import ProgressView, outline
        from magnetar.pipelines.execution.run import Stop, require_free, session
        from magnetar.pipelines.execution.run import run as run_query
        from magnetar.pipelines.state.status import open_lookup

        for line in outline(pipeline):
            _say(line)
        with open_lookup(pipeline) as lookup:
            lookup.reach()  # Spark takes long to start, and begins the checkpoint
        require_free(pipeline)
        stop = Stop()
        trigger = Trigger.AVAILABLE_NOW if available_now else pipeline.trigger
        brief = trigger in (Trigger.AVAILABLE_NOW, Trigger.ONCE)
        with stop.listening(), session(pipeline, brief=brief) as spark, ProgressView(pipeline) as watch:
            stop.listen()
            address = spark.sparkContext.uiWebUrl or "no UI, for which 'spark' takes spark.ui.enabled: true"
            watch.say(f"  Spark {spark.version}: {address}; the first micro-batch begins")
            done = run_query(spark, pipeline, watch, stop, trigger)
        _say(
            f"{'stopped' if done.stopped else 'done'}: {done.batches:,} micro-batches, {done.rows:,} rows, "
            f"{done.dead:,} dead letters, {done.dropped:,} dropped"
        )


@app.command(epilog="Example: magnetar pipeline status orders.yaml")
def status(file: File) -> None:
    """Show where a pipeline is: last micro-batch, rates, lag of each source, dead letters by cause. Without Spark."""
    with _explained():
        pipeline = _loaded(file)
        from magnetar.pipelines.state.status import status as status_of

        for line in status_of(pipeline):
            _say(line)


@app.command(epilog="Example: magnetar pipeline verify orders.yaml")
def verify(
    file: File,
    since: Annotated[int, typer.Option(min=0, help="The first micro-batch to look at.")] = 0,
    sources: Annotated[
        bool, typer.Option(help="Read sources and tables again, which needs Spark; without it not all can be proven.")
    ] = True,
) -> None:
    """Prove from manifests, topics and tables that nothing was skipped, repeated or changed; exit 3 if something was,
    4 if nothing is wrong with what could be looked at."""
    with _explained():
        pipeline = _loaded(file)
        from magnetar.pipelines.evidence.verify import query_that_ran
        from magnetar.pipelines.evidence.verify import verify as judge
        from magnetar.pipelines.execution.run import session

        if sources:
            query_that_ran(pipeline)  # Spark takes long to start, and begins the checkpoint
        with contextlib.ExitStack() as stack:
            report = judge(pipeline, stack.enter_context(session(pipeline)) if sources else None, since=since)
        for line in report.lines:
            _say(line)
        for text in report.unseen:
            _say(f"NOT LOOKED AT: {text}")
        for finding in report.findings:
            _say(f"WRONG: {finding}")
        if report.findings:
            _say(f"{len(report.findings)} findings: this is not what the pipeline wrote down")
            raise typer.Exit(UNPROVEN)
        begin = f" since micro-batch {since}" if since else ""
        if report.unseen:
            _say(f"nothing wrong in what was looked at{begin}, which is not everything")
            raise typer.Exit(UNSEEN)
        _say(f"proven{begin}: nothing skipped, nothing repeated, nothing changed")


@app.command(epilog="Example: magnetar pipeline replay orders.yaml")
def replay(
    file: File,
    since: Annotated[
        str, typer.Option(help="Only what died then or later: milliseconds since 1970, or as 2013-01-01T10:15:00Z.")
    ] = "",
    cause: Annotated[str, typer.Option(help="Only what died of this: an expectation's name, decode or marked.")] = "",
) -> None:
    """Put dead letters back into the topics they came from, each once. Without Spark."""
    with _explained("the same command completes it: nothing is put back twice"):
        pipeline = _loaded(file)
        from magnetar.pipelines.redrive import redrive as put_back
        from magnetar.spark.options.offsets import parse_time

        done = put_back(pipeline, since_ms=parse_time(since) if since else 0, cause=cause)
        _say(
            f"{done.sent + done.known:,} messages are back in their topics"
            + (f", {done.known:,} of them since an earlier call that was broken off" if done.known else "")
        )
        if done.left:
            _say(
                f"{done.left:,} rows have no position of a message: carry __topic, __ledgerId, __entryId, __batchIndex"
            )
        if done.gone:
            _say(f"{done.gone:,} rows were made of messages that their topic does not have any more")
        if done.closed:
            _say(f"{done.closed:,} messages are encrypted, and no decryption.privateKey of their source opens them")


if __name__ == "__main__":
    app(prog_name="magnetar pipeline")
