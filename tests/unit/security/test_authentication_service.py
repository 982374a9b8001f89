"""Several providers, of one method and of more: who is asked, what was revoked or has expired, what is read again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from magnetar.model.errors import AuthenticationError
from magnetar.security.authentication.provider import AuthenticationProvider, Credentials
from magnetar.security.authentication.revocation_list import RevocationList
from magnetar.security.authentication.service import AuthenticationService
from magnetar.security.identity import Identity

EXPIRES_S = 1_000


class _Knows(AuthenticationProvider):
    """Lets in those it names, by their word."""

    def __init__(self, *roles: str, method: str = "word") -> None:
        self.method = method
        self.roles = set(roles)
        self.valid = set(roles)
        self.asked = 0
        self.refreshed = 0
        self.closed = False
        self.changes = False

    async def authenticate(self, credentials: Credentials) -> Identity:
        self.asked += 1
        role = credentials.data.decode()
        if role not in self.roles:
            raise AuthenticationError(f"{sorted(self.roles)} does not know it")
        return Identity(role, self.method, EXPIRES_S, token_id=f"id of {role}")

    def still_valid(self, identity: Identity) -> bool:
        return identity.role in self.valid

    async def refresh(self) -> bool:
        self.refreshed += 1
        return self.changes

    async def close(self) -> None:
        self.closed = True


class _ClockByHand:
    ms = 0

    def now_ms(self) -> int:
        return self.ms


def service_of(*providers: AuthenticationProvider, revoked: Path | None = None) -> AuthenticationService:
    listed = None if revoked is None else RevocationList(str(revoked))
    return AuthenticationService(providers, _ClockByHand(), revocation_list=listed)


def role_of(service: AuthenticationService, said: str, method: str = "word") -> str:
    return asyncio.run(service.authenticate(method, Credentials(said.encode()))).role


def test_providers_of_one_method_are_asked_in_their_order_until_one_knows() -> None:
    """And the last refusal counts if none does."""
    first, second, other = _Knows("alice"), _Knows("alice", "bob"), _Knows("carol", method="other")
    service = service_of(first, second, other)
    assert service.methods == ("word", "other")
    assert (role_of(service, "alice"), first.asked, second.asked) == ("alice", 1, 0)
    assert (role_of(service, "bob"), first.asked, second.asked) == ("bob", 2, 1)
    with pytest.raises(AuthenticationError, match="'bob'"):
        role_of(service, "carol")
    assert (first.asked, second.asked, other.asked) == (3, 2, 0)
    assert role_of(service, "carol", "other") == "carol"
    assert service.counters() == {"word": (2, 1), "other": (1, 0), "anonymous": (0, 0)}


def test_an_identity_counts_as_long_as_one_provider_of_its_method_holds_it_for_valid() -> None:
    first, second, other = _Knows("alice"), _Knows("alice"), _Knows("alice", method="other")
    service = service_of(first, second, other)
    alice = Identity("alice", "word")
    assert not service.revoked(alice)
    first.valid.clear()
    assert not service.revoked(alice), "the second one goes on"
    second.valid.clear()
    assert service.revoked(alice), "the other method does not count"
    assert not service.revoked(Identity("alice", "other"))
    assert not service.revoked(Identity("alice", "without a provider"))


@pytest.mark.parametrize("entry", ["jti id of alice", "sub alice"])
def test_credentials_that_were_revoked_are_refused_at_the_login(tmp_path: Path, entry: str) -> None:
    file = tmp_path / "revoked"
    file.write_text(entry + "\n")
    service = service_of(_Knows("alice", "bob"), revoked=file)
    with pytest.raises(AuthenticationError, match="the credentials of alice were revoked"):
        role_of(service, "alice")
    assert role_of(service, "bob") == "bob"
    assert service.counters()["word"] == (1, 1)
    assert service.revoked_original("alice") is entry.startswith("sub")
    assert not service.revoked_original("bob") and not service.revoked_original(None)
    assert not service_of(_Knows("alice")).revoked_original("alice"), "without a list"


def test_credentials_that_no_provider_holds_for_valid_any_more_are_refused_at_the_login() -> None:
    """A user may be struck out while the password is being hashed."""
    provider = _Knows("alice")
    service = service_of(provider)
    assert role_of(service, "alice") == "alice"
    provider.valid.clear()
    with pytest.raises(AuthenticationError, match="were revoked"):
        role_of(service, "alice")


@pytest.mark.parametrize(
    ("expires", "now", "over"),
    [(EXPIRES_S, 999_999, False), (EXPIRES_S, 1_000_000, False), (EXPIRES_S, 1_000_001, True), (None, 1 << 60, False)],
)
def test_credentials_expire_after_their_time(expires: float | None, now: int, over: bool) -> None:
    service, clock = service_of(_Knows("alice")), _ClockByHand()
    clock.ms = now
    service._clock = clock
    assert service.expired(Identity("alice", "word", expires)) is over


@pytest.mark.parametrize("which", [None, 0, 1, 2, "list"])
def test_every_provider_is_read_again_and_one_that_has_changed_is_enough(
    tmp_path: Path, which: int | str | None
) -> None:
    file = tmp_path / "revoked"
    file.write_text("sub alice\n")
    providers = _Knows("a"), _Knows("b"), _Knows("c", method="other")
    service = service_of(*providers, revoked=file)
    if isinstance(which, int):
        providers[which].changes = True
    if which == "list":
        file.write_text("sub alice\nsub bobby\n")
    assert asyncio.run(service.refresh()) is (which is not None)
    assert [one.refreshed for one in providers] == [1, 1, 1]
    assert service.revoked_original("bobby") is (which == "list")


def test_every_provider_is_closed() -> None:
    providers = _Knows("a"), _Knows("b"), _Knows("c", method="other")
    asyncio.run(service_of(*providers).close())
    assert all(one.closed for one in providers)
