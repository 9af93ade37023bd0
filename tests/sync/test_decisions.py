"""Decisions of the extender as rows: counted, deduplicated, read once; holds as reservations."""

from __future__ import annotations

import msgspec
import pytest
from django.db import DatabaseError, transaction

from hami_web.history.decisions import KEPT_PER_POD
from hami_web.history.models import Decision, Explanation, Feed
from hami_web.history.pruning import prune
from hami_web.reservations.mirror import mirror_pods, release_pods
from hami_web.reservations.models import MigReservation, Phase
from hami_web.reservations.usage import usage_between
from hami_web.scheduling.decision_log import DecisionLog, DecisionPage, Outcome
from hami_web.scheduling.events import Regarding
from hami_web.scheduling.explained import Explanation as Explained
from hami_web.scheduling.holds import Hold
from hami_web.sync.decisions import DecisionReader, write_page
from tests.mirror.observations import GPUS, IDENTITY, moment, placed, pod

pytestmark = pytest.mark.django_db
WHY = Explained((), 1, {"CardMigTopologyInfeasible": 1}, (), None, None, nearest_known=True)


class Time:
    """Seconds of the tests' clock, for the extender's log."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return moment(self.seconds).timestamp()


class World:
    """The extender's log, and the worker that reads it as it came over HTTP."""

    def __init__(self) -> None:
        self.time = Time()
        self.decoder = msgspec.json.Decoder(DecisionPage)
        self.restart()

    def restart(self) -> None:
        self.log = DecisionLog(clock=self.time)

    def since(self, cursor: str) -> DecisionPage:
        return self.decoder.decode(msgspec.json.encode(self.log.since(cursor)))

    def refuse(self, seconds: float, name: str, message: str = "full") -> None:
        self.time.seconds = seconds
        self.log.add(Outcome.REFUSED, about(name), message)

    def hold(self, seconds: float, name: str, *devices) -> None:
        self.time.seconds = seconds
        note = f"find fit node(n1), holds {devices}"
        held = Hold(name, "team", name, "n1", devices, 1, (), 0.0)
        self.log.add_hold(about(name), note, held)

    def read(self, seconds: float = 0.0) -> None:
        cursor = Feed.objects.filter(name="decisions").values_list("cursor", flat=True).first()
        write_page(self.since(cursor or ""), now=moment(seconds))


def about(name: str) -> Regarding:
    return Regarding("team", name, name)


@pytest.fixture
def world() -> World:
    return World()


def decided() -> list[tuple[str, str, int]]:
    return list(Decision.objects.order_by("first_at").values_list("pod", "outcome", "times"))


def rows() -> list[tuple[str, str]]:
    return list(MigReservation.objects.order_by("id").values_list("pod", "phase"))


def see(seconds: float, *pods, complete: bool = False) -> None:
    mirror_pods(pods, seen_at=moment(seconds), now=moment(seconds), complete=complete)


def test_the_same_reasons_are_one_row_that_is_counted(world: World) -> None:
    for seconds in range(3):
        world.refuse(seconds, "a")
        world.read()
    world.refuse(5, "a", "no placement")
    world.read()
    assert decided() == [("a", "refused", 3), ("a", "refused", 1)]
    row = Decision.objects.get(message="full")
    assert (row.first_at, row.last_at) == (moment(0), moment(2))


def test_what_was_read_before_counts_once_however_often_it_is_read(world: World) -> None:
    world.refuse(0, "a")
    world.refuse(1, "a")
    for _ in range(3):
        write_page(world.since(""), now=moment(2))
    assert decided() == [("a", "refused", 2)]


def test_another_run_of_the_extender_is_counted_on_top(world: World) -> None:
    world.refuse(0, "a")
    world.read()
    world.restart()
    world.refuse(10, "a")
    world.read()
    world.read()
    assert decided() == [("a", "refused", 2)]
    assert Decision.objects.get().last_at == moment(10)


def read_and_lose_the_connection(world: World) -> None:
    with transaction.atomic():
        world.read()
        raise DatabaseError("connection lost")


def test_a_page_that_cannot_be_written_is_read_again(world: World) -> None:
    world.refuse(0, "a")
    with pytest.raises(DatabaseError):
        read_and_lose_the_connection(world)
    assert decided() == []
    world.read()
    assert decided() == [("a", "refused", 1)]


def test_equal_explanations_are_one_row_and_go_with_the_last_decision(world: World) -> None:
    body = msgspec.json.encode(WHY)
    page = world.since("")
    for name in ("a", "b"):
        world.refuse(0, name)
    page = world.since("")
    told = [msgspec.structs.replace(d, explanation=msgspec.Raw(body)) for d in page.decisions]
    write_page(msgspec.structs.replace(page, decisions=tuple(told)), now=moment(1))
    assert Explanation.objects.get().body["reasons"] == {"CardMigTopologyInfeasible": 1}
    assert Decision.objects.filter(explanation=Explanation.objects.get()).count() == 2
    prune(moment(100))
    assert (Decision.objects.count(), Explanation.objects.count()) == (0, 0)


def test_a_pod_keeps_its_latest_reasons_only(world: World) -> None:
    for number in range(KEPT_PER_POD + 5):
        world.refuse(number, "a", f"reason {number}")
    world.read()
    assert Decision.objects.count() == KEPT_PER_POD
    assert Decision.objects.first().message == f"reason {KEPT_PER_POD + 4}"


def test_a_hold_becomes_the_reservation_with_the_time_of_each_step(world: World) -> None:
    world.hold(10.5, "a", placed(0))
    world.read()
    assert rows() == [("a", "held")]
    bound = {"reserved_at": moment(12), "owner": "Job/train"}
    see(12.5, pod("a", placed(0), **bound))
    see(14, pod("a", placed(0, identity=IDENTITY), **bound))
    started = {"started_at": {0: moment(20)}}
    see(21, pod("a", placed(0, identity=IDENTITY), **bound, **started))
    see(30, pod("a", placed(0, identity=IDENTITY), deleting=True, **bound, **started))
    release_pods(["a"], seen_at=moment(31), now=moment(31))
    row = MigReservation.objects.get()
    assert (row.held_at, row.phase, row.owner) == (moment(10.5), "released", "Job/train")
    assert row.steps_s == {
        "hold_s": 1.5,
        "realize_s": 2.0,
        "start_s": 6.0,
        "terminate_s": 1.0,
        "life_s": 20.5,
    }


def test_a_hold_that_is_read_after_its_pod_only_tells_when_it_began(world: World) -> None:
    world.hold(1, "a", placed(0))
    see(5, pod("a", placed(0), reserved_at=moment(3)))
    world.read()
    world.read()
    row = MigReservation.objects.get()
    assert (row.phase, row.held_at, row.reserved_at) == ("reserved", moment(1), moment(3))


def test_the_whole_second_of_a_binding_does_not_come_before_its_hold(world: World) -> None:
    world.hold(3.4, "a", placed(0))
    see(5, pod("a", placed(0), reserved_at=moment(3)))
    world.read()
    row = MigReservation.objects.get()
    assert (row.held_at, row.reserved_at) == (moment(3.4), moment(3.4))


def test_a_hold_of_other_devices_ends_the_one_before(world: World) -> None:
    world.hold(1, "a", placed(0))
    world.hold(2, "a", placed(1))
    world.read()
    assert rows() == [("a", "lapsed"), ("a", "held")]
    see(3, pod("a", placed(2)))
    assert rows() == [("a", "lapsed"), ("a", "lapsed"), ("a", "reserved")]


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.BIND_FAILED, Outcome.INVALID])
def test_a_hold_ends_with_a_later_decision(world: World, outcome: Outcome) -> None:
    world.hold(1, "a", placed(0))
    world.read()
    world.time.seconds = 4
    world.log.add(outcome, about("a"), "no")
    world.read()
    row = MigReservation.objects.get()
    assert (row.phase, row.released_at) == (Phase.LAPSED, moment(4))


def test_holds_end_with_their_pod_with_their_extender_and_with_time(world: World) -> None:
    for name, place in (("gone", 0), ("restarted", 1)):
        world.hold(1, name, placed(place))
    world.read()
    release_pods(["gone"], seen_at=moment(2), now=moment(2))
    assert rows() == [("gone", "lapsed"), ("restarted", "held")]
    world.restart()
    world.hold(50, "late", placed(2))
    world.read(51)
    assert rows()[1:] == [("restarted", "lapsed"), ("late", "held")]
    DecisionReader(world, hold_s=60).turn()
    assert rows()[2:] == [("late", "lapsed")]


def test_a_complete_list_says_nothing_of_holds_and_they_claim_nothing(world: World) -> None:
    world.hold(1, "a", placed(0))
    world.read()
    see(2, pod("b", placed(0)), complete=True)
    assert rows() == [("a", "held"), ("b", "reserved")]


def test_a_hold_that_was_never_bound_used_nothing(world: World) -> None:
    world.hold(1, "a", placed(0, gpu_uuid=GPUS[0]))
    world.read()
    assert usage_between(moment(0), moment(100)) == []
