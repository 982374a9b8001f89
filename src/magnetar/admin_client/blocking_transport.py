"""Requests, one after the other, in the thread that makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from magnetar.admin_client.errors import no_answer, refusal
from magnetar.admin_client.request import REDIRECTS_MAX, redirected, request_of, value_of
from magnetar.client.rest import Rest
from magnetar.model.errors import NotAvailableError


class BlockingTransport:
    """Sends the requests of :class:`magnetar.admin_client.client.Admin`; any thread may use it."""

    def __init__(self, rest: Rest, redirects_to: Sequence[str]) -> None:
        self._rest = rest
        self._trusted = tuple(redirects_to)

    def ask(self, name: str, place: Mapping[str, object], query: Mapping[str, object], body: object = None) -> Any:
        """Make a request and return what the answer says. Raises AdminError, CredentialsError."""
        request = request_of(name, place, query, body)
        rest = self._rest
        for _ in range(REDIRECTS_MAX + 1):
            try:
                answer = rest.send(request.method, request.path, request.body)
            except NotAvailableError as error:
                raise no_answer(error, request.method, request.path) from error
            owner = redirected(rest.url, request, answer, rest.credentials, self._trusted)
            if owner is None:
                return value_of(request, answer, rest.credentials)
            rest = replace(rest, url=owner)
        raise refusal(307, "the brokers name each other", request.method, request.path, None)
