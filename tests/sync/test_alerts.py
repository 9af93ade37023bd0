"""What raises an alert, who knows of it, and when it is over."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from hami_web.core.blocked import FOREIGN, BlockedInterval, reclaiming
from hami_web.core.placement import Placement
from hami_web.history.alerts import AlertNotOpen, acknowledge, refresh_alerts
from hami_web.history.conditions import AlertCode
from hami_web.history.models import Alert, AlertState
from hami_web.inventory.mirror import mirror_nodes
from hami_web.reservations.mirror import mirror_pods, release_pods
from tests.mirror.observations import GPUS, IDENTITY, gpu, moment, node, placed, pod

pytestmark = pytest.mark.django_db
MINUTE = 60


def see(seconds: float, *pods, nodes=None) -> None:
    mirror_nodes(nodes or [node()], seen_at=moment(seconds), now=moment(seconds), complete=True)
    mirror_pods(pods, seen_at=moment(seconds), now=moment(seconds), complete=True)


def refresh(seconds: float) -> dict[str, str]:
    """Codes of the alerts that are not over, with their subjects."""
    refresh_alerts(moment(seconds))
    return dict(Alert.objects.filter(resolved_at=None).values_list("code", "subject"))


def agent(seconds: float, *, serves: bool) -> None:
    see(seconds, nodes=[node(closed="" if serves else "NodeCapabilityStale")])


def only() -> Alert:
    return Alert.objects.get()


def test_an_unrealized_reservation_and_a_conflict_raise_one_alert_each() -> None:
    see(0, pod("late", placed(0)), pod("x", placed(2, 2)), pod("y", placed(3, 1)))
    for seconds in (121, 122):
        refresh(seconds)
    raised = sorted(Alert.objects.values_list("code", flat=True))
    assert raised == ["ReservationConflict", "ReservationNotRealized"]


def test_stuck_reclaims_and_silent_agents_raise_alerts() -> None:
    seen = node("n1", closed="NodeCapabilityStale")
    see(0, pod("a", placed(0, identity=IDENTITY), deleting=True), nodes=[seen])
    assert refresh(601) == {"ReclaimStuck": "a 0.0", "AgentStale": "n1"}


def test_a_foreign_instance_is_told_at_once_and_an_orphan_when_its_destroy_failed_for_a_while() -> (
    None
):
    blocked = (
        BlockedInterval(GPUS[0], Placement(4, 2), FOREIGN),
        BlockedInterval(GPUS[0], Placement(0, 1), reclaiming("In use by another client")),
    )
    see(0, nodes=[node("n1", (gpu(blocked=blocked),))])
    foreign = {"ForeignInstance": f"{GPUS[0]} 4:2"}
    assert refresh(1) == foreign
    assert refresh(121) == foreign | {"OrphanInstance": f"{GPUS[0]} 0:1"}


def test_another_owner_of_managed_gpus_is_told_with_its_sign() -> None:
    sign = "label nvidia.com/mig.config=all-1g.5gb (MIG Manager)"
    see(0, nodes=[node("n1", other_owner=sign), node("n2", (), other_owner=sign)])
    assert refresh(1) == {"OtherMigOwner": "n1"}
    assert sign in only().text
    assert "nothing is placed" not in only().text
    closed = node("n1", closed="NodeOtherMigOwner", doubts=("published as migtemplate",))
    see(2, nodes=[closed])
    refresh(3)
    assert "migtemplate; nothing is placed, made or destroyed there" in only().text


def test_reservations_that_cannot_be_read_or_are_not_signed_are_told_with_their_namespace() -> None:
    see(0, pod("a", doubt="not JSON"), pod("b", placed(1), unsigned="missing"))
    assert refresh(1) == {"ReservationMalformed": "a", "ReservationUnsigned": "b"}
    assert set(Alert.objects.values_list("namespace", flat=True)) == {"team"}
    release_pods(["a", "b"], seen_at=moment(2), now=moment(2))
    assert refresh(500) == {}


def test_an_alert_is_over_only_when_its_condition_stayed_away() -> None:
    agent(0, serves=False)
    refresh(61)
    agent(90, serves=True)
    refresh(100)
    assert only().state == AlertState.OPEN
    refresh(61 + 2 * MINUTE)
    assert (only().state, only().resolved_at) == (AlertState.RESOLVED, moment(61 + 2 * MINUTE))


def test_an_alert_is_over_after_two_comparisons_where_they_are_frequent(settings) -> None:
    settings.RECONCILE_SECONDS = 3
    agent(0, serves=False)
    refresh(61)
    agent(62, serves=True)
    states = []
    for after in (5, 6):
        refresh(61 + after)
        states.append(only().state)
    assert states == [AlertState.OPEN, AlertState.RESOLVED]


def test_a_condition_that_comes_and_goes_is_one_alert_that_stays_acknowledged() -> None:
    agent(0, serves=False)
    refresh(61)
    acknowledge(only().pk, who="ann", note="fan is being changed", now=moment(62))
    for turn in range(1, 6):
        agent(turn * 100 + 20, serves=True)
        refresh(turn * 100 + 30)
        agent(turn * 100 + 35, serves=False)
        refresh(turn * 100 + 99)
    row = only()
    assert (row.state, row.acknowledged_by, row.reopened) == (AlertState.ACKNOWLEDGED, "ann", 0)


def test_a_condition_that_returns_soon_opens_the_same_alert_again() -> None:
    agent(0, serves=False)
    refresh(61)
    acknowledge(only().pk, who="ann", now=moment(62))
    agent(70, serves=True)
    refresh(300)
    agent(400, serves=False)
    refresh(500)
    row = only()
    assert (row.state, row.reopened, row.resolved_at) == (AlertState.OPEN, 1, None)
    assert (row.acknowledged_by, row.acknowledged_at, row.raised_at) == ("", None, moment(61))


def test_a_condition_that_returns_much_later_is_another_alert() -> None:
    agent(0, serves=False)
    refresh(61)
    agent(70, serves=True)
    refresh(300)
    agent(9000, serves=False)
    refresh(9100)
    assert list(Alert.objects.values_list("state", flat=True)) == ["open", "resolved"]


def test_who_acknowledges_is_kept_and_may_change_the_note() -> None:
    agent(0, serves=False)
    refresh(61)
    acknowledge(only().pk, who="ann", note="looking", now=moment(62))
    row = acknowledge(only().pk, who="ann", note="found", now=moment(63))
    assert (row.acknowledged_by, row.note, row.acknowledged_at) == ("ann", "found", moment(63))


def test_a_second_person_and_a_resolved_alert_are_refused() -> None:
    agent(0, serves=False)
    refresh(61)
    acknowledge(only().pk, who="ann", now=moment(62))
    with pytest.raises(AlertNotOpen, match="is acknowledged"):
        acknowledge(only().pk, who="bob")
    agent(70, serves=True)
    refresh(300)
    with pytest.raises(AlertNotOpen, match="is resolved"):
        acknowledge(only().pk, who="ann")
    with pytest.raises(Alert.DoesNotExist):
        acknowledge(0, who="ann")


@pytest.mark.parametrize(
    "facts",
    [{"state": "resolved"}, {"state": "acknowledged"}, {"acknowledged_by": "ann"},
     {"resolved_at": moment(9)}],
)  # fmt: skip
def test_no_alert_contradicts_itself(facts) -> None:
    texts = {"code": AlertCode.AGENT_STALE, "subject": "n1", "text": "x"}
    with pytest.raises(IntegrityError), transaction.atomic():
        Alert.objects.create(**texts, raised_at=moment(0), seen_at=moment(0), **facts)
