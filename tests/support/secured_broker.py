"""A live broker behind TLS that asks everybody for a login and for a grant, with what clients of it need."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from passlib.hash import apr_md5_crypt  # type: ignore[import-untyped]  # libpass carries no types

from magnetar.client.login import ClientLogin
from magnetar.client.rest import Rest
from magnetar.security.tls.client_tls import ClientTls
from tests.support.certificates import Authority, Issued
from tests.support.live_broker import HOST, LiveBroker, free_port
from tests.support.minted_secrets import kept, password, signing_key, token

_PROVIDERS: Final = ",".join(
    f"org.apache.pulsar.broker.authentication.AuthenticationProvider{name}" for name in ("Token", "Tls", "Basic")
)


class SecuredBroker:
    """TLS only: ``admin`` is the superuser, ``app`` may produce and consume in public/default, others nothing."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.directory = directory
        self.authority = Authority(directory / "certificates")
        own = self.authority.issue("broker")
        self._key = signing_key()
        self.password = password()
        htpasswd = kept(directory, ".htpasswd", f"app:{apr_md5_crypt.hash(self.password)}\n")
        port, web = free_port(), free_port()
        self.url, self.web = f"pulsar+ssl://{HOST}:{port}", f"https://{HOST}:{web}"
        self.broker = LiveBroker(
            directory,
            **{
                "brokerServicePortTls": port,
                "webServicePortTls": web,
                "tlsCertificateFilePath": own.certificate_file,
                "tlsKeyFilePath": own.key_file,
                "tlsTrustCertsFilePath": self.authority.file,
                "authenticationEnabled": "true",
                "authorizationEnabled": "true",
                "authenticationProviders": _PROVIDERS,
                "tokenSecretKey": f"file:{kept(directory, 'secret.key', self._key)}",
                "basicAuthConf": f"file:{htpasswd}",
                "superUserRoles": "admin",
                "authenticationRefreshCheckSeconds": 1,
                "brokerDeduplicationEnabled": "true",
                **settings,
            },
        )

    def token(self, role: str, seconds: float = 3600.0) -> str:
        """Mint a token."""
        return token(role, self._key, seconds)

    def token_file(self, role: str, seconds: float = 3600.0, name: str | None = None) -> Path:
        """A file with a token, written anew as a whole."""
        path = kept(self.directory, f"{name or role}.new", self.token(role, seconds))
        return path.rename(path.with_name(name or role))

    @contextmanager
    def rotating(self, role: str, life: float) -> Iterator[Path]:
        """A file whose token is replaced four times in each life; the last one is good for long."""
        ended = threading.Event()
        path = self.token_file(role, life)

        def rotate() -> None:
            while not ended.wait(life / 4):
                self.token_file(role, life)

        thread = threading.Thread(target=rotate)
        thread.start()
        try:
            yield path
        finally:
            ended.set()
            thread.join()
            self.token_file(role)

    def certificate(self, role: str) -> Issued:
        return self.authority.issue(role)

    def login(self, role: str) -> ClientLogin:
        return ClientLogin(token=f"file:{self.token_file(role)}", trust=self.authority.file)

    def admin(self) -> Rest:
        """REST as the superuser."""
        return self.login("admin").rest(self.web)

    def keep_metrics(self) -> None:
        """Leave the metrics page beside the broker's log."""
        context = ClientTls(trust_file=self.authority.file).context()
        with urllib.request.urlopen(f"{self.web}/metrics", timeout=20, context=context) as answer:
            (self.directory / "metrics").write_bytes(answer.read())

    def options(self, role: str) -> dict[str, str]:
        """Options of format("pulsar") as other connectors have them."""
        return {
            "service.url": self.url,
            "pulsar.client.authPluginClassName": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "pulsar.client.authParams": f"file://{self.token_file(role)}",
            "pulsar.client.tlsTrustCertsFilePath": self.authority.file,
        }


@contextmanager
def secured_broker(directory: Path, **settings: object) -> Iterator[SecuredBroker]:
    """Started, with the grants of ``app``, and ended at the end; its metrics page is left beside its log."""
    secured = SecuredBroker(directory, **settings)
    secured.broker.start()
    try:
        admin = secured.admin()
        admin.ask("PUT", "/admin/v2/tenants/public", {"allowedClusters": ["standalone"]})
        admin.ask("PUT", "/admin/v2/namespaces/public/default")
        admin.ask("POST", "/admin/v2/namespaces/public/default/permissions/app", ["produce", "consume"])
        yield secured
        secured.keep_metrics()
    finally:
        secured.broker.end()
