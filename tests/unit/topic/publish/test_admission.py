"""Who may publish to a topic at the same time, one newcomer after the other (rules 3.1.2, 3.1.6, 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from magnetar.broker.topic.publish.producer import Producer, ProducerInfo
from magnetar.broker.topic.publish.producers import ProducerLimits, Producers
from magnetar.broker.topic.publish.topic_epoch import EPOCH_MAX, EPOCH_NAMED_MAX, LogEpoch
from magnetar.model.errors import MagnetarError, ProducerBusyError, ProducerFencedError, ServiceNotReadyError
from magnetar.protocol.commands import ProducerAccessMode

SHARED, EXCLUSIVE = ProducerAccessMode.Shared, ProducerAccessMode.Exclusive
WAITING, FENCING = ProducerAccessMode.WaitForExclusive, ProducerAccessMode.ExclusiveWithFencing
NO_LIMITS = ProducerLimits()


class Epoch:
    """An epoch that is durable when the test says so."""

    def __init__(self) -> None:
        self.current: int | None = None
        self.moves: list[Callable[[], None]] = []
        self.at_once = False
        self.refuses: MagnetarError | None = None

    def move(self, epoch: int, done: Callable[[], None]) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.current = epoch
        self.moves.append(done)
        if self.at_once:
            self.durable()

    def durable(self) -> None:
        moves, self.moves = self.moves, []
        for done in moves:
            done()


class Connection:
    def __init__(self, session: str) -> None:
        self.session = session
        self.closed = self.fenced = 0

    def close(self) -> None:
        self.closed += 1

    def fence(self) -> None:
        self.fenced += 1


class Door:
    """The producers of one topic, and what each newcomer was answered."""

    def __init__(self, limits: ProducerLimits = NO_LIMITS) -> None:
        self.epoch = Epoch()
        self.producers = Producers("t", self.epoch)
        self.limits = limits
        self.answers: dict[str, list[MagnetarError | None]] = {}

    def newcomer(self, name: str, mode: ProducerAccessMode, **more: Any) -> Producer:
        session, address = more.get("session", name), more.get("address", f"10.0.0.{name}:1")
        info = ProducerInfo(
            more.get("id", 1), name, True, more.get("epoch", 0), mode, False, address, "", "", {}, False
        )
        log: Any = type("NoLog", (), {"append": None})
        return Producer(info, log, cast(Any, Connection(session)))

    def come(self, name: str, mode: ProducerAccessMode, topic_epoch: int | None = None, **more: Any) -> Producer:
        producer = self.newcomer(name, mode, **more)
        answers = self.answers.setdefault(name, [])
        admitted = self.producers.admit(producer, topic_epoch, self.limits, answers.append)
        assert admitted == (producer in list(self.producers))
        return producer

    def names(self) -> list[str]:
        return [producer.info.name for producer in self.producers]


def connection(producer: Producer) -> Connection:
    return cast(Connection, producer.connection)


def test_shared_producers_are_many_each_with_a_name_of_its_own() -> None:
    door = Door()
    first = door.come("a", SHARED)
    door.come("b", SHARED)
    assert door.answers == {"a": [None], "b": [None]}
    with pytest.raises(ProducerBusyError, match="Producer with name 'a' is already connected to topic 't'"):
        door.come("a", SHARED, session="another")
    assert (door.names(), door.producers.holder("a"), door.producers.connected("c")) == (["a", "b"], first, False)
    door.producers.remove(first)
    assert (door.names(), first.open, door.producers.connected("a")) == (["b"], False, False)
    door.come("a", SHARED)
    door.producers.remove(first)
    assert door.names() == ["b", "a"], "an earlier producer of that name is not this one"


@pytest.mark.parametrize(
    ("session", "producer_id", "epoch", "replaces"),
    [("same", 1, 1, True), ("same", 1, 0, False), ("same", 2, 1, False), ("another", 1, 1, False)],
)
@pytest.mark.parametrize("mode", [SHARED, EXCLUSIVE])
def test_a_later_life_on_the_same_connection_takes_the_place_of_the_earlier_one(
    mode: ProducerAccessMode, session: str, producer_id: int, epoch: int, replaces: bool
) -> None:
    """The same id there, with a higher epoch (rule 3.1.2)."""
    door = Door()
    earlier = door.come("p", mode, session="same", id=1, epoch=0)
    if replaces:
        later = door.come("p", mode, session=session, id=producer_id, epoch=epoch)
        assert (list(door.producers), earlier.open) == ([later], False)
        door.epoch.durable()
        assert door.answers["p"] == ([None] if mode is EXCLUSIVE else [None, None])
    else:
        with pytest.raises((ProducerBusyError, ProducerFencedError)):
            door.come("p", mode, session=session, id=producer_id, epoch=epoch)
        assert (list(door.producers), earlier.open) == ([earlier], True)


@pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
def test_an_exclusive_one_is_answered_when_its_epoch_is_durable_and_then_alone(mode: ProducerAccessMode) -> None:
    door = Door()
    owner = door.come("a", mode)
    assert (door.answers["a"], owner.topic_epoch, door.epoch.current) == ([], 0, 0)
    for other in (SHARED, EXCLUSIVE):
        with pytest.raises((ProducerBusyError, ProducerFencedError), match="existing exclusive producer: a"):
            door.come("b", other)
    door.epoch.durable()
    assert (door.answers["a"], door.names()) == ([None], ["a"])
    door.producers.remove(owner)
    assert door.come("b", SHARED).topic_epoch == 0
    assert door.answers["b"] == [None], "shared ones are answered at once"


def test_an_exclusive_one_does_not_come_where_shared_ones_are_but_waits_or_throws_them_out() -> None:
    door = Door()
    shared = [door.come(name, SHARED) for name in "ab"]
    with pytest.raises(ProducerFencedError, match="Topic has existing shared producers"):
        door.come("x", EXCLUSIVE)
    waiting = door.come("w", WAITING)
    assert (door.producers.waiting, door.names()) == (1, ["a", "b"])
    assert door.producers.with_waiting() == [*shared, waiting]
    for mode in (SHARED, EXCLUSIVE):
        with pytest.raises((ProducerBusyError, ProducerFencedError), match="existing exclusive producer: null"):
            door.come("c", mode)
    owner = door.come("f", FENCING)
    assert (door.names(), door.producers.waiting) == (["f"], 0)
    assert [(one.open, connection(one).fenced, connection(one).closed) for one in shared] == [(False, 1, 0)] * 2
    (refused,) = door.answers["w"]
    assert isinstance(refused, ProducerFencedError) and str(refused).endswith("Fenced out")
    assert (waiting.open, connection(waiting).fenced) == (False, 0)
    door.epoch.durable()
    assert (door.answers["f"], owner.topic_epoch) == ([None], 0)


def test_who_waits_comes_first_come_first_served_when_the_last_before_it_has_left() -> None:
    door = Door()
    first, second = door.come("a", SHARED), door.come("b", SHARED)
    for name in "xyz":
        door.come(name, WAITING)
    door.producers.remove(first)
    assert (door.names(), door.producers.waiting) == (["b"], 3)
    door.producers.remove(second)
    assert (door.names(), door.producers.waiting, door.answers["x"]) == (["x"], 2, [])
    door.epoch.durable()
    assert door.answers["x"] == [None]
    (x,) = door.producers
    y = door.producers.with_waiting()[1]
    door.producers.remove(y)
    assert (door.producers.waiting, y.open, door.answers["y"]) == (1, False, []), "it has left the queue"
    door.producers.remove(x)
    door.epoch.durable()
    assert (door.names(), door.answers["z"], [one.topic_epoch for one in door.producers]) == (["z"], [None], [1])


def test_who_leaves_before_its_epoch_is_durable_is_not_answered() -> None:
    door = Door()
    owner = door.come("a", EXCLUSIVE)
    door.producers.remove(owner)
    later = door.come("b", EXCLUSIVE)
    door.epoch.durable()
    assert (door.answers, door.names(), later.topic_epoch) == ({"a": [], "b": [None]}, ["b"], 1)


def test_fencing_refuses_the_one_whose_epoch_is_not_durable_yet() -> None:
    door = Door()
    entering = door.come("a", EXCLUSIVE)
    door.come("b", FENCING)
    (refused,) = door.answers["a"]
    assert isinstance(refused, ProducerFencedError)
    assert (door.names(), entering.open, connection(entering).fenced) == (["b"], False, 0)
    door.epoch.durable()
    assert door.answers["b"] == [None] and len(door.answers["a"]) == 1


@pytest.mark.parametrize(("had", "fits"), [(None, True), (0, False), (1, True), (2, True)])
@pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
def test_who_comes_with_an_epoch_that_is_over_is_refused(mode: ProducerAccessMode, had: int | None, fits: bool) -> None:
    """An epoch that it had keeps its number, a new one is the next (rule 3.2.5)."""
    door = Door()
    door.epoch.current = 1
    if fits:
        assert door.come("a", mode, had).topic_epoch == (2 if had is None else had)
        return
    with pytest.raises(ProducerFencedError, match="Current epoch: 1, Producer epoch: 0"):
        door.come("a", mode, had)
    assert door.names() == []


def test_who_waited_too_long_is_refused_and_the_next_one_comes() -> None:
    door = Door()
    shared = door.come("s", SHARED)
    door.epoch.current = 5
    door.come("late", WAITING, 4)
    door.come("next", WAITING, 5)
    door.producers.remove(shared)
    door.epoch.durable()
    (refused,) = door.answers["late"]
    assert isinstance(refused, ProducerFencedError)
    assert (door.names(), door.answers["next"], door.producers.waiting) == (["next"], [None], 0)


@pytest.mark.parametrize("most", [0, 1, 2])
@pytest.mark.parametrize("what", ["producers", "same_address"])
def test_limits_hold_to_the_number(what: str, most: int) -> None:
    """0 is no limit; the address counts without its port (rule 3.1.6)."""
    door = Door(ProducerLimits(**{what: most}))
    for number in range(most or 5):
        door.come(f"{number}", SHARED, address=f"10.0.0.1:{number}")
    text = "max producers limit" if what == "producers" else "max same address producers limit"
    if most:
        with pytest.raises(ProducerBusyError, match=f"Topic 't' reached {text}"):
            door.come("more", SHARED, address="10.0.0.1:99")
        assert len(door.producers) == most
    if what == "same_address":
        door.come("elsewhere", SHARED, address="10.0.0.2:1")
    door.come("owner", FENCING, address="10.0.0.1:100")
    assert door.names() == ["owner"], "nobody is left to be counted"


def test_who_is_let_go_is_told_and_who_waits_has_to_ask_again() -> None:
    door = Door()
    shared = [door.come(name, SHARED) for name in "ab"]
    waiting = door.come("w", WAITING)
    door.producers.close(shared[0])
    assert (door.names(), connection(shared[0]).closed, connection(shared[1]).closed) == (["b"], 1, 0)
    door.producers.close_all()
    assert (len(door.producers), door.producers.waiting) == (0, 0)
    assert (connection(shared[1]).closed, shared[1].open, connection(waiting).closed) == (1, False, 0)
    (refused,) = door.answers["w"]
    assert isinstance(refused, ServiceNotReadyError) and "Topic is temporarily unavailable" in str(refused)
    entering = door.come("x", EXCLUSIVE)
    door.producers.close_all()
    assert isinstance(door.answers["x"][0], ServiceNotReadyError)
    assert (entering.open, connection(entering).closed) == (False, 0)
    door.come("y", SHARED)
    assert door.answers["y"] == [None]


@pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
def test_a_later_life_of_the_owner_is_before_those_that_wait(mode: ProducerAccessMode) -> None:
    """It takes the place of the earlier one (rule 3.1.2)."""
    door = Door()
    earlier = door.come("p", EXCLUSIVE, session="same")
    door.epoch.durable()
    waiting = door.newcomer("w", WAITING)
    refused: list[MagnetarError | None] = []
    door.producers.admit(waiting, None, NO_LIMITS, refused.append)
    later = door.come("p", mode, session="same", epoch=1)
    door.epoch.durable()
    assert (list(door.producers), earlier.open, door.answers["p"]) == ([later], False, [None, None])
    assert len(refused) == (mode is FENCING)
    door.producers.remove(later)
    assert door.names() == ([] if mode is FENCING else ["w"])


@pytest.mark.parametrize(("mode", "had"), [(SHARED, None), (EXCLUSIVE, -1), (WAITING, -1)])
def test_an_owner_whose_later_life_is_refused_makes_room_for_those_that_wait(
    mode: ProducerAccessMode, had: int | None
) -> None:
    """Or they would wait for ever, and keep all others out."""
    door = Door()
    door.come("p", EXCLUSIVE, session="same")
    door.epoch.durable()
    answers: list[MagnetarError | None] = []
    door.producers.admit(door.newcomer("w", WAITING), None, NO_LIMITS, answers.append)
    with pytest.raises((ProducerBusyError, ProducerFencedError)):
        door.come("p", mode, had, session="same", epoch=1)
    door.epoch.durable()
    assert (door.names(), door.producers.waiting, answers) == (["w"], 0, [None])


def test_who_need_not_wait_after_all_is_answered_once() -> None:
    """The last shared producer comes again to wait for exclusive access, behind one whose epoch is over: that one is
    refused, and it is its turn at once. The answer that it has to wait would be one too many, after the other."""
    door = Door()
    door.epoch.at_once = True
    door.epoch.current = 5
    door.come("p", SHARED, session="same", id=1, epoch=0)
    door.come("late", WAITING, topic_epoch=3)
    later = door.come("p", WAITING, session="same", id=1, epoch=1)
    assert isinstance(door.answers["late"][0], ProducerFencedError)
    assert (door.answers["p"], list(door.producers)) == ([None, None], [later])


@pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING])
def test_an_epoch_that_cannot_be_written_lets_no_producer_in(mode: ProducerAccessMode) -> None:
    door = Door()
    door.epoch.refuses = ServiceNotReadyError("no disk")
    with pytest.raises(ServiceNotReadyError):
        door.come("p", mode)
    assert (list(door.producers), door.answers) == ([], {"p": []})
    door.epoch.refuses = None
    door.come("q", EXCLUSIVE)
    door.epoch.durable()
    door.producers.close_all()
    assert door.answers == {"p": [], "q": [None]}


def test_who_waits_is_refused_when_its_epoch_cannot_be_written() -> None:
    """And the one that left meanwhile has left."""
    door = Door()
    first = door.come("a", SHARED)
    door.come("b", WAITING)
    door.come("c", WAITING)
    door.epoch.refuses = ServiceNotReadyError("no disk")
    door.producers.remove(first)
    assert (door.names(), door.producers.waiting) == ([], 0)
    assert door.answers == {"a": [None], "b": [door.epoch.refuses], "c": [door.epoch.refuses]}


@pytest.mark.parametrize("mode", [EXCLUSIVE, FENCING, WAITING])
def test_an_epoch_that_leaves_no_number_for_others_is_refused(mode: ProducerAccessMode) -> None:
    door = Door()
    for absurd in (EPOCH_NAMED_MAX + 1, EPOCH_MAX, (1 << 63) - 1, (1 << 64) - 1):
        with pytest.raises(ProducerFencedError, match="No producer was ever given the topic epoch"):
            door.come("a", mode, absurd)
    door.come("b", mode)
    door.epoch.durable()
    assert (door.answers["b"], door.epoch.current) == ([None], 0)


@pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING])
def test_the_highest_epoch_that_may_be_named_leaves_numbers_for_those_who_follow(mode: ProducerAccessMode) -> None:
    """After it came one that is read as none: the topic began at 0 again, and producers from before were let in."""
    door = Door()
    log: Any = type("Log", (), {"properties": {}, "write_birth": lambda self, done: done()})()
    door.producers.epoch = LogEpoch(log)
    seen = [EPOCH_NAMED_MAX]
    door.producers.remove(door.come("a", mode, EPOCH_NAMED_MAX))
    for name in "bcd":
        producer = door.come(name, mode)
        seen.append(cast(int, producer.topic_epoch))
        door.producers.remove(producer)
    assert seen == [EPOCH_NAMED_MAX + more for more in range(4)]
    door.producers.remove(door.come("e", mode, EPOCH_NAMED_MAX + 3))  # its own, which it was given
    with pytest.raises(ProducerFencedError, match="has already moved"):
        door.come("b", mode, EPOCH_NAMED_MAX)
    with pytest.raises(ProducerFencedError, match="No producer was ever given"):
        door.come("f", mode, EPOCH_NAMED_MAX + 4)
