"""Pipelines that a file declares: checked, run, watched, verified (docs/pipelines.md, docs/decisions/012).

In reading order:

* ``declaration``  from a YAML file to a `Pipeline`, or to all of its mistakes; without Spark
* ``state``        what a pipeline writes besides its output: checkpoint, manifests, dead letters; without Spark
* ``execution``    the pipeline as a streaming query, micro-batch by micro-batch
* ``evidence``     ``verify``: was anything skipped, repeated or changed
* ``redrive``      ``replay``: dead letters back to the topics they came from, each once; without Spark
* ``command``      ``magnetar pipeline``
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from magnetar.pipelines.declaration.document import InvalidPipelineError
    from magnetar.pipelines.declaration.model import Pipeline, Trigger
    from magnetar.pipelines.declaration.parser import load, parse
    from magnetar.pipelines.evidence.verify import PipelineReport, verify
    from magnetar.pipelines.execution.progress import ProgressView
    from magnetar.pipelines.execution.run import PipelineFailedError, RunOutcome, Stop, run, session
    from magnetar.pipelines.state.status import status

__all__ = [
    "InvalidPipelineError",
    "Pipeline",
    "PipelineFailedError",
    "PipelineReport",
    "ProgressView",
    "RunOutcome",
    "Stop",
    "Trigger",
    "load",
    "parse",
    "run",
    "session",
    "status",
    "verify",
]
_EXPORTS: Final = {
    "InvalidPipelineError": "magnetar.pipelines.declaration.document",
    "Pipeline": "magnetar.pipelines.declaration.model",
    "PipelineFailedError": "magnetar.pipelines.execution.run",
    "PipelineReport": "magnetar.pipelines.evidence.verify",
    "ProgressView": "magnetar.pipelines.execution.progress",
    "RunOutcome": "magnetar.pipelines.execution.run",
    "Stop": "magnetar.pipelines.execution.run",
    "Trigger": "magnetar.pipelines.declaration.model",
    "load": "magnetar.pipelines.declaration.parser",
    "parse": "magnetar.pipelines.declaration.parser",
    "run": "magnetar.pipelines.execution.run",
    "session": "magnetar.pipelines.execution.run",
    "status": "magnetar.pipelines.state.status",
    "verify": "magnetar.pipelines.evidence.verify",
}
"""Where programs' names come from; they are imported when they are used, so that a command's help needs no Spark."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is used."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
