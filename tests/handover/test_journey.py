"""Nodes are led over and back on a simulated cluster, with every look killed at every write."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hami_web.handover import store
from hami_web.handover.lifecycle import TrialState
from hami_web.handover.models import EventKind, NodeHandover, Outcome
from hami_web.handover.obstacles import decode_obstacles
from hami_web.handover.regressions import refresh_regressions
from hami_web.handover.steps import FORWARD, Direction, Step
from hami_web.history.models import Alert
from tests.migration.clusters import legacy_pod, owned

from .looking import look_interrupted, look_once
from .moving import PROFILES, MovingCluster, moving_cluster, wait_for

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.timeout(400)]
ADMIN = "ada"


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hami-move-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def start(
    cluster: MovingCluster, node: str, direction: Direction = Direction.FORWARD
) -> NodeHandover:
    uid = cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
    beginning = store.Beginning(node, uid, direction, ADMIN, cordoned=cluster.is_cordoned(node))
    return store.begin(beginning, datetime.now(UTC))


def told(row: NodeHandover) -> str:
    """Where it is stuck, for whoever reads a failure."""
    lines = [f"{row.node} at {row.step}", *map(str, decode_obstacles(row.obstacles))]
    lines += [f"{test} {test.error}" for test in row.tests.all()]
    return "\n".join([*lines, *(f"{event} {event.text}" for event in row.events.all())])


class Admin:
    """Approves what waits for it, and does what the page says only people do."""

    def __init__(self, cluster: MovingCluster) -> None:
        self.cluster = cluster
        self.kills = 0

    def lead(self, row: NodeHandover, last: Step | None = None, *, kill: bool) -> NodeHandover:
        """Until it is over, or at ``last``; with ``kill`` each look is killed at each write."""

        def goes_on() -> bool:
            row.refresh_from_db()
            if not row.is_open or row.step == last:
                return True
            if row.approved_at is None and row.would_do:
                store.approve(store.Asked(row.pk, row.step, ADMIN), datetime.now(UTC))
            if row.step == Step.SCHEDULER and row.obstacles:
                self.cluster.uninstall_scheduler()
            if kill:
                self.kills += look_interrupted(self.cluster.kubeconfig, self.check)
            else:
                look_once(self.cluster.kubeconfig)
            self.cluster.settle()
            self.check()
            return False

        try:
            wait_for(f"{row.node} is led on", goes_on, 180)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{told(row)}") from error
        return row

    def check(self) -> None:
        """What must hold at every moment, whoever was killed."""
        for name in self.cluster.names:
            assert len(self.cluster.owners(name)) < 2, self.cluster.owners(name)
        for row in NodeHandover.objects.filter(outcome=Outcome.OPEN):
            if row.step in (Step.DRAIN, Step.HAND_OVER, Step.PUBLISH, Step.TEST):
                assert self.cluster.is_cordoned(row.node), row.step


def test_four_nodes_are_led_over_and_one_of_them_back(folder: Path) -> None:
    names = ("gpu-1", "gpu-2", "gpu-3", "gpu-4")
    with moving_cluster(folder, *names) as cluster:
        cluster.install_hami()
        cluster.install_operator("gpu-4")
        before = {name: cluster.labels(name) for name in names}
        for name in names:
            cluster.create_pod(legacy_pod(f"train-{name}", on=name, owner=owned("Job", "train")))
        cluster.settle()
        admin = Admin(cluster)
        for name in names:
            row = admin.lead(start(cluster, name), kill=name in ("gpu-1", "gpu-4"))
            assert row.outcome == Outcome.DONE
            assert_led_over(cluster, row)
        assert admin.kills > 60
        assert not [pod for pod in cluster.listed("Pod") if "train" in pod["metadata"]["name"]]

        returns_and_is_told_at_once(cluster, admin)

        back = admin.lead(start(cluster, "gpu-1", Direction.BACK), kill=True)
        assert back.outcome == Outcome.ROLLED_BACK
        assert cluster.owners("gpu-1") == {"hami"}
        assert cluster.labels("gpu-1") == before["gpu-1"]
        assert not cluster.is_cordoned("gpu-1")


def assert_led_over(cluster: MovingCluster, row: NodeHandover) -> None:
    tests = list(row.tests.all())
    assert {(test.profile, test.state) for test in tests} == {
        (profile, TrialState.PASSED) for profile in PROFILES
    }
    reached = row.events.filter(kind=EventKind.REACHED).values_list("step", flat=True)
    assert tuple(reached) == FORWARD[1:]
    assert not cluster.is_cordoned(row.node)
    assert cluster.owners(row.node) == {"agent"}
    assert cluster.nodes[row.node].instances() == ()


def returns_and_is_told_at_once(cluster: MovingCluster, admin: Admin) -> None:
    """Another take-over of gpu-3 falls back, and says so, when HAMi's plugin is let in again."""
    row = admin.lead(start(cluster, "gpu-3"), last=Step.TEST, kill=False)
    cluster.label("gpu-3", gpu="on")
    look_once(cluster.kubeconfig)
    refresh_regressions(datetime.now(UTC))
    row.refresh_from_db()
    assert (row.step, row.regressed_from) == (Step.HAND_OVER, Step.TEST)
    alert = Alert.objects.get(code="HandoverRegressed")
    assert alert.state == "open"
    assert "DaemonSet kube-system/hami-device-plugin" in alert.text
    admin.lead(row, kill=False)
    assert row.outcome == Outcome.DONE
    refresh_regressions(datetime.now(UTC) + timedelta(minutes=3))
    assert Alert.objects.get(code="HandoverRegressed").state == "resolved"
