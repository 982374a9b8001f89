"""The loop of a peer: a job a line on stdin, its answer a line on stdout, errors among the answers."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable

from tests.interop.encodings import Fields


def answer_lines(do: Callable[[Fields], Fields]) -> None:
    """Answer jobs until stdin ends. What the client's own code prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = do(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
