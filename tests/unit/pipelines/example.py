"""A small pipeline file, and a way to change one thing in it."""

from __future__ import annotations

TEXT = """\
name: small
broker:
  service.url: pulsar://localhost:6650
checkpoint: work
dead-letter: dead
sources:
  flights:
    topic: flights
    startingOffsets: earliest
    value: json
    fields: origin STRING, delay BIGINT
    expect:
      known: {that: origin IS NOT NULL, otherwise: dead-letter}
  airports:
    format: csv
    path: airports.csv
steps:
  - name: late
    sql: SELECT * FROM flights JOIN airports USING (origin) WHERE delay > 60
sinks:
  out:
    topic: late
"""


def changed(old: str, new: str) -> str:
    """The example with ``old`` replaced, which must be there once."""
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)
