"""When a node's lock is taken, waited for, taken over and released."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from hami_web.cluster.errors import Conflict, NotFound, OutcomeUnclear, ServerFailed
from hami_web.cluster.views import NodeView, ObjectMeta, PodSpec, PodStatus, PodView
from hami_web.core.reservation import RuntimeIdentity, encode_allocations
from hami_web.scheduling.errors import LockBusy, LockUnreadable
from hami_web.scheduling.nodelock import LockChanges, NodeLocks
from tests.builders import reservation

NOW = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
LOCK = "hami.io/mutex.lock"


def pod(name, *, node="n1", phase="Pending", age_s=60, uid="", **annotations):
    keys = {key.replace("_", "-"): value for key, value in annotations.items()}
    created = (NOW - timedelta(seconds=age_s)).isoformat()
    meta = ObjectMeta(name, "team-a", uid or name, "1", created)
    meta.annotations = {f"hami.io/{key}": value for key, value in keys.items()}
    return PodView(meta, PodSpec(node_name=node), PodStatus(phase))


class Cluster:
    """One node with resource versions, and Pods; ``fail`` errors meet the next patches."""

    def __init__(self, lock="", pods=()):
        self.annotations = {LOCK: lock} if lock else {}
        self.version = 1
        self.pods = {(p.metadata.namespace, p.metadata.name): p for p in pods}
        self.fail = []
        self.after_read = []
        self.node_reads = 0

    def view(self, name):
        return NodeView(
            ObjectMeta(
                name=name, resource_version=str(self.version), annotations=dict(self.annotations)
            )
        )

    def get_node(self, name):
        self.node_reads += 1
        view = self.view(name)
        if self.after_read:
            self.after_read.pop(0)()
        return view

    def get_pod(self, namespace, name):
        found = self.pods.get((namespace, name))
        if found is None:
            raise NotFound(name, 404)
        if isinstance(found, Exception):
            raise found
        return found

    def annotate_node(self, node, annotations):
        error = self.fail.pop(0) if self.fail else None
        if error is not None and not error.outcome_unclear:
            raise error
        if node.metadata.resource_version != str(self.version):
            raise Conflict("older version", 409)
        self.set(annotations[LOCK])
        if error is not None:
            raise error
        return self.view(node.name)

    def set(self, text):
        self.version += 1
        self.annotations = {LOCK: text} if text else {}

    @property
    def lock(self):
        return self.annotations.get(LOCK)


def locks(cluster, changes=None):
    return NodeLocks(cluster, changes or LockChanges(), now=lambda: NOW)


def acquire(cluster, wait_s=0.0):
    locks(cluster).acquire("n1", pod("mine", node=""), deadline=time.monotonic() + wait_s)


def held_since(seconds, name="other"):
    moment = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{moment},team-a,{name}"


MINE = "2026-09-21T14:13:20Z,team-a,mine"
REALIZED = encode_allocations([reservation(identity=RuntimeIdentity("MIG-1", 1, 0))])


def test_a_free_lock_is_taken_in_hamis_format():
    cluster = Cluster()
    acquire(cluster)
    assert cluster.lock == MINE


def test_the_same_pod_takes_it_again():
    cluster = Cluster(held_since(10, "mine"))
    acquire(cluster)
    assert cluster.lock == MINE


@pytest.mark.parametrize(
    ("age_s", "holder"),
    [
        (1, []),
        (1, [pod("other", phase="Failed")]),
        (1, [pod("other", phase="Succeeded")]),
        (1, [pod("other", bind_phase="success")]),
        (1, [pod("other", bind_phase="failed")]),
        (1, [pod("other", node="n2", bind_phase="allocating")]),
        (10, [pod("other", node="", age_s=5)]),
        (50, [pod("other", node="")]),
        (301, [pod("other", bind_phase="allocating", vgpu_mig_allocations=REALIZED)]),
    ],
    ids=[
        "gone",
        "failed",
        "succeeded",
        "realized",
        "given-up",
        "elsewhere",
        "recreated",
        "unbound",
        "expired",
    ],
)
def test_a_lock_that_outlived_its_use_is_taken_over(age_s, holder):
    cluster = Cluster(held_since(age_s), holder)
    acquire(cluster)
    assert cluster.lock == MINE


@pytest.mark.parametrize(
    ("age_s", "holder"),
    [
        (1, pod("other", bind_phase="allocating")),
        (3600, pod("other", bind_phase="allocating")),
        (3600, pod("other", bind_phase="allocating", vgpu_mig_allocations="garbage")),
        (299, pod("other", bind_phase="allocating", vgpu_mig_allocations=REALIZED)),
        (10, pod("other", node="")),
    ],
    ids=["fresh", "expired-unrealized", "expired-unreadable", "realized-unfinished", "being-bound"],
)
def test_a_lock_in_use_is_never_taken_over(age_s, holder):
    cluster = Cluster(held_since(age_s), [holder])
    with pytest.raises(LockBusy, match="locked by team-a/other since"):
        acquire(cluster)
    assert cluster.lock == held_since(age_s)


def test_doubt_about_the_holder_keeps_the_lock():
    cluster = Cluster(held_since(3600))
    cluster.pods["team-a", "other"] = ServerFailed("down", 500)
    with pytest.raises(LockBusy, match="not known: down"):
        acquire(cluster)


def test_an_unreadable_lock_asks_for_a_person():
    cluster = Cluster("yesterday")
    with pytest.raises(LockUnreadable, match=r"hami\.io/mutex\.lock: 'yesterday'.*remove"):
        acquire(cluster)
    assert cluster.lock == "yesterday"


def test_hamis_legacy_lock_is_taken_over_only_after_its_time():
    old = (NOW - timedelta(minutes=6)).isoformat()
    acquire(Cluster(old))
    with pytest.raises(LockBusy):
        acquire(Cluster((NOW - timedelta(minutes=4)).isoformat()))


def test_another_writer_in_between_is_not_overwritten():
    cluster = Cluster(pods=[pod("other", bind_phase="allocating")])
    cluster.after_read.append(lambda: cluster.set(held_since(0)))
    with pytest.raises(LockBusy, match="team-a/other"):
        acquire(cluster, wait_s=0.2)
    assert cluster.lock == held_since(0)


def test_an_unclear_write_is_settled_by_reading():
    cluster = Cluster()
    cluster.fail.append(OutcomeUnclear("lost"))
    acquire(cluster, wait_s=1)
    assert cluster.lock == MINE


def test_a_waiter_goes_on_as_soon_as_the_lock_is_removed():
    cluster = Cluster(held_since(1), [pod("other", bind_phase="allocating")])
    changes = LockChanges()
    changes.observe("n1", held_since(1))

    def remove():
        cluster.set("")
        changes.observe("n1", "")

    timer = threading.Timer(0.05, remove)
    timer.start()
    began = time.monotonic()
    locks(cluster, changes).acquire("n1", pod("mine", node=""), deadline=began + 5)
    assert time.monotonic() - began < 0.5
    assert cluster.lock == MINE
    timer.join()


def test_a_node_that_the_watch_shows_unlocked_is_not_read():
    cluster = Cluster()
    changes = LockChanges()
    changes.observe("n1", "", str(cluster.version))
    locks(cluster, changes).acquire("n1", pod("mine", node=""), deadline=time.monotonic())
    assert cluster.lock == MINE
    assert cluster.node_reads == 0


def test_a_node_that_changed_since_the_watch_showed_it_is_read_before_the_next_try():
    cluster = Cluster()
    changes = LockChanges()
    changes.observe("n1", "", str(cluster.version))
    cluster.set(held_since(1))
    cluster.pods["team-a", "other"] = pod("other", bind_phase="allocating")
    with pytest.raises(LockBusy, match="locked by team-a/other"):
        locks(cluster, changes).acquire("n1", pod("mine", node=""), deadline=time.monotonic() + 0.1)
    assert cluster.lock == held_since(1)


def test_the_watch_shows_no_unlocked_node_once_it_is_locked_or_gone():
    changes = LockChanges()
    changes.observe("n1", "", "7")
    assert changes.unlocked("n1") == "7"
    changes.observe("n1", held_since(1), "8")
    assert changes.unlocked("n1") == ""
    changes.observe("n1", "", "9")
    changes.forget("n1")
    assert changes.unlocked("n1") == ""


def test_only_the_holders_lock_is_released():
    cluster = Cluster(MINE)
    locks(cluster).release("n1", "team-a", "other")
    assert cluster.lock == MINE
    cluster.fail = [Conflict("again", 409)]
    locks(cluster).release("n1", "team-a", "mine")
    assert cluster.lock is None


def test_a_lock_is_never_dated_before_its_pod():
    cluster = Cluster()
    younger = pod("mine", node="", age_s=-30)
    locks(cluster).acquire("n1", younger, deadline=time.monotonic())
    assert cluster.lock == "2026-09-21T14:13:50Z,team-a,mine"


def swept(cluster):
    changes = LockChanges()
    changes.observe("n1", cluster.lock or "")
    locks(cluster, changes).sweep()
    return cluster.lock is None


def lock_of(name, age_s):
    return f"{(NOW - timedelta(seconds=age_s)).strftime('%Y-%m-%dT%H:%M:%SZ')},team-a,{name}"


def test_a_lock_whose_pod_is_gone_is_swept():
    assert swept(Cluster(lock_of("gone", 11)))


def test_a_lock_is_left_to_binds_for_a_while():
    assert not swept(Cluster(lock_of("gone", 9)))


@pytest.mark.parametrize(
    ("holder", "age_s", "goes"),
    [
        (pod("job", node=""), 40, False),
        (pod("job", node=""), 46, True),
        (pod("job", bind_phase="allocating"), 7200, False),
        (pod("job", bind_phase="success"), 11, True),
        (pod("job", phase="Failed"), 11, True),
        (pod("job", node="n2"), 11, True),
        (ServerFailed("down", 500), 7200, False),
    ],
)
def test_a_lock_is_swept_only_when_its_holder_needs_it_no_more(holder, age_s, goes):
    cluster = Cluster(lock_of("job", age_s))
    cluster.pods["team-a", "job"] = holder
    if not isinstance(holder, Exception):
        holder.metadata.creation_timestamp = (NOW - timedelta(seconds=age_s + 1)).isoformat()
    assert swept(cluster) is goes


@pytest.mark.parametrize("text", ["garbage", "a,b", "2026-09-21T14:13:20Z,a,b,c"])
def test_a_lock_that_cannot_be_read_is_left_to_a_person(text):
    assert not swept(Cluster(text))


def test_a_lock_that_changed_hands_is_not_swept():
    cluster = Cluster(lock_of("gone", 11))
    changes = LockChanges()
    changes.observe("n1", cluster.lock)
    cluster.set(lock_of("next", 0))
    locks(cluster, changes).sweep()
    assert cluster.lock == lock_of("next", 0)
