"""A context from Pulsar's ``client.conf``; a secret in the file stays there, and the file is its reference."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from magnetar.contexts.context import Context, absolute, check_urls
from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.client_conf import read_client_conf
from magnetar.security.credentials.plugin import absolute_params

if TYPE_CHECKING:
    from pathlib import Path


def import_client_conf(path: Path) -> tuple[Context, str]:
    """Return the context of a file, and a sentence about where its login comes from. Raises InvalidValueError."""
    from magnetar.config.properties import properties_text, read_properties

    found = read_client_conf(os.fspath(path))
    urls = Context(service_url=found.broker_url or "", web_url=(found.rest_url or "").rstrip("/"))
    check_urls(urls.service_url, urls.web_url)
    values = {one.key: one.value.strip() for one in read_properties(properties_text(path))}
    copied = replace(
        urls,
        auth_plugin=values.get("authPlugin", ""),
        auth_params=absolute_params(values.get("authParams", ""), absolute),
        trust=absolute(found.trust),
        certificate=absolute(found.key_pair.certificate if found.key_pair else None),
        key=absolute(found.key_pair.key if found.key_pair else None),
        allow_insecure=found.insecure,
    )
    try:
        _ = copied.login()
    except InvalidValueError:
        kept = replace(urls, client_conf=os.path.abspath(path))
        return kept, f"a secret stands in {path}: the context refers to the file, so keep it"
    return copied, f"nothing refers to {path} any more"
