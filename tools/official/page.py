"""Prints docs/official-suite.md: ``python -m tools.official.page > docs/official-suite.md``."""

from __future__ import annotations

import sys

from tools.official.expectations import cannot_pass

_HEAD = """# The official Python suite on our client

`make official ARGS="--our-client --own-conf"` runs the tests of apache/pulsar-client-python, rewritten for nothing but
the import, on `magnetar.Client` and `magnetar.aio.Client`: `import pulsar` leads to `magnetar`, `import pulsar.asyncio`
to `magnetar.asyncio` (`tools/official/our_client.py`). The broker has the suite's own configuration, certificates,
passwords and tokens, in a network of its own where Linux allows that. `MAGNETAR_OFFICIAL_SUITE` names the suite, a git
directory.

Of its {total} tests {passing} pass; the others are these. The list is exact: the command exits with 1 if another test
fails, or if one of these passes that does not pass "by chance". It stands in `tools/official/cannot_pass.tsv`, and
`python -m tools.official.page` makes this page of it.

| test | why it does not pass |
|---|---|
"""
TOTAL = 167
"""Tests of the suite at ef1b354e5409."""


def page() -> str:
    """Return the page."""
    rows = cannot_pass()
    lines = [f"| `{test.partition('.')[2]}` | {why} |" for test, why in rows.items()]
    return _HEAD.format(total=TOTAL, passing=TOTAL - len(rows)) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
