"""Which tests of the native client run against Apache Pulsar, too (`make wire`), and which cannot.

``python -m tests.wire.on_apache`` runs them there; further arguments are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FILES: Final = (
    "test_native_client.py", "test_blocking_client.py", "test_blocking_processes.py", "test_client_encryption.py",
    "test_client_schemas.py", "test_client_tables.py", "test_interceptors.py", "test_letters.py",
    "test_native_interop.py", "test_service_urls.py", "test_table_view.py", "test_client.py",
)  # fmt: skip
SKIPPED: Final[dict[str, str]] = {
    "test_native_client.py::test_tls_and_tokens_that_expire": "starts its own broker, with logins",
}
"""Parts of the names of tests, and why these cannot be asked of Apache Pulsar."""


def main() -> int:
    files = [str(Path(__file__).parent / name) for name in FILES]
    command = [sys.executable, "-m", "pytest", "-rs", "--timeout=600", *files, *sys.argv[1:]]
    environment = {**os.environ, "MAGNETAR_WIRE_BROKER": "apache"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
