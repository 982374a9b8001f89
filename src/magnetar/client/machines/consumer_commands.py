"""What a consumer writes to have messages again."""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.client.machines.acknowledgement import IDS_MAX, Place
from magnetar.protocol import commands as c


def redeliver_commands(consumer_id: int, places: Sequence[Place], epoch: int | None) -> list[c.Command]:
    """Return what asks for these entries again; for everything, in the ``epoch`` of an ordered subscription, if there
    are none."""
    if not places:
        return [c.CommandRedeliverUnacknowledgedMessages(consumer_id, (), epoch)]
    ids = [c.MessageIdData(*place) for place in places]
    return [
        c.CommandRedeliverUnacknowledgedMessages(consumer_id, tuple(ids[at : at + IDS_MAX]))
        for at in range(0, len(ids), IDS_MAX)
    ]
