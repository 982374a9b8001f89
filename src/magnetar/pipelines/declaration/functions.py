"""Functions of Python steps, named ``module:function``: imported and checked.

A function takes one DataFrame for each input, in order, and the parameters of ``with`` by name, and returns a
DataFrame. It describes work and does none: it is called with streaming DataFrames for the analysis, and again for
each micro-batch. Modules are looked for beside the pipeline's file first.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.pipelines.declaration.document import nearest


def problem_of_name(text: str) -> str | None:
    """Return what is wrong with the form of a name; None if nothing is."""
    module, colon, name = text.partition(":")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        return f"{text!r} is no function; write module:function, for instance cleaning:without_cancelled"
    return None


def make_findable(directory: Path) -> None:
    """Make modules in ``directory`` importable here and in the processes that Spark starts from here."""
    path = str(directory.resolve())
    if path not in sys.path:
        sys.path.insert(0, path)
    others = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    if path not in others:
        os.environ["PYTHONPATH"] = os.pathsep.join([path, *others])


def called(text: str, inputs: Sequence[Any], parameters: Mapping[str, object]) -> Any:
    """Call a function. InvalidValueError names it, and the line of its file, if it raises; errors of ours and of Spark
    explain themselves."""
    function = find(text)
    try:
        return function(*inputs, **parameters)
    except Exception as error:
        if isinstance(error, MagnetarError) or type(error).__module__.startswith("pyspark."):
            raise
        # The last line of the user's own code; what it calls is further down.
        own = [one for one in traceback.extract_tb(error.__traceback__)[1:] if "site-packages" not in one.filename]
        place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
        said = str(error).strip().partition("\n")[0]
        raise InvalidValueError(f"{text} has raised {type(error).__name__}: {said}{place}") from error


def find(text: str) -> Callable[..., Any]:
    """Import and return the function. InvalidValueError says which part is missing."""
    module, _, name = text.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        where = "beside the file or in the Python path" if error.name == module.split(".")[0] else f"in {module}"
        raise InvalidValueError(
            f"there is no module {error.name} {where}; set PYTHONPATH, or correct the name"
        ) from None
    except Exception as error:
        raise InvalidValueError(f"module {module} fails when it is imported: {type(error).__name__}: {error}") from None
    function = getattr(found, name, None)
    if not callable(function):
        names = [one for one, value in vars(found).items() if inspect.isfunction(value) and not one.startswith("_")]
        raise InvalidValueError(f"module {module} has no function {name}; {nearest(name, names)}")
    return function  # type: ignore[no-any-return]  # callable() does not say of what


def problem_of_call(function: Callable[..., Any], inputs: int, parameters: Mapping[str, object]) -> str | None:
    """Return why a function cannot be called with these arguments; None if it can."""
    try:
        inspect.signature(function).bind(*[None] * inputs, **parameters)
    except TypeError as error:
        given = f"{inputs} DataFrame{'s' if inputs != 1 else ''}"
        names = f" and {', '.join(parameters)}" if parameters else ""
        return f"it cannot be called with {given}{names}: {error}"
    return None
