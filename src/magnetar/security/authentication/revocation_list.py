"""Credentials that were revoked: a file that is read again when it changes.

One entry on a line; empty lines and those that begin with ``#`` mean nothing:

    jti 4711            the token with this claim
    sub alice           every token of this subject; with other methods, for tokens without a subject, and of whom a
                        proxy speaks for, the role, of several each
    sha256 9f86d0...    the token with this fingerprint (``magnetar tokens revoke``), or the client certificate

A list that cannot be read revokes what it did before; a line that is no entry is reported, and until it is repaired no
older entry is dropped, so that a slip of the pen lets none in again. New entries count at once, and what is missing
is dropped at the next look that finds the same: the file may be half written.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, field
from typing import Final

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.files.pipe import why_unread
from magnetar.security.authentication.watched_file import WatchedFile
from magnetar.security.identity import Identity

log = logging.getLogger(__name__)

BYTES_MAX: Final = 64 << 20
CHECK_SECONDS: Final = 5.0
"""Seconds between two looks at the file."""
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class RevokedCredentials:
    """The entries of one reading."""

    ids: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()
    faults: tuple[str, ...] = field(default=(), compare=False)
    """What is wrong with the lines that are no entries."""

    def include(self, identity: Identity) -> bool:
        """Whether the credentials of ``identity`` are among them."""
        roles = (identity.role, *identity.other_roles) if identity.subject is None else (identity.subject,)
        return (
            not self.subjects.isdisjoint(roles)
            or identity.token_id in self.ids
            or identity.fingerprint in self.fingerprints
            or not self.fingerprints.isdisjoint(identity.other_fingerprints)
        )

    def and_those_of(self, other: RevokedCredentials) -> RevokedCredentials:
        """The entries of both."""
        return RevokedCredentials(
            self.ids | other.ids, self.subjects | other.subjects, self.fingerprints | other.fingerprints, self.faults
        )

    def __len__(self) -> int:
        return len(self.ids) + len(self.subjects) + len(self.fingerprints)


def parse(text: str) -> RevokedCredentials:
    """The entries of a list; lines that are none are its faults."""
    found: dict[str, set[str]] = {"jti": set(), "sub": set(), "sha256": set()}
    faults = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        kind, _, value = line.partition(" ")
        value = value.strip()
        if kind not in found or not value or (kind == "sha256" and not _SHA256.fullmatch(value)):
            faults.append(f"line {number} is no entry; expected jti ID, sub ROLE or sha256 and 64 hexadecimal digits")
            continue
        found[kind].add(value.lower() if kind == "sha256" else value)
    ids, subjects, fingerprints = map(frozenset, found.values())
    return RevokedCredentials(ids, subjects, fingerprints, tuple(faults))


class RevocationList:
    """The list of a broker; :meth:`refresh` is called from one task."""

    def __init__(self, path: str) -> None:
        """Read it. Raises InvalidValueError: at the start a faulty list is a fault of the configuration."""
        self._file = WatchedFile(path, BYTES_MAX)
        self._trouble = ""
        try:
            found = self._changed()
        except (OSError, ValueError) as error:
            raise InvalidValueError(f"tokenRevocationListFile: cannot read {path}: {why_unread(error)}") from error
        if found is not None and found[0].faults:
            raise InvalidValueError(f"tokenRevocationListFile: {path}: {found[0].faults[0]}")
        self._revoked = RevokedCredentials() if found is None else found[0]

    def __contains__(self, identity: Identity) -> bool:
        return self._revoked.include(identity)

    def has_subject(self, role: str) -> bool:
        """Whether the principal of this name is revoked, without credentials that could be looked at."""
        return role in self._revoked.subjects

    def __len__(self) -> int:
        return len(self._revoked)

    async def refresh(self) -> bool:
        """Read the file again if it has changed; returns whether the entries have. Never raises."""
        try:
            read = await asyncio.to_thread(self._changed)
        except (OSError, ValueError) as error:
            self._complain(f"cannot be read, its {len(self)} entries go on counting: {error}")
            return False
        if read is None:
            return False
        found, settled = read
        if found.faults and settled:
            more = f" ({len(found.faults)} such lines)" if len(found.faults) > 1 else ""
            self._complain(f"{found.faults[0]}{more}; older entries go on counting until it is repaired")
        elif not found.faults:
            self._trouble = ""
        if found.faults or not settled:
            found = found.and_those_of(self._revoked)
        if found == self._revoked:
            return False
        log.info("%s: %d entries, before %d", self._file.path, len(found), len(self))
        self._revoked = found
        return True

    def _changed(self) -> tuple[RevokedCredentials, bool] | None:
        """The entries of a changed file, and whether they are all of them."""
        read = self._file.changed()
        return None if read is None else (parse(read.text), read.settled)

    def _complain(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            log.error("tokenRevocationListFile: %s: %s", self._file.path, trouble)
