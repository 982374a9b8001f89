"""What all bodies and answers of the REST interface share: names in camel case outside, members that are new elsewhere.

A model takes members that it does not know, because other versions of Apache Pulsar have others; they are in
``model_extra``. Members that a version may leave out have a default; ``None`` says that it may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

_SPELLED: Final[Mapping[str, str]] = {
    "retention_size_in_mb": "retentionSizeInMB",
    "schema_text": "schema",
    "copy_place": "copy",
    "range_from": "from",
    "range_to": "to",
    "file_system_uri": "fileSystemURI",
    "offloaded_context_uuid": "offloadedContextUuid",
}
"""Members whose name outside is another than the camel case of their name here."""


def outside_name(name: str) -> str:
    """The name of a member in JSON."""
    return _SPELLED.get(name) or to_camel(name)


class ApiModel(BaseModel):
    """A JSON object of the REST interface."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=outside_name,
        populate_by_name=True,
        extra="allow",
        use_attribute_docstrings=True,
        defer_build=True,
        protected_namespaces=(),
    )

    def as_json(self) -> dict[str, Any]:
        """Return the object as it is sent: under its outside names, without members that are None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
