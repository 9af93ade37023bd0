"""From what the watches see to rows."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hami_web.cluster.views import ObjectMeta, PodStatus
from hami_web.core import annotations as keys
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.reservation import decode_allocations
from hami_web.core.signature import KeyFile
from hami_web.history.models import Feed, Refusal
from hami_web.history.tenure import FeedTenure
from hami_web.inventory.models import LIVE, Gpu, Node
from hami_web.reservations.models import MigReservation, Phase, ReservationDoubt
from hami_web.scheduling.state import ClusterState
from hami_web.sync.changes import Batch, NodeChanges, PodChanges
from hami_web.sync.writer import write_batch
from tests.mirror.observations import moment

from .views import allocations, bound, node, waiting


class Watches:
    """The feed's sinks without its threads."""

    def __init__(self, keys: KeyFile | None = None) -> None:
        state = ClusterState(SchedulingPolicy())
        self.pods, self.nodes = PodChanges(state, keys), NodeChanges(state)

    def take(self) -> Batch:
        pods, ended, refusals = self.pods.take()
        nodes, lost = self.nodes.take()
        return Batch(tuple(nodes), tuple(lost), tuple(pods), tuple(ended), tuple(refusals))

    def write(self, seconds: float) -> None:
        tenure = FeedTenure("test")
        tenure.take()
        write_batch(self.take(), tenure, seen_at=moment(seconds))


@pytest.fixture
def watches() -> Watches:
    watches = Watches()
    watches.nodes.replace([node()], listed_at=0.0)
    return watches


@pytest.mark.django_db
def test_a_list_and_what_follows_become_rows(watches: Watches) -> None:
    watches.pods.replace([bound("a")], listed_at=0.0)
    watches.write(1)
    row = MigReservation.objects.get()
    assert (row.reserved_at, row.memory_mib) == (datetime(2026, 1, 1, tzinfo=UTC), 4864)
    watches.pods.remove(ObjectMeta(name="a", namespace="team", uid="a"))
    watches.write(2)
    assert MigReservation.objects.get().phase == Phase.RELEASED
    assert Feed.objects.get().caught_up_at == moment(2)


def test_nothing_new_is_an_empty_batch(watches: Watches) -> None:
    watches.pods.put(bound("a"))
    assert not watches.take().is_empty
    watches.pods.put(bound("a", labels={"irrelevant": "change"}))
    watches.nodes.put(node())
    assert watches.take().is_empty


def test_what_could_not_be_written_is_in_the_next_batch(watches: Watches) -> None:
    watches.pods.put(bound("a"))
    lost = watches.take()
    watches.pods.give_back(lost)
    watches.nodes.give_back(lost)
    assert watches.take() == lost


def test_the_end_of_a_node_that_could_not_be_written_is_in_the_next_batch(watches: Watches) -> None:
    watches.take()
    watches.nodes.remove(ObjectMeta(name="n1"))
    lost = watches.take()
    watches.nodes.give_back(lost)
    assert watches.take().lost_nodes == lost.lost_nodes == ("n1",)


@pytest.mark.django_db
def test_a_finished_pod_is_over_and_a_deleted_node_is_gone(watches: Watches) -> None:
    watches.pods.put(bound("a"))
    watches.write(1)
    done = bound("a")
    done.status = PodStatus(phase="Succeeded")
    watches.pods.put(done)
    watches.nodes.remove(ObjectMeta(name="n1"))
    watches.write(2)
    assert MigReservation.objects.get().released_at == moment(2)
    assert Node.objects.get().gone_at == moment(2)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("key", "text", "stays"),
    [
        (keys.POD_DO_NOT_EVICT, "true", True),
        (keys.POD_DO_NOT_EVICT, "false", False),
        (keys.POD_DO_NOT_DISRUPT, "true", True),
        (keys.POD_SAFE_TO_EVICT, "false", True),
        (keys.POD_SAFE_TO_EVICT, "true", False),
    ],
)
def test_a_row_says_how_important_its_pod_is_and_whether_it_may_move(
    watches: Watches, key, text, stays
) -> None:
    seen = bound("a")
    seen.spec.priority = 1000
    seen.metadata.annotations[key] = text
    watches.pods.put(seen)
    watches.write(1)
    row = MigReservation.objects.get()
    assert (row.priority, row.do_not_evict) == (1000, stays)


@pytest.mark.django_db
def test_a_register_that_cannot_be_read_keeps_the_gpus_and_says_so(watches: Watches) -> None:
    watches.write(1)
    watches.nodes.put(node(register="{"))
    watches.write(2)
    assert Gpu.objects.filter(LIVE).count() == 1
    assert "JSON" in Node.objects.get().doubts[0]


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["[{}]", "no JSON", "[1]"])
def test_a_pod_whose_annotation_became_unreadable_keeps_its_row(watches: Watches, text) -> None:
    watches.pods.put(bound("a"))
    watches.write(1)
    watches.pods.put(bound("a", text=text))
    watches.write(2)
    assert MigReservation.objects.get().released_at is None


@pytest.mark.django_db
def test_what_the_scheduler_says_again_is_no_new_row(watches: Watches) -> None:
    for second, message in enumerate(["0/1 full", "0/1 full", "0/1 stale", "0/1 full"]):
        watches.pods.put(waiting("a", message))
        watches.write(second)
    found = Refusal.objects.order_by("first_at").values_list("message", "times", "last_at")
    assert list(found) == [("0/1 full", 2, moment(3)), ("0/1 stale", 1, moment(2))]


@pytest.mark.django_db
def test_a_label_of_mig_manager_is_seen_when_it_comes_and_when_it_goes(watches: Watches) -> None:
    for second, labels in enumerate([{"nvidia.com/mig.config": "all-1g.5gb"}, {}]):
        watches.nodes.put(node(labels=labels))
        watches.write(second)
        assert ("MIG Manager" in Node.objects.get().other_owner) == bool(labels)


@pytest.mark.django_db
def test_a_signature_is_checked_where_the_worker_has_the_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"k1 {b64encode(bytes(32)).decode()}\n")
    key_file = KeyFile(path)
    watches = Watches(key_file)
    watches.nodes.replace([node()], listed_at=0.0)
    good = key_file.ring().sign("good", "n1", decode_allocations(allocations(0)))
    watches.pods.put(bound("good", 0, notes={keys.POD_MIG_SIGNATURE: good}))
    watches.pods.put(bound("moved", 1, notes={keys.POD_MIG_SIGNATURE: good}))
    watches.pods.put(bound("bare", 2))
    watches.write(1)
    found = dict(ReservationDoubt.objects.values_list("pod", "text"))
    assert found.keys() == {"moved", "bare"}
    assert "missing" in found["bare"]
    assert MigReservation.objects.count() == 3


@pytest.mark.django_db
def test_a_doubt_ends_when_the_annotation_can_be_read_again(watches: Watches) -> None:
    for second, text in enumerate(["no JSON", "[1]", allocations()]):
        watches.pods.put(bound("a", text=text))
        watches.write(second)
    doubt = ReservationDoubt.objects.get()
    assert (doubt.kind, doubt.began_at, doubt.ended_at) == ("malformed", moment(0), moment(2))
