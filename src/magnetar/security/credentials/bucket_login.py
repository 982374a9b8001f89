"""Whether something says how to log in at a bucket, before the library that reads it is asked.

Without any credentials that library asks the metadata address of a cloud (169.254.169.254) for those of the machine,
which are somebody else's where the bucket is; and outside of a cloud whoever has that address gets to know. Who wants
them says so, with the library's own names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from magnetar.model.errors import InvalidValueError


class _Cloud(NamedTuple):
    prefixes: tuple[str, ...]
    """What begins the names of its settings in the environment, and may begin those of options; longest first."""
    credentials: frozenset[str]
    """Settings that say how to log in, or to ask the machine's metadata, without their prefixes."""
    others: tuple[str, ...]
    """Variables of the environment that say so, too, under names of their own."""
    advice: str


_S3: Final = _Cloud(
    ("aws_",),
    frozenset(
        (
            *("access_key_id", "web_identity_token_file", "metadata_endpoint", "skip_signature"),
            *("container_credentials_relative_uri", "container_credentials_full_uri"),
        )
    ),
    (),
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY name a login, AWS_SKIP_SIGNATURE=true is for what anybody may read, "
    "AWS_METADATA_ENDPOINT=http://169.254.169.254 asks for the role of this machine",
)
_GOOGLE: Final = _Cloud(
    ("google_",),
    frozenset(
        (
            *("service_account", "service_account_path", "service_account_key"),
            *("application_credentials", "bearer_token", "skip_signature"),
        )
    ),
    ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"),
    "GOOGLE_SERVICE_ACCOUNT names a file with a login, GOOGLE_SKIP_SIGNATURE=true is for what anybody may read, "
    "GCE_METADATA_HOST=metadata.google.internal asks for the account of this machine",
)
_AZURE: Final = _Cloud(
    ("azure_storage_", "azure_"),
    frozenset(
        (
            *("account_key", "access_key", "master_key", "client_secret", "sas_key", "sas_token", "token"),
            *("bearer_token", "federated_token_file", "use_azure_cli", "use_emulator", "skip_signature"),
            *("msi_endpoint", "identity_endpoint", "credential_type", "fabric_session_token"),
        )
    ),
    ("IDENTITY_ENDPOINT",),
    "AZURE_STORAGE_ACCOUNT_KEY names a login, AZURE_SKIP_SIGNATURE=true is for what anybody may read, "
    "AZURE_CREDENTIAL_TYPE=managed_identity asks for the identity of this machine",
)
_SCHEMES: Final = {
    **dict.fromkeys(("s3", "s3a"), _S3),
    "gs": _GOOGLE,
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "adl"), _AZURE),
}
_HOSTS: Final = {
    "amazonaws.com": _S3,
    "r2.cloudflarestorage.com": _S3,
    "core.windows.net": _AZURE,
    "fabric.microsoft.com": _AZURE,
}
_PREFIXES: Final = (*_S3.prefixes, *_GOOGLE.prefixes, *_AZURE.prefixes)
_OFF: Final = ("", "0", "false", "off", "no")
_OF_GCLOUD: Final = ".config/gcloud/application_default_credentials.json"


def require_bucket_login(
    url: str, options: Mapping[str, str], environment: Mapping[str, str] = os.environ, home: Path | None = None
) -> None:
    """Raise InvalidValueError if the address is in a cloud and nothing says how to log in there.

    ``options`` are settings by their names with or without prefix, ``environment`` those of the process.
    """
    cloud = _cloud(url)
    if cloud is None or _named(cloud, options, environment):
        return
    if cloud is _GOOGLE and ((home or Path("~").expanduser()) / _OF_GCLOUD).is_file():
        return
    raise InvalidValueError(
        f"{url}: nothing says how to log in there, and the credentials of this machine are not asked for by "
        f"themselves: {cloud.advice}; options of a table have the same names, such as storage.{_example(cloud)}"
    )


def leave_machine_out(url: str, options: Mapping[str, str], environment: MutableMapping[str, str] = os.environ) -> None:
    """Have Amazon's own libraries, which Delta and Iceberg bring, leave the metadata address alone as well.

    They ask it for a region even where there is a login, and know one switch, a variable of the process. One that is
    set already stays.
    """
    settings = set(map(without_cloud, options))
    if _cloud(url) is _S3 and "metadata_endpoint" not in settings and not environment.get("AWS_METADATA_ENDPOINT"):
        environment.setdefault("AWS_EC2_METADATA_DISABLED", "true")


def _cloud(url: str) -> _Cloud | None:
    parts = urlsplit(url)
    if parts.scheme != "https":
        return _SCHEMES.get(parts.scheme)
    host = f".{parts.hostname or ''}"
    return next((cloud for end, cloud in _HOSTS.items() if host.endswith(f".{end}")), None)


def _named(cloud: _Cloud, options: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    settings = {name.lower(): value for name, value in options.items()}
    settings |= {name.lower(): value for name, value in environment.items() if name.lower().startswith(cloud.prefixes)}
    if any(environment.get(name) for name in cloud.others):
        return True
    return any(
        _without(name, cloud.prefixes) in cloud.credentials and value.strip().lower() not in _OFF
        for name, value in settings.items()
    )


def without_cloud(name: str) -> str:
    """Return the name of a table's option, of any case, as those of all clouds have it: without its prefix."""
    return _without(name.lower(), _PREFIXES)


def _without(name: str, prefixes: tuple[str, ...]) -> str:
    for prefix in prefixes:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _example(cloud: _Cloud) -> str:
    return cloud.advice.partition(" ")[0].lower()
