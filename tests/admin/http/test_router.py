"""Which route takes a path, what its function is called with, and what an application costs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.application import create_app
from magnetar.admin.http.arguments import Arguments, RequestParameter, Together
from magnetar.admin.http.bodies import answer
from magnetar.admin.http.error_responses import ErrorAnswers
from magnetar.admin.http.parameters import Flag, PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.http.router import RestRoute, RestRouter, register_words
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once

register_words("colour", ("red", "blue"))
register_words("no_colour", ("red", "blue"), others=True)


async def both(text: str = "-", flag: Flag = False) -> Response:
    return answer([text, flag])


def pair(left: int = 1, right: int = 2) -> tuple[int, int]:
    return left, right


def rest(*routes: tuple[str, Callable[..., Any]], prefix: str = "") -> RestClient:
    group = RouteGroup(prefix)
    for path, function in routes:
        group.get(path)(function)
    return RestClient(ErrorAnswers(RestRouter(group.routes)))


def said(name: str) -> Callable[..., Any]:
    async def function(request: Request) -> Response:
        return answer([name, request.path_params])

    return function


def test_the_first_route_that_matches_takes_the_request() -> None:
    asked = rest(
        ("/a/{one}/c", said("first")), ("/a/b/{one}", said("second")), ("/a/{x:colour}", said("colour")),
        ("/a/{x:no_colour}", said("other")), ("/{rest:path}", said("rest")),
    )  # fmt: skip
    for path, name, parameters in (
        ("/a/b/c", "first", {"one": "b"}),
        ("/a/b/d", "second", {"one": "d"}),
        ("/a/red", "colour", {"x": "red"}),
        ("/a/redd", "other", {"x": "redd"}),
        ("/a/", "rest", {"rest": "a/"}),
        ("/a//c", "rest", {"rest": "a//c"}),
        ("/", "rest", {"rest": ""}),
        ("/a/b/c/d/e/f/g", "rest", {"rest": "a/b/c/d/e/f/g"}),
    ):
        assert asked.get(path).json() == [name, parameters], path


def test_a_method_that_no_route_of_the_path_has_is_405_and_an_unknown_path_404() -> None:
    asked = rest(("/a", both), ("/{one}", both), prefix="/p")
    refused = asked.post("/p/a")
    assert (refused.status_code, refused.headers["allow"], refused.json()) == (
        405, "GET, HEAD", {"reason": "Method Not Allowed"},
    )  # fmt: skip
    for path in ("/", "/a", "/p/a/b", "/p/"):
        assert (asked.get(path).status_code, asked.get(path).json()) == (404, {"reason": "Not Found"})


@pytest.mark.parametrize("path", ["/a{b}", "/{a}b", "/{a:path}/{b}", "/{a"])
def test_a_parameter_is_a_whole_part_and_nothing_follows_the_rest(path: str) -> None:
    with pytest.raises(ValueError, match="a whole part of a path"):
        RestRoute(path, both, ("GET",))


async def everything(
    name: PathText,
    number: int,
    request: Request,
    made: Annotated[tuple[int, int], Together(pair)],
    needed: str,
    kind: Literal["big", "small"] = "big",
    word: str | None = None,
    count: Annotated[int | None, RequestParameter(name="n", at_least=0, at_most=9)] = None,
    truth: bool = True,
    flag: Flag = False,
    many: Annotated[list[str] | None, RequestParameter(name="m")] = None,
    head: Annotated[str | None, RequestParameter(name="X-Head", header=True)] = None,
) -> Response:
    return answer([name, number, request.method, made, needed, kind, word, count, truth, flag, many, head])


_WITHIN = "a whole number within 64 bits"


@pytest.fixture(scope="module")
def asked() -> RestClient:
    return rest(("/{name}/{number}", everything))


def test_arguments_come_from_path_query_and_head(asked: RestClient) -> None:
    assert asked.get("/a/7?needed=").json() == [
        "a", 7, "GET", [1, 2], "", "big", None, None, True, False, None, None,
    ]  # fmt: skip
    path = "/a/-07?needed=x&needed=y&kind=small&word=%20w&n=9&truth=Off&flag=TRUE&m=1&m=2&left=3&more=1"
    assert asked.get(path, headers={"x-head": "h"}).json() == [
        "a", -7, "GET", [3, 2], "y", "small", " w", 9, False, True, ["1", "2"], "h",
    ]  # fmt: skip
    assert asked.get("/a/1?needed=x&flag=yes").json()[9] is False


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/a/1", "query parameter needed is missing"),
        ("/a/x", 'path parameter number: "x" is not accepted: expected a whole number'),
        ("/a/1_0?needed=x", 'path parameter number: "1_0" is not accepted: expected a whole number'),
        (f"/a/{1 << 63}?needed=x", f'path parameter number: "{1 << 63}" is not accepted: expected {_WITHIN}'),
        (
            "/a/1?needed=x&left=-9223372036854775809",
            f'query parameter left: "-9223372036854775809" is not accepted: expected {_WITHIN}',
        ),
        ("/a/1?needed=x&n=10", 'query parameter n: "10" is not accepted: expected a number from 0 to 9'),
        ("/a/1?needed=x&n=", 'query parameter n: "" is not accepted: expected a whole number'),
        ("/a/1?needed=x&kind=BIG", 'query parameter kind: "BIG" is not accepted: expected big or small'),
        ("/a/1?needed=x&truth=2", 'query parameter truth: "2" is not accepted: expected true or false'),
        ("/a/1?needed=x&left=1.5", 'query parameter left: "1.5" is not accepted: expected a whole number'),
    ],
)
def test_what_is_missing_or_wrong_is_named(asked: RestClient, path: str, reason: str) -> None:
    refused = asked.get(path)
    assert (refused.status_code, refused.json()) == (400, {"reason": reason})


def test_a_number_of_any_length_costs_nothing(asked: RestClient) -> None:
    refused = asked.get("/a/" + "9" * 5000 + "?needed=x")
    assert refused.status_code == 400 and len(refused.text) < 500


def test_an_annotation_that_no_text_is_read_as_fails_the_start() -> None:
    async def odd(value: dict[str, int]) -> Response:
        raise AssertionError

    with pytest.raises(TypeError, match="parameter value: no text of a request is read as dict"):
        Arguments(odd, ())


def calls(work: Callable[[], object]) -> int:
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_an_application_costs_little_and_its_first_request_too() -> None:
    """Calls of Python functions, which are the same on every machine; with FastAPI they were 272,000 and 15,000."""
    resources = Resources(MemoryMetadataStore(), Settings())
    at_once(resources.ensure_defaults())
    ports = FakeBroker(resources).ports()
    create_app(ports, resources, Settings())  # imports, and the signatures
    made = []
    assert calls(lambda: made.append(create_app(ports, resources, Settings()))) < 10_000
    app = made[0]

    async def ask() -> int:
        sent: list[Any] = []
        scope = {
            "type": "http", "method": "GET", "path": "/admin/v2/clusters", "raw_path": b"/admin/v2/clusters",
            "query_string": b"", "headers": [(b"host", b"127.0.0.1:8080")], "scheme": "http", "root_path": "",
            "server": ("127.0.0.1", 8080),
        }  # fmt: skip

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return int(sent[0]["status"])

    statuses = []
    assert calls(lambda: statuses.append(asyncio.run(ask()))) < 1_000
    assert statuses == [200]
