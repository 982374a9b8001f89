"""The bounds of a query say what was exceeded."""

from __future__ import annotations

import pytest

from magnetar.cli.sql.read_bounds import QueryBoundError, ReadBounds


def test_a_query_without_a_row_is_not_said_to_read_too_long() -> None:
    """The broker may be away: fewer columns help nothing then."""
    bounds = ReadBounds(max_rows=0, max_bytes=0, timeout=1e-9)
    with pytest.raises(QueryBoundError, match="has no row after 1e-09 s; is the broker running"):
        bounds.check_time()
    with pytest.raises(QueryBoundError, match="reads for more than 1e-09 s"):
        bounds.take(1, 1)
