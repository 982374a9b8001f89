"""The programs on the pages docs/client-*.md run as they stand, and print what the pages say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_broker import live_broker
from tests.support.snippets import Snippet, python

PAGES = [one for one in python(spark=False) if one.file.startswith("docs/client-")]
SAID = {
    "docs/client-encryption.md": ["b'alice: 100' EncryptionContext(keys=[hr-2026], is_decryption_failed=False)"],
    "docs/client-retries.md": [
        "b'resize cat.png' 1", "b'-5 EUR' customer-7 1700000000000 -5 EUR is no amount",
        "1 mailbox full persistent://public/default/mails-sender-RETRY",
    ],
    "docs/client-views.md": [
        "b'3.20' None True 2", "now apple b'3.20'", "now pear b'1.10'", "now apple b'3.50'", "now pear b''",
        "{'apple': b'3.50'}", "sales-north b'north'", "sales-south b'south'",
    ],
    "docs/client-databases.md": ["[('alice', 100)]", "b'apple' {'shop': 'north'} outbox"],
    "docs/client-columns.md": [
        "entries: 1 messages: [3]", "[(b'north', 2), (b'south', 1)]",
        "[{'name': 'Ann', 'age': 41}, {'name': 'Bob', 'age': None}]", "[b'one', b'two']",
    ],
    "docs/client-handlers.md": ["6 1 True", "b'mow the lawn'", "20"],
    "docs/client-interceptors.md": ["stored at (", "{'team': 'shop'} 1", "00-"],
    "docs/client-schemas.md": [
        f"ann 2026 {bytes(8)!r}",
        '{"type":"record","name":"Shirt","namespace":"shop","fields":[{"name":"size","type":"int"},',
        "size=4 colour=<Colour.RED: 1> price=Decimal('19.90') name=None",
        """b'{"x":1.5,"y":2.0}'""", "{'shop': 'north', 'amount': 2.5}", "{'left': 4}",
        "persistent://public/default/readings: these bytes are no value of the topic's AVRO",
        "north {'sensor': 'north', 'value': 20.5}",
    ],
}  # fmt: skip
"""How lines begin that the programs of a page print."""


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker for each page: pages may use the same topics for different things."""
    with live_broker(tmp_path_factory.mktemp("broker"), transactionCoordinatorEnabled="true") as broker:
        yield broker.url


@pytest.mark.parametrize("page", sorted({one.file for one in PAGES}))
def test_a_page(
    page: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown: list[Snippet] = [one for one in PAGES if one.file == page]
    for one in shown:
        exec(compile(one.at(url, tmp_path), one.where, "exec", dont_inherit=True), {"__name__": "page"})
    lines = capsys.readouterr().out.splitlines()
    for wanted in SAID.get(page, []):
        assert any(line.startswith(wanted) for line in lines), wanted
