"""One row of the table of operations: a request that the REST interface answers, with all that can be said of it.

The OpenAPI description, the page /docs and the typed admin client are made from such rows, and tests hold them against
the routes of the application and against the answers of running brokers. A row without ``answer`` answers without a
body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class PlainText:
    """In the place of a type: a bare text, which is labelled as JSON but is none (as Apache Pulsar does it)."""


class RawMessage:
    """In the place of a type: the bytes of a message, with headers that tell the rest."""


class MetricsText:
    """In the place of a type: series in the text format of Prometheus."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a path or a query."""

    name: str
    type: Any
    description: str
    default: Any = None
    """What a broker takes if it is not given; of a parameter that is not required."""
    required: bool = False
    example: Any = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; its name is ``group.verb``, where the group is one of the admin client's."""

    name: str
    method: str
    path: str
    """With parameters in braces, each described in :mod:`magnetar.admin_api.path_parameters`."""
    summary: str
    """What it does, in one line without a full stop."""
    query: tuple[Parameter, ...] = ()
    body: Any = None
    """The type of the body; None for none."""
    body_required: bool = True
    answer: Any = None
    """The type of the answer; ``PlainText``, ``RawMessage`` and ``MetricsText`` are those that are no JSON."""
    success: int = 0
    """The status of success; 0: 200 with an answer, 204 without."""
    unset: int = 0
    """The status of an answer without a body, for a value that is not set."""
    errors: Mapping[int, str] = field(default_factory=dict)
    """Reasons by status, beside those that follow from the parameters."""
    description: str = ""
    example: Any = None
    """A body that works."""
    own: bool = False
    """Whether Apache Pulsar does not have it."""

    @property
    def group(self) -> str:
        """The first part of the name."""
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        """The rest of the name."""
        return self.name.partition(".")[2]

    @property
    def status(self) -> int:
        """The status of success."""
        return self.success or (204 if self.answer is None else 200)

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the path, in their order."""
        return tuple(_PARAMETER.findall(self.path))
