"""The keys of the allowed issuers: fetched when they are needed first, remembered, and fetched again.

    never fetched, or older than ``expire``      a login waits for the fetch, all logins for the same one
    older than ``refresh``                       fetched in the background, logins go on with the old keys
    a key id that is not there                   fetched again if the last fetch is ``miss`` ago; then refused

An issuer that fails is left alone for a few seconds, so that logins cannot be made into requests.
"""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from magnetar.model.errors import AuthenticationError, MagnetarError
from magnetar.runtime.clock import Clock
from magnetar.runtime.tasks import TaskGroup
from magnetar.security.credentials.exchange import Deadline
from magnetar.security.credentials.issuer import WELL_KNOWN, ask
from magnetar.security.openid.key_sets import KeySet, parse
from magnetar.security.tokens.keys import VerificationKey

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 5
_THREADS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRules:
    """How issuers are asked, and for how long answers are remembered; seconds."""

    trust_file: str = ""
    require_https: bool = True
    patience: float = 10.0
    """For both requests that an issuer is asked together."""
    refresh: int = 18 * 3600
    expire: int = 24 * 3600
    miss: int = 300


@dataclass(slots=True)
class _Issuer:
    url: str
    keys: KeySet | None = None
    fetched_at: float = 0.0
    failed_at: float | None = None
    fetching: asyncio.Task[None] | None = field(default=None, repr=False)


class IssuerKeys:
    """The keys of all allowed issuers; lives on the event loop, requests are made in threads."""

    def __init__(self, issuers: frozenset[str], rules: FetchRules, clock: Clock) -> None:
        self._issuers = {url: _Issuer(url) for url in issuers}
        self._rules = rules
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, "openid")
        self._tasks = TaskGroup("openid")

    async def key(self, issuer_url: object, key_id: object) -> VerificationKey:
        """The key of an allowed issuer. Raises AuthenticationError."""
        issuer = self._issuers.get(issuer_url) if isinstance(issuer_url, str) else None
        if issuer is None:
            raise AuthenticationError("the token's issuer is not among openIDAllowedTokenIssuers")
        if not isinstance(key_id, str):
            raise AuthenticationError("the token names no key id")
        now = self._now()
        age = now - issuer.fetched_at
        if issuer.keys is None or age >= self._rules.expire:
            await self._fetched(issuer)
        elif age >= self._rules.refresh:
            self._begin(issuer)
        keys = issuer.keys or {}
        if key_id not in keys and now - issuer.fetched_at >= self._rules.miss:
            await self._fetched(issuer)
            keys = issuer.keys or {}
        if key_id not in keys:
            raise AuthenticationError(f"{issuer.url} has no key of the token's key id")
        return keys[key_id]

    async def close(self) -> None:
        """End the requests."""
        await self._tasks.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _now(self) -> float:
        return self._clock.now_ms() / 1000

    async def _fetched(self, issuer: _Issuer) -> None:
        """Return when a fetch has ended. Raises AuthenticationError if it came to nothing."""
        task = self._begin(issuer)
        if task is not None:
            # one login that gives up ends the fetch for no other
            await asyncio.shield(task)
        if issuer.failed_at is not None:
            raise AuthenticationError(f"the keys of {issuer.url} cannot be had, see the log")

    def _begin(self, issuer: _Issuer) -> asyncio.Task[None] | None:
        """The fetch that is under way, or a new one; ``None`` if the last one failed a moment ago."""
        if issuer.fetching is None:
            # a clock that was set back would have it left alone for that much longer
            if issuer.failed_at is not None and 0 <= self._now() - issuer.failed_at < RETRY_SECONDS:
                return None
            issuer.fetching = self._tasks.start(self._fetch(issuer), "fetch")
        return issuer.fetching

    async def _fetch(self, issuer: _Issuer) -> None:
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, self._request, issuer.url)
        except (MagnetarError, OSError, ValueError) as error:
            log.warning("%s: its keys cannot be had: %s", issuer.url, error)
            issuer.failed_at = self._now()
            if self._now() - issuer.fetched_at >= self._rules.expire:
                issuer.keys = None
        else:
            log.info("%s: %d keys", issuer.url, len(found))
            issuer.keys, issuer.fetched_at, issuer.failed_at = found, self._now(), None
        finally:
            issuer.fetching = None

    def _request(self, url: str) -> KeySet:
        """Ask for the issuer's configuration, then for its keys; blocks. Raises MagnetarError, OSError, ValueError."""
        deadline = Deadline(self._rules.patience)
        configuration = self._document(url.rstrip("/") + WELL_KNOWN, deadline)
        if configuration.get("issuer") != url:
            raise ValueError(f"its configuration is of another issuer: {str(configuration.get('issuer'))[:200]!r}")
        keys_url = configuration.get("jwks_uri")
        if not isinstance(keys_url, str) or not keys_url.lower().startswith(self._schemes):
            raise ValueError(f"its jwks_uri is no {' or '.join(self._schemes)} address")
        return parse(self._document(keys_url, deadline))

    @property
    def _schemes(self) -> tuple[str, ...]:
        return ("https://",) if self._rules.require_https else ("https://", "http://")

    def _document(self, url: str, deadline: Deadline) -> dict[str, object]:
        return ask(urllib.request.Request(url), url, self._rules.trust_file or None, deadline)
