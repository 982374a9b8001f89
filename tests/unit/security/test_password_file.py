"""Passwords: the file, each kind of hash, guesses, and what a login costs others."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from passlib import hash as hashes  # type: ignore[import-untyped]  # libpass carries no types

from magnetar.config.configuration import load
from magnetar.config.settings import Settings
from magnetar.model.errors import AuthenticationError, InvalidValueError
from magnetar.security.authentication import basic_provider
from magnetar.security.authentication.basic_provider import FAILURES_MAX, REMEMBERED_MS, WINDOW_MS, BasicProvider
from magnetar.security.authentication.password_file import PASSWORD_MAX, matches, parse
from magnetar.security.authentication.provider import Credentials
from magnetar.security.identity import Identity

SHA = "{SHA}" + base64.b64encode(hashlib.sha1(b"123456").digest()).decode()
KNOWN = {
    "$apr1$": "$apr1$uL5rRv1M$eSw2VoT3mLom7y2Lw45hR1",
    "$1$": "$1$abcdefgh$KJHEbEnUJaxWv269o9nH60",
    "$5$": "$5$abcdefgh$eMsNCP.gxGD7n8a1MUsIia7AmQjJx6PHM9WZO1dafBA",
    "$6$": "$6$abcdefgh$fsQAa16ibv7N/pkIMTWAm9JGNGOIC4zzMpCqrfg2f6e5sTkTI49pdvKD4Wjy8PO6mzddXEf0oICL6PtgHim/F.",
    "$2y$": "$2y$05$WUhhIdfXMilDhCnhi4yO2.CH8K4uBJRfa0E5w2TvKJ.X3eISJ0F7W",
    "{SHA}": SHA,
    "crypt": "rlCqQL5Ja2Ubc",
}
"""Hashes of 123456 by openssl, by crypt(3) and, for bcrypt, by the C library behind the package."""


class ClockByHand:
    def __init__(self) -> None:
        self.ms = 10**12

    def now_ms(self) -> int:
        return self.ms


@pytest.mark.parametrize("kind", list(KNOWN))
def test_kinds_of_hashes(kind: str) -> None:
    hashed = parse(f"# users\n\nadmin:{KNOWN[kind]}\n", "f")["admin"]
    assert matches(b"123456", hashed)
    for wrong in (b"12345", b"1234567", b"", b"\0", b"\xff", hashed.encode()):
        assert not matches(wrong, hashed)


def test_bcrypt_takes_as_much_of_a_password_as_it_always_did() -> None:
    """Apache's htpasswd, too, hashes the first 72 bytes; the library refuses longer ones since its version 5."""
    hashed = parse("admin:$2y$04$KPtWRF3Wf3w7flnEiXKNl.ayQnODpgOHXJ3so.srwyerV9IG8llbG", "f")["admin"]
    assert matches(b"x" * 72, hashed) and matches(b"x" * 80, hashed)
    assert not matches(b"x" * 71, hashed) and not matches(b"x" * 71 + b"y" * 9, hashed)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("admin", "line 2 is not user:hash"),
        ("admin:", "line 2 is not user:hash"),
        (":x", "line 2 is not user:hash"),
        ("admin:x:y", "line 2 is not user:hash"),
        ("admin:PLAINTEXT-SECRET", "line 2, user 'admin': no hash of a known kind"),
        ("admin:$apr1$x", "no hash of a known kind"),
        ("admin:$6$rounds=9000000$abcdefgh$" + "a" * 86, "rounds would take too long"),
        ("admin:$2y$15$PERPzakAxQ/mRqDQk1FUS.CinO7.GrBkqpAcTSTPc3XZNCuosIozO", "15 rounds would take too long"),
        ("admin:$2y$05$PERPzak", "no hash of a known kind"),
    ],
)
def test_lines_that_refuse_the_start(line: str, said: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        parse(f"ok:{SHA}\n{line}\n", "basicAuthConf")
    assert said in str(refused.value)
    assert "SECRET" not in str(refused.value)


def provider(where: str | None = None) -> tuple[BasicProvider, ClockByHand]:
    clock = ClockByHand()
    return BasicProvider(where or f"data:,admin:{SHA}%0aother:{SHA}", clock), clock


async def login(judge: BasicProvider, data: str, address: str = "/10.0.0.1:5") -> Identity:
    return await judge.authenticate(Credentials(data.encode(), None, address))


async def refused(judge: BasicProvider, data: str, address: str = "/10.0.0.1:5") -> str:
    with pytest.raises(AuthenticationError) as found:
        await login(judge, data, address)
    return str(found.value)


def with_provider(talk: Callable[[BasicProvider, ClockByHand], object], where: str | None = None) -> None:
    async def run() -> None:
        judge, clock = provider(where)
        await talk(judge, clock)  # type: ignore[misc]
        await judge.close()

    asyncio.run(run())


def test_users_and_passwords() -> None:
    """The role is the user (rule 12.3)."""

    async def talk(judge: BasicProvider, _: ClockByHand) -> None:
        assert (await login(judge, "admin:123456")).role == "admin"
        for wrong in ("admin:1234567", "nobody:123456", "Admin:123456", "admin:123456\n"):
            assert await refused(judge, wrong) == "unknown user or wrong password"
        for malformed in ("admin", "admin:", ":123456", "", "admin:" + "1" * (PASSWORD_MAX + 1), "ad\nmin:123456"):
            assert "123456" not in await refused(judge, malformed)
        assert await refused(judge, "admin:" + "1" * PASSWORD_MAX) == "unknown user or wrong password"
        assert await refused(judge, "admin:" + "1" * (PASSWORD_MAX + 1)) == "not user:password, or too long"

    with_provider(talk)


def test_a_right_password_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = 0

    def counted(password: bytes, wanted: str) -> bool:
        nonlocal hashed
        hashed += 1
        return matches(password, wanted)

    monkeypatch.setattr(basic_provider, "matches", counted)

    async def talk(judge: BasicProvider, clock: ClockByHand) -> None:
        for _ in range(5):
            await login(judge, "admin:123456")
        assert hashed == 1
        await login(judge, "other:123456")
        await refused(judge, "admin:12345")
        await refused(judge, "admin:12345")
        assert hashed == 4
        clock.ms += REMEMBERED_MS
        await login(judge, "admin:123456")
        assert hashed == 5

    with_provider(talk)


def test_an_address_that_guesses_is_not_listened_to() -> None:
    async def talk(judge: BasicProvider, clock: ClockByHand) -> None:
        await login(judge, "other:123456")
        for number in range(FAILURES_MAX):
            await refused(judge, f"admin:{number}")
        assert "failed logins within" in await refused(judge, "admin:123456")
        # who had it right before, and other addresses, go on
        await login(judge, "other:123456")
        await login(judge, "admin:123456", "/10.0.0.2:7")
        clock.ms += WINDOW_MS
        await login(judge, "admin:123456")

    with_provider(talk)


def test_an_address_that_guesses_again_after_its_window_is_stopped_again() -> None:
    """From whichever port it comes; the new window begins with its first failure."""

    async def talk(judge: BasicProvider, clock: ClockByHand) -> None:
        for _ in range(3):
            for number in range(FAILURES_MAX):
                clock.ms += 1
                said = await refused(judge, f"admin:{number}", f"/10.0.0.1:{number}")
                assert said == "unknown user or wrong password"
            assert "failed logins within" in await refused(judge, "admin:123456", "/10.0.0.1:99")
            clock.ms += WINDOW_MS - FAILURES_MAX
            assert "failed logins within" in await refused(judge, "admin:123456", "/10.0.0.1:99")
            clock.ms += FAILURES_MAX

    with_provider(talk)


def test_a_clock_that_is_set_back_keeps_no_address_out_for_longer() -> None:
    async def talk(judge: BasicProvider, clock: ClockByHand) -> None:
        for _ in range(2):
            for number in range(FAILURES_MAX):
                await refused(judge, f"admin:{number}")
            assert "failed logins within" in await refused(judge, "admin:123456")
            clock.ms -= 3_600_000
            assert await refused(judge, "admin:1") == "unknown user or wrong password"
        clock.ms += WINDOW_MS
        await login(judge, "admin:123456")

    with_provider(talk)


def test_failures_of_the_addresses_that_failed_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many addresses a client has; one that fails again is not the oldest any more."""
    monkeypatch.setattr(basic_provider, "_ADDRESSES_MAX", 2)

    async def talk(judge: BasicProvider, _: ClockByHand) -> None:
        for number in range(FAILURES_MAX - 1):
            await refused(judge, f"admin:{number}", "/10.0.0.1:1")
        await refused(judge, "admin:x", "/10.0.0.2:1")
        await refused(judge, "admin:x", "/10.0.0.1:1")
        await refused(judge, "admin:x", "/10.0.0.3:1")
        assert "failed logins within" in await refused(judge, "admin:x", "/10.0.0.1:1")
        assert set(judge._failures) == {"/10.0.0.1", "/10.0.0.3"}

    with_provider(talk)


def test_passwords_that_were_right_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded number of them; one that was right again is not the oldest any more."""
    monkeypatch.setattr(basic_provider, "_REMEMBERED_MAX", 2)
    hashed: list[bytes] = []

    def noted(password: bytes, _: str) -> bool:
        hashed.append(password)
        return True

    monkeypatch.setattr(basic_provider, "matches", noted)

    async def talk(judge: BasicProvider, clock: ClockByHand) -> None:
        await login(judge, "admin:1")
        await login(judge, "admin:2")
        clock.ms += REMEMBERED_MS
        for password in ("1", "3", "1", "3"):
            await login(judge, f"admin:{password}")
        assert hashed == [b"1", b"2", b"1", b"3"]
        await login(judge, "admin:2")
        assert hashed[4:] == [b"2"]
        assert len(judge._remembered) == 2

    with_provider(talk)


def test_logins_that_wait_when_the_broker_ends_are_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dozens of slow hashes would hold up its end."""
    begun, go_on = threading.Event(), threading.Event()
    worked_out: list[bytes] = []

    def slow(password: bytes, _: str) -> bool:
        begun.set()
        go_on.wait(60)
        worked_out.append(password)
        return True

    monkeypatch.setattr(basic_provider, "matches", slow)

    async def run() -> None:
        judge, _ = provider()
        logins = [asyncio.ensure_future(login(judge, f"admin:{number}")) for number in range(5)]
        await asyncio.to_thread(begun.wait, 60)
        await judge.close()
        go_on.set()
        await asyncio.wait(logins)
        judge._thread.shutdown(wait=True)

    asyncio.run(run())
    assert worked_out == [b"0"]


def test_logins_wait_in_a_short_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic_provider, "WAITING_MAX", 3)

    async def talk(judge: BasicProvider, _: ClockByHand) -> None:
        found = await asyncio.gather(
            *(login(judge, "admin:123456", f"/10.0.0.{number}:1") for number in range(5)), return_exceptions=True
        )
        assert [isinstance(one, Identity) for one in found] == [True] * 3 + [False] * 2
        await login(judge, "admin:123456")

    with_provider(talk)


def test_one_address_cannot_fill_the_queue() -> None:
    """Guesses come all at once, and others' logins wait behind a part of them only."""

    async def talk(judge: BasicProvider, clock: ClockByHand) -> None:
        places = basic_provider.WAITING_OF_ADDRESS_MAX
        for heard in (places, FAILURES_MAX - places, 0):
            guesses = [asyncio.ensure_future(refused(judge, f"admin:{number}")) for number in range(100)]
            await asyncio.sleep(0)
            await login(judge, f"{'other' if heard == places else 'admin'}:123456", "/10.0.0.2:7")
            said = await asyncio.gather(*guesses)
            assert sum(one == "unknown user or wrong password" for one in said) == heard
        clock.ms += WINDOW_MS
        await login(judge, "admin:123456")
        assert not judge._waiting

    with_provider(talk)


def test_the_file_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who is struck out, or has another password, does not count any more; a faulty file changes nothing."""
    file = tmp_path / ".htpasswd"
    file.write_text(f"admin:{SHA}\nother:{SHA}\n")

    def write(text: str) -> None:
        before = file.stat().st_mtime_ns
        file.write_text(text)
        os.utime(file, ns=(before + 1000, before + 1000))

    async def talk(judge: BasicProvider, _: ClockByHand) -> None:
        admin, other = await login(judge, "admin:123456"), await login(judge, "other:123456")
        assert not await judge.refresh()
        for half in ("admin\n", "", f"other:{SHA}\nadm"):
            # a look into the middle of writing takes nobody away
            write(half)
            assert not await judge.refresh()
            assert judge.still_valid(admin)
        write("admin\n")
        assert [await judge.refresh() for _ in range(3)] == [False] * 3
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        write(f"other:{SHA}\n")
        assert not await judge.refresh()
        assert judge.still_valid(admin)
        assert await judge.refresh()
        assert not judge.still_valid(admin)
        assert judge.still_valid(other)
        await refused(judge, "admin:123456")
        write(f"other:{hashes.apr_md5_crypt.hash('new')}\n")
        assert await judge.refresh()
        assert not judge.still_valid(other)
        await refused(judge, "other:123456")
        await login(judge, "other:new")

    with_provider(talk, str(file))


def test_where_the_file_is_named(tmp_path: Path) -> None:
    """The setting counts, or else the system property that test scripts of Pulsar set."""
    file = tmp_path / ".htpasswd"
    options = {"PULSAR_EXTRA_OPTS": f"-Xmx1g -Dpulsar.auth.basic.conf={file} -Dother=x"}
    assert load(environment=options).settings.basicAuthConf == str(file)
    assert load(environment=options, flags=["basicAuthConf=/other"]).settings.basicAuthConf == "/other"
    conf = tmp_path / "broker.conf"
    conf.write_text("basicAuthConf=/in-the-file\n")
    assert load(file=conf, environment=options).settings.basicAuthConf == "/in-the-file"
    conf.write_text("basicAuthConf=\n")
    assert load(file=conf, environment=options).settings.basicAuthConf == str(file)
    with pytest.raises(InvalidValueError, match="needs basicAuthConf"):
        BasicProvider.of(Settings(), ClockByHand())


def test_the_time_of_a_name_says_little_of_whether_it_is_a_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds of hashes take different times: the first user's stood in for all names, and others betrayed theirs."""
    asked: list[str] = []

    def noted(password: bytes, wanted: str) -> bool:
        asked.append(wanted)
        return False

    monkeypatch.setattr(basic_provider, "matches", noted)
    text = f"admin:{KNOWN['$2y$']}\nother:{SHA}\nthird:{KNOWN['$6$']}\n"

    async def talk(judge: BasicProvider, clock: ClockByHand) -> None:
        for number in range(60):
            clock.ms += WINDOW_MS
            await refused(judge, f"nobody{number}:123456")
            await refused(judge, f"nobody{number}:654321")
            assert asked[-1] == asked[-2]  # or asking twice would tell
        assert set(asked) == {KNOWN["$2y$"], SHA, KNOWN["$6$"]}

    with_provider(talk, "data:," + text)


def test_a_name_that_is_nobodys_is_no_more_work_in_a_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines were sorted and hashed for each such name, and for none of a user's: the time told them apart."""
    monkeypatch.setattr(basic_provider, "matches", lambda password, wanted: False)
    text = "".join(f"user{number}:{SHA}\n" for number in range(500))

    async def talk(judge: BasicProvider, clock: ClockByHand) -> None:
        work: dict[str, int] = {}
        real = hmac.digest

        def counted(key: bytes, message: bytes, digest: str) -> bytes:
            work[name] = work.get(name, 0) + len(key) + len(message)
            return real(key, message, digest)

        monkeypatch.setattr(hmac, "digest", counted)
        for name in ("user7", "usher"):
            await refused(judge, f"{name}:654321")
        assert work["usher"] < work["user7"] + 100

    with_provider(talk, "data:," + text)
