"""The provider of the method ``basic``: a user's name and password (rule 12.3).

Passwords are hashed by one thread. Logins wait for it in a short queue, a part of which is for one address; an address
that failed often waits until its failures are old. The password that a user had right is remembered for a minute,
because REST sends it with every request: only as a keyed digest, which holds as long as the user's line in the file is
the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections import Counter, OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from magnetar.config.settings import Settings
from magnetar.model.errors import AuthenticationError, InvalidValueError
from magnetar.runtime.clock import Clock
from magnetar.runtime.files.pipe import why_unread
from magnetar.security.authentication.password_file import PASSWORD_MAX, matches, parse
from magnetar.security.authentication.provider import AuthenticationProvider, Credentials
from magnetar.security.authentication.watched_file import WatchedFile
from magnetar.security.identity import Identity
from magnetar.security.tokens.claims import checked_role
from magnetar.security.tokens.key_source import BYTES_MAX, path_of, read_key

log = logging.getLogger(__name__)

BASIC: Final = "basic"
WAITING_MAX: Final = 64
"""Logins that may wait for the thread."""
WAITING_OF_ADDRESS_MAX: Final = 16
"""Those of one address, so that a guessing client does not keep all others out."""
FAILURES_MAX: Final = 20
"""Failed logins of an address within the window, after which it is not listened to."""
WINDOW_MS: Final = 10_000
REMEMBERED_MS: Final = 60_000
_REMEMBERED_MAX: Final = 1000
_ADDRESSES_MAX: Final = 1000
_WHAT: Final = "basicAuthConf"
_FAULT: Final = f"{_WHAT}: the users of before go on counting: %s"


class BasicProvider(AuthenticationProvider):
    """Judges names and passwords by an ``.htpasswd`` file."""

    method = BASIC

    def __init__(self, where: str, clock: Clock) -> None:
        """``where``: a file, ``data:`` or base64. Raises InvalidValueError."""
        path = path_of(where)
        self._file = None if path is None else WatchedFile(str(path), BYTES_MAX)
        if self._file is None:
            text = read_key(where, _WHAT).decode("utf-8", "replace")
        else:
            try:
                read = self._file.changed()
                text = "" if read is None else read.text
            except (OSError, ValueError) as error:
                raise InvalidValueError(f"{_WHAT}: cannot read {path}: {why_unread(error)}") from error
        self._users = parse(text, _WHAT)
        self._stand_ins = _StandIns(self._users)
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "password")
        self._waiting: Counter[str] = Counter()
        """Logins that wait for the thread, by their addresses."""
        self._key = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, int] = OrderedDict()
        """When passwords were right (Unix ms), by their digests."""
        self._failures: OrderedDict[str, tuple[int, int]] = OrderedDict()
        """Failed logins of an address, and since when (Unix ms)."""

    @staticmethod
    def of(settings: Settings, clock: Clock) -> BasicProvider:
        """The provider that the settings ask for. Raises InvalidValueError."""
        if not settings.basicAuthConf:
            raise InvalidValueError(
                "authenticationProviders: AuthenticationProviderBasic needs basicAuthConf, an .htpasswd file"
            )
        return BasicProvider(settings.basicAuthConf, clock)

    async def authenticate(self, credentials: Credentials) -> Identity:
        """Return the user. Raises AuthenticationError."""
        name, colon, password = credentials.data.partition(b":")
        if not colon or not password or len(password) > PASSWORD_MAX:
            raise AuthenticationError("not user:password, or too long")
        user = checked_role(name.decode("utf-8", "replace"), "the user's name")
        hashed = self._users.get(user)
        now, host = self._clock.now_ms(), credentials.address.rpartition(":")[0]
        digest = self._digest(user, password, hashed or "")
        if hashed is not None and now - self._remembered.get(digest, -REMEMBERED_MS) < REMEMBERED_MS:
            return _identity(user, hashed)
        self._require_patience(host, now)
        # an unknown user takes as long as a known one
        right = await self._matches(host, password, hashed or self._stand_ins.of(user))
        if hashed is None or not right:
            self._failed(host, now)
            raise AuthenticationError("unknown user or wrong password")
        self._remembered[digest] = now
        self._remembered.move_to_end(digest)
        if len(self._remembered) > _REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return _identity(user, hashed)

    def still_valid(self, identity: Identity) -> bool:
        """Whether the user's line in the file is the same still."""
        hashed = self._users.get(identity.role)
        return hashed is not None and _identity(identity.role, hashed).fingerprint == identity.fingerprint

    async def refresh(self) -> bool:
        """Read the file again if it has changed; a faulty one changes nothing and is reported.

        A user who is missing is gone when the next look finds the same: the file may be half written.
        """
        if self._file is None:
            return False
        try:
            read = await asyncio.to_thread(self._file.changed)
            if read is None:
                return False
        except (OSError, ValueError) as error:
            log.error(_FAULT, error)
            return False
        try:
            users = parse(read.text, f"{_WHAT}: {self._file.path}")
        except InvalidValueError as error:
            if read.settled:
                log.error(_FAULT, error)
            return False
        if not read.settled:
            users = {**self._users, **users}
        if users == self._users:
            return False
        self._users, self._stand_ins = users, _StandIns(users)
        return True

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _matches(self, host: str, password: bytes, hashed: str) -> bool:
        if self._waiting.total() >= WAITING_MAX:
            raise AuthenticationError(f"{WAITING_MAX} logins wait already")
        self._waiting[host] += 1
        try:
            job = partial(matches, password, hashed)
            return await asyncio.get_running_loop().run_in_executor(self._thread, job)
        finally:
            self._waiting[host] -= 1
            if not self._waiting[host]:
                del self._waiting[host]

    def _digest(self, user: str, password: bytes, hashed: str) -> bytes:
        covered = b"\0".join((user.encode(), hashed.encode(), password))
        return hmac.digest(self._key, covered, hashlib.sha256)

    def _require_patience(self, host: str, now: int) -> None:
        count, since = self._failures.get(host, (0, now))
        if not _within(since, now):
            count = 0
        if count >= FAILURES_MAX:
            raise AuthenticationError(f"{count} failed logins within {WINDOW_MS // 1000} s")
        # those that wait may fail, too: otherwise an address gets as many guesses more as there are places
        if (waiting := self._waiting[host]) >= min(WAITING_OF_ADDRESS_MAX, FAILURES_MAX - count):
            raise AuthenticationError(f"{waiting} logins of this address wait already")

    def _failed(self, host: str, now: int) -> None:
        count, since = self._failures.get(host, (0, now))
        if not _within(since, now):
            count, since = 0, now
        self._failures[host] = count + 1, since
        self._failures.move_to_end(host)
        if len(self._failures) > _ADDRESSES_MAX:
            self._failures.popitem(last=False)


def _within(since: int, now: int) -> bool:
    """Whether a window is open still; a clock that was set back has closed it, or it would stay open that long."""
    return 0 <= now - since < WINDOW_MS


class _StandIns:
    """The hash that is worked out for a name that is not in the file: that of one user, always the same one.

    Kinds of hashes differ in the time that they take. If it were the same user's for all names, a name that takes
    another time would be a user's. What depends on the whole file is done once.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._hashes = sorted(users.values()) or [""]
        self._key = hashlib.sha256("\n".join(self._hashes).encode()).digest()

    def of(self, user: str) -> str:
        digest = hmac.digest(self._key, user.encode(), hashlib.sha256)
        return self._hashes[int.from_bytes(digest[:8], "big") % len(self._hashes)]


def _identity(user: str, hashed: str) -> Identity:
    return Identity(user, BASIC, fingerprint=hashlib.sha256(f"{user}:{hashed}".encode()).hexdigest())
