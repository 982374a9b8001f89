"""Arguments of a pytest that has the product's plugin and no others."""

from __future__ import annotations

OTHERS = ("magnetar", "schemathesis", "hypothesispytest", "anyio", "cacheprovider")
ARGUMENTS = (*(f"-pno:{name}" for name in OTHERS), "-p", "magnetar.testing.kit.pytest_plugin")
