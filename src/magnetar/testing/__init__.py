"""The test kit for users (docs/testing.md), and the simulator and its fakes, for magnetar's own tests and for theirs.

It may import everything; no product code imports it. ``PulsarBroker`` is a real broker in the process of a test:

    with PulsarBroker() as broker: ...

Reading order: ``kit`` (the test kit) uses the simulator's modules: ``processes`` (what can be killed), ``simloop``
(virtual time, clock), ``executor_lane`` (disk work of threads), ``diskmodel`` and ``faultfiles`` (what a disk
forgets), ``memory_journal`` and ``memory_metadata`` (stores in memory), ``transport`` and ``network`` (connections that
break), ``machine`` (a computer that crashes and boots), ``rawclient`` and ``rawtransaction`` (a client that does
exactly what a test says), ``broker`` (the whole broker on such a computer), ``history`` (what clients saw) and
``history_check`` (whether it is allowed).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from magnetar.testing.kit.broker_faults import BrokerFaults, Chaos, FullDiskFault
    from magnetar.testing.kit.broker_thread import BrokerClosedError, WouldBlockError
    from magnetar.testing.kit.fault import Fault
    from magnetar.testing.kit.message_explanation import MessageExplanation
    from magnetar.testing.kit.pulsar_broker import PulsarBroker
    from magnetar.testing.kit.rest_detector import RestlessError
    from magnetar.testing.kit.topic_inspection import InspectedProducer, InspectedSubscription, TopicInspection
    from magnetar.testing.kit.virtual_clock import ForeignClockWarning, VirtualClock

__all__ = [
    "BrokerClosedError",
    "BrokerFaults",
    "Chaos",
    "Fault",
    "ForeignClockWarning",
    "FullDiskFault",
    "InspectedProducer",
    "InspectedSubscription",
    "MessageExplanation",
    "PulsarBroker",
    "RestlessError",
    "TopicInspection",
    "VirtualClock",
    "WouldBlockError",
]

_HOMES: Final = {
    "broker_faults": ("BrokerFaults", "Chaos", "FullDiskFault"),
    "broker_thread": ("BrokerClosedError", "WouldBlockError"),
    "fault": ("Fault",),
    "message_explanation": ("MessageExplanation",),
    "pulsar_broker": ("PulsarBroker",),
    "rest_detector": ("RestlessError",),
    "topic_inspection": ("InspectedProducer", "InspectedSubscription", "TopicInspection"),
    "virtual_clock": ("ForeignClockWarning", "VirtualClock"),
}
"""Names of the kit by the module that has them, which is imported when one is asked for."""
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import what is asked for: the simulator does without the kit, and pytest starts without both."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"magnetar.testing.kit.{home}"), name)
    globals()[name] = found
    return found
