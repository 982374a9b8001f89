"""The options that say who reads and writes, and over what: Pulsar's names, as other connectors have them, and our own.

Spark shows options in plans, in its UI and in event logs, so a secret is given by reference.
"""

from __future__ import annotations

from typing import Final

from magnetar.client.login import ClientLogin
from magnetar.spark.options.option_table import OptionTable

_TEXTS: Final = {
    "token": "token",
    "auth_plugin": "pulsar.client.authPluginClassName",
    "auth_params": "pulsar.client.authParams",
    "client_conf": "clientConf",
    "trust": "pulsar.client.tlsTrustCertsFilePath",
    "certificate": "pulsar.client.tlsCertificateFilePath",
    "key": "pulsar.client.tlsKeyFilePath",
}
"""The fields of `ClientLogin` that are texts, and the options that give them."""
_INSECURE: Final = "pulsar.client.tlsAllowInsecureConnection"
_HOST_NAME: Final = "pulsar.client.tlsHostnameVerificationEnable"
LOGIN_TITLES: Final = (*_TEXTS.values(), _INSECURE, _HOST_NAME)


def login_of(table: OptionTable) -> ClientLogin:
    """Return what the options say. Raises InvalidValueError, also for a secret that is no reference."""
    return ClientLogin(
        **{name: table.get(title) for name, title in _TEXTS.items()},
        allow_insecure=None if table.get(_INSECURE) is None else table.flag(_INSECURE, False),
        verify_host_name=table.flag(_HOST_NAME, True),
        inline=False,
    )


def options_of(login: ClientLogin) -> dict[str, str]:
    """Return the options that say the same."""
    found = {title: value for name, title in _TEXTS.items() if (value := getattr(login, name)) is not None}
    if login.allow_insecure is not None:
        found[_INSECURE] = str(login.allow_insecure).lower()
    if not login.verify_host_name:
        found[_HOST_NAME] = "false"
    return found
