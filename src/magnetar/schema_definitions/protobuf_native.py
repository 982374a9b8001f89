"""Schemas of protobuf messages as they are (rule 10.14): JSON with the descriptors and the root message's name.

::

    {"fileDescriptorSet": <base64 of google.protobuf.FileDescriptorSet>,
     "rootMessageTypeName": "package.Message", "rootFileDescriptorName": "file.proto"}

protobuf is compatible by its own rules, which are the clients' business; what the registry holds on to is that the
root message stays the same.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from magnetar.model.errors import InvalidSchemaDataError

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

_NAMES = ("fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName")


def root_message(data: bytes) -> str:
    """Return the full name of the root message. Raises InvalidSchemaDataError unless the descriptors define it."""
    full_name: str = descriptor(data).full_name
    return full_name


def descriptor(data: bytes) -> Any:
    """Return protobuf's Descriptor of the root message. Raises InvalidSchemaDataError."""
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise _invalid(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _invalid(f"a JSON object with {', '.join(_NAMES)} is expected")
    texts = [document.get(name) for name in _NAMES]
    for name, value in zip(_NAMES, texts, strict=True):
        if not isinstance(value, str):
            raise _invalid(f"no text {name}")
    encoded, root, file_name = map(str, texts)
    files = _files(encoded)
    names = [file.name for file in files.file]
    if file_name not in names:
        raise _invalid(f"rootFileDescriptorName {file_name[:80]!r} is not among the files of fileDescriptorSet")
    return _message(files, root)


def definition(files: bytes, root: str) -> bytes:
    """Return schema data of a serialised FileDescriptorSet and a message's full name. Raises InvalidSchemaDataError."""
    encoded = base64.b64encode(files).decode()
    found = _message(_files(encoded), root)
    values = (encoded, found.full_name, found.file.name)
    return json.dumps(dict(zip(_NAMES, values, strict=True)), separators=(",", ":")).encode()


def _message(files: FileDescriptorSet, root: str) -> Any:
    pool = DescriptorPool()
    try:
        for file in _in_order(files):
            pool.AddSerializedFile(file)
        return pool.FindMessageTypeByName(root)
    except KeyError:
        raise _invalid(f"rootMessageTypeName {root[:80]!r} is not defined in fileDescriptorSet") from None
    except TypeError as error:
        raise _invalid(f"fileDescriptorSet: {error}") from None


def _files(encoded: str) -> FileDescriptorSet:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet  # half a megabyte that few brokers need

    try:
        return FileDescriptorSet.FromString(base64.b64decode(encoded, validate=True))
    except binascii.Error as error:
        raise _invalid(f"fileDescriptorSet is not base64: {error}") from None
    except DecodeError as error:
        raise _invalid(f"fileDescriptorSet is not a google.protobuf.FileDescriptorSet: {error}") from None


def _in_order(files: FileDescriptorSet) -> list[bytes]:
    """Every file after those it imports, as a pool wants them; a missing or circular import is the pool's to refuse."""
    by_name = {file.name: file for file in files.file}
    ordered: dict[str, bytes] = {}
    started: set[str] = set()
    waiting = [(name, False) for name in reversed(list(by_name))]
    while waiting:
        name, ready = waiting.pop()
        file = by_name.get(name)
        if file is None or name in ordered:
            continue
        if ready or name in started:
            ordered[name] = file.SerializeToString()
            continue
        started.add(name)
        waiting.append((name, True))
        waiting.extend((needed, False) for needed in file.dependency if needed not in started)
    return list(ordered.values())


def _invalid(reason: str) -> InvalidSchemaDataError:
    return InvalidSchemaDataError(f"deserialize ProtobufNative Schema failed caused by {reason}")
