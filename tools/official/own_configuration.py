"""magnetar with the suite's own configuration file, certificates, passwords and tokens, as its start script does it.

The file is used as it is. Its one absolute path, that of the secret key, lies in the container of the script; the
environment says where the key is here, as it may for Pulsar's containers.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Final

from tools.official import suite
from tools.servers import magnetar
from tools.servers.process import Server

CONFIGURATION: Final = "test-conf/standalone-ssl.conf"
PORTS: Final = suite.Addresses(6650, 8080, 6651, 8443)


def start(tests: Path, directory: Path, command: str) -> tuple[Server, str]:
    """Start it in the suite's folder; returns the server and a superuser's token. Needs the ports of the file."""
    secret = directory / "tokens" / "secret.key"
    secret.parent.mkdir(parents=True)
    _tokens(command, "create-secret-key", "--output", str(secret))
    key = ("--secret-key", f"file://{secret}")
    (tests / suite.TOKEN_FILE).write_text(_tokens(command, "create", "--subject", "token-principal", *key))
    server = magnetar.start(
        directory,
        command=command,
        cwd=tests,
        configuration=CONFIGURATION,
        environment={
            "PULSAR_EXTRA_OPTS": "-Dpulsar.auth.basic.conf=test-conf/.htpasswd",
            "PULSAR_PREFIX_tokenSecretKey": f"file://{secret}",
        },
    )
    return server, _tokens(command, "create", "--subject", "superUser", *key)


def _tokens(command: str, *arguments: str) -> str:
    program = shlex.split(command)[:-1]
    done = subprocess.run([*program, "tokens", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise suite.SuiteError(f"magnetar tokens {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
