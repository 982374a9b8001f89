"""A provider whose library fails on what a client sent: the client is refused, and cannot fill the disk with it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from magnetar.model.errors import AuthenticationError
from magnetar.runtime.clock import SystemClock
from magnetar.security.authentication.provider import AuthenticationProvider, Credentials
from magnetar.security.authentication.service import AuthenticationService
from magnetar.security.identity import Identity


class _Failing(AuthenticationProvider):
    method = "failing"

    async def authenticate(self, credentials: Credentials) -> Identity:
        raise ZeroDivisionError


def test_the_log_has_a_few_of_its_failures(caplog: pytest.LogCaptureFixture) -> None:
    service = AuthenticationService([_Failing()], SystemClock())

    async def main() -> None:
        for _ in range(100):
            with pytest.raises(AuthenticationError):
                await service.authenticate("failing", Credentials())

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert 0 < caplog.text.count("a provider failed") < 10
