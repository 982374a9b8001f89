"""Bookies: there are none, because the embedded store takes BookKeeper's place.

Questions are answered truly, with nothing. To say in which rack a bookie stands is refused, because no bookie would
ever be chosen by it (decision 034).
"""

from __future__ import annotations

from starlette.responses import Response

from magnetar.admin.http.bodies import answer
from magnetar.admin.http.parameters import PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.model.errors import NotFoundError


def routes() -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup("/admin/v2/bookies")

    @router.get("/all")
    async def list_bookies() -> Response:
        return answer({"bookies": []})

    @router.get("/racks-info")
    async def list_racks() -> Response:
        return answer({})

    @router.get("/racks-info/{bookie}")
    async def get_rack(bookie: PathText) -> Response:
        raise _no_rack(bookie)

    @router.delete("/racks-info/{bookie}")
    async def remove_rack(bookie: PathText) -> Response:
        raise _no_rack(bookie)

    return router


def _no_rack(bookie: str) -> NotFoundError:
    return NotFoundError(f"Bookie rack placement configuration not found: {bookie[:200]}")
