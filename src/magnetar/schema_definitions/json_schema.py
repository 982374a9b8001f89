"""The definition of a JSON schema as old clients sent it (protocol before 13): a JSON-schema document (rule 10.14).

Since then JSON schemas are described by Avro, too. The old form carries an ``id`` that names the class; two of them
belong together if it is the same.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

_TYPES: Final = frozenset({"any", "array", "boolean", "integer", "null", "number", "object", "string"})


class OldJsonSchema(NamedTuple):
    type: str
    id: str | None


def parse_old(data: bytes) -> OldJsonSchema | None:
    """Parse a definition of the old form; None if it is nothing of that kind."""
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    kind = document.get("type") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in _TYPES:
        return None
    name = document.get("id")
    return OldJsonSchema(kind, name if isinstance(name, str) else None)
