"""Steps of a take-over over a real API: what is done, what is refused, and what people wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hami_web.access.models import AuditEntry
from hami_web.handover import store
from hami_web.handover.models import NodeHandover, Outcome, ProfileTest
from hami_web.handover.obstacles import decode_obstacles
from hami_web.handover.steps import Direction, Step
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.faults import RequestMatch
from hami_web.simulator.resources import STORED
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.migration.clusters import (
    described,
    legacy_pod,
    node,
    ours,
    owned,
    pod,
    published,
    workload,
)

from .looking import look_once
from .moving import AGENT_LABELS, OURS, SYSTEM, rights

pytestmark = pytest.mark.django_db
KINDS = {resource.kind: resource for resource in STORED}


class Cluster:
    """An API server with objects, and the worker's looks at it."""

    def __init__(self, server: SimulatedApiServer, folder: Path) -> None:
        self.server = server
        self.api = ApiClient(Endpoint(server.url))
        self.kubeconfig = write_kubeconfig(folder / "kubeconfig", server=server.url)
        agents = workload("DaemonSet", "hami-node-agent", SYSTEM, "agent:1", labels=AGENT_LABELS)
        agents["spec"]["template"]["spec"]["nodeSelector"] = dict(OURS)
        self.put(*ours(), agents, described("Namespace", "team-a"))

    def put(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            document["metadata"].setdefault("uid", f"uid-of-{document['metadata']['name']}")
            self.server.api.store.create(KINDS[document["kind"]], document)

    def begin(self, name: str = "gpu-1", **more: Any) -> NodeHandover:
        beginning = store.Beginning(
            name, more.get("uid", f"uid-of-{name}"), more.get("to", Direction.FORWARD), "ada",
            cordoned=more.get("cordoned", False),
        )  # fmt: skip
        return store.begin(beginning, datetime.now(UTC))

    def look(self, row: NodeHandover, *, approve: bool = False) -> NodeHandover:
        """One look; with ``approve`` the step is approved before it."""
        row.refresh_from_db()
        if approve:
            store.approve(store.Asked(row.pk, row.step, "ada"), datetime.now(UTC))
        look_once(self.kubeconfig)
        row.refresh_from_db()
        return row

    def until(self, row: NodeHandover, step: Step) -> NodeHandover:
        """Approve everything up to a step, and look at that once."""
        for _ in range(20):
            self.look(row)
            if row.step == step:
                return row
            self.look(row, approve=bool(row.would_do))
        raise AssertionError(f"at {row.step}: {codes(row)}")

    def writes(self) -> list[str]:
        return [
            f"{entry.verb} {entry.resource}"
            for entry in self.server.audit
            if entry.verb not in ("get", "list", "watch") and "review" not in entry.resource
        ]

    def is_ending(self, name: str) -> bool:
        """Asked to end; no kubelet is here to end it."""
        found = self.read("Pod", name)
        return found is None or "deletionTimestamp" in found["metadata"]

    def read(self, kind: str, name: str) -> dict[str, Any] | None:
        every = self.server.api.store.listing(KINDS[kind], "")[1]
        return next((i.document for i in every if i.document["metadata"]["name"] == name), None)


def codes(row: NodeHandover) -> set[str]:
    return {item.code for item in decode_obstacles(row.obstacles)}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with SimulatedApiServer(identities=rights()) as server:
        found = Cluster(server, tmp_path)
        yield found
        found.api.close()


def test_nothing_is_written_before_somebody_approves(cluster: Cluster) -> None:
    cluster.put(node(), legacy_pod("train", owner=owned("Job", "train")))
    row = cluster.begin()
    for _ in range(3):
        cluster.look(row)
    assert row.step == Step.CORDON
    assert row.would_do == ["cordon"]
    assert cluster.writes() == []


def test_a_step_that_is_so_already_is_passed_without_an_approval(cluster: Cluster) -> None:
    machine = node()
    machine["spec"] = {"unschedulable": True}
    cluster.put(machine)
    row = cluster.look(cluster.begin(cordoned=True))
    assert row.step == Step.PUBLISH
    assert cluster.writes() == []


def test_what_was_approved_is_done_once_and_recorded(cluster: Cluster) -> None:
    cluster.put(node())
    row = cluster.look(cluster.begin())
    cluster.look(row, approve=True)
    assert cluster.read("Node", "gpu-1")["spec"]["unschedulable"] is True
    cluster.look(row)
    assert row.step == Step.PUBLISH
    assert row.approved_by == ""
    assert cluster.writes() == ["patch nodes"]
    entries = AuditEntry.objects.filter(verb="handover.change").order_by("pk")
    assert [entry.outcome for entry in entries] == ["begun", "done"]
    assert entries[1].detail == "approved by ada"


def test_pods_with_a_controller_are_evicted_and_others_left_to_their_owners(
    cluster: Cluster,
) -> None:
    cluster.put(
        node(),
        legacy_pod("train", owner=owned("Job", "train")),
        legacy_pod("alone"),
        pod("logs", limits={"nvidia.com/gpu": "1"}, owner=owned("DaemonSet", "logs")),
        pod("web"),
    )
    row = cluster.until(cluster.begin(), Step.DRAIN)
    assert row.would_do == ["evict team-a/train"]
    cluster.look(row, approve=True)
    cluster.look(row)
    ending = [name for name in ("train", "alone", "logs", "web") if cluster.is_ending(name)]
    assert ending == ["train"]
    assert row.would_do == []
    assert row.step == Step.DRAIN
    assert "NotEvictedByUs" in codes(row)


def test_a_budget_is_kept_and_tried_again_later(cluster: Cluster) -> None:
    budget = described(
        "PodDisruptionBudget", "serve", "team-a",
        spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "serve"}}},
    )  # fmt: skip
    serving = legacy_pod("serve-0", labels={"app": "serve"}, owner=owned("StatefulSet", "serve"))
    cluster.put(node(), budget, serving)
    row = cluster.until(cluster.begin(), Step.DRAIN)
    cluster.look(row, approve=True)
    assert "EvictionRefused" in codes(row)
    assert not cluster.is_ending("serve-0")
    assert row.approved_by == "ada"


def test_a_right_that_is_taken_away_in_the_middle_stops_it_where_it_is(cluster: Cluster) -> None:
    cluster.put(node())
    row = cluster.look(cluster.begin())
    cluster.server.faults.answer(403, RequestMatch("patch", "nodes"), times=None)
    cluster.look(row, approve=True)
    assert row.step == Step.CORDON
    assert "NotPermitted" in codes(row)
    assert row.approved_by == "ada"
    cluster.server.faults.clear()
    cluster.look(row)
    cluster.look(row)
    assert row.step == Step.PUBLISH


def test_what_cannot_be_read_holds_everything(cluster: Cluster) -> None:
    cluster.put(node())
    row = cluster.look(cluster.begin())
    cluster.server.faults.answer(403, RequestMatch("list", "pods"), times=None)
    cluster.look(row, approve=True)
    assert codes(row) == {"CouldNotLook"}
    assert cluster.writes() == []
    assert row.step == Step.CORDON


@pytest.mark.parametrize(("uid", "code"), [("another", "NodeReplaced"), (None, "NodeGone")])
def test_a_node_that_is_another_or_gone_is_not_touched(
    cluster: Cluster, uid: str | None, code: str
) -> None:
    if uid:
        cluster.put(node())
    row = cluster.begin(uid=uid or "uid-of-gpu-1")
    cluster.look(row)
    cluster.look(row, approve=True)
    assert codes(row) == {code}
    assert cluster.writes() == []
    store.close(row.pk, "ada", datetime.now(UTC))
    assert NodeHandover.objects.get(pk=row.pk).outcome == Outcome.CLOSED


def test_labels_are_changed_as_shown_and_restored_on_the_way_back(cluster: Cluster) -> None:
    labels = {
        "nvidia.com/gpu.deploy.mig-manager": "true",
        "nvidia.com/mig.config": "all-1g.5gb",
        "nvidia.com/mig.config.state": "success",
    }
    manager = workload("DaemonSet", "nvidia-mig-manager", "gpu-operator", "mig-manager:v0.12",
                       labels={"app": "nvidia-mig-manager"})  # fmt: skip
    manager["spec"]["template"]["spec"]["nodeSelector"] = {
        "nvidia.com/gpu.deploy.mig-manager": "true"
    }
    plugin = workload("DaemonSet", "hami-device-plugin", "kube-system", "projecthami/hami:v2.9.0",
                      labels={"app.kubernetes.io/component": "hami-device-plugin"})  # fmt: skip
    plugin["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "on"}
    cluster.put(node(labels=labels), manager, plugin)
    before = dict(cluster.read("Node", "gpu-1")["metadata"]["labels"])
    row = cluster.until(cluster.begin(), Step.HAND_OVER)
    assert row.would_do == [
        "label gpu-",
        "label nvidia.com/gpu.deploy.mig-manager=false",
        "label nvidia.com/mig.config-",
    ]
    cluster.until(row, Step.PUBLISH)
    cluster.look(row, approve=True)
    seen = cluster.read("Node", "gpu-1")["metadata"]["labels"]
    assert seen["hami.io/dynamic-mig"] == "on"
    assert "gpu" not in seen
    store.turn_back(row.pk, "ada", datetime.now(UTC))
    for _ in range(12):
        cluster.look(row, approve=bool(row.would_do) and row.is_open)
        if not row.is_open:
            break
    assert row.outcome == Outcome.ROLLED_BACK
    assert cluster.read("Node", "gpu-1")["metadata"]["labels"] == before
    assert not cluster.read("Node", "gpu-1")["spec"].get("unschedulable")


def test_labels_that_would_bring_another_plugin_along_are_refused(cluster: Cluster) -> None:
    plugin = workload("DaemonSet", "hami-device-plugin", "kube-system", "projecthami/hami:v2.9.0",
                      labels={"app.kubernetes.io/component": "hami-device-plugin"})  # fmt: skip
    plugin["spec"]["template"]["spec"]["nodeSelector"] = dict(OURS)
    cluster.put(node(), plugin)
    row = cluster.until(cluster.begin(), Step.PUBLISH)
    cluster.look(row, approve=True)
    assert "SelectorShared" in codes(row)
    assert "hami.io/dynamic-mig" not in cluster.read("Node", "gpu-1")["metadata"]["labels"]


def test_a_node_that_somebody_uncordons_falls_back_and_waits(cluster: Cluster) -> None:
    cluster.put(node())
    row = cluster.until(cluster.begin(), Step.PUBLISH)
    cluster.api.patch("/api/v1/nodes/gpu-1", {"spec": {"unschedulable": None}})
    cluster.look(row)
    assert (row.step, row.regressed_from) == (Step.CORDON, Step.PUBLISH)
    cluster.look(row, approve=True)
    cluster.look(row)
    assert (row.step, row.regressed_from) == (Step.PUBLISH, "")


def test_pods_that_come_to_a_node_once_it_is_open_are_no_step_back(cluster: Cluster) -> None:
    cluster.put(node())
    row = cluster.until(cluster.begin(), Step.PUBLISH)
    row.step = Step.UNCORDON
    row.save()
    ProfileTest.objects.create(
        handover=row, model="A100", profile="1g.5gb", gpu="GPU-1", state="passed",
        entered_at=row.entered_at,
    )  # fmt: skip
    labels = {"metadata": {"labels": dict(OURS)}}
    register = published()["metadata"]["annotations"]
    ready = {"type": "hami.io/DynamicMIGReady", "status": "True"}
    cluster.api.patch("/api/v1/nodes/gpu-1", labels | {"spec": {"unschedulable": None}})
    cluster.api.patch("/api/v1/nodes/gpu-1", {"metadata": {"annotations": register}})
    cluster.api.patch("/api/v1/nodes/gpu-1/status", {"status": {"conditions": [ready]}})
    cluster.put(legacy_pod("train", owner=owned("Job", "train")))
    cluster.look(row)
    assert row.outcome == Outcome.DONE, codes(row)


def test_of_two_looks_at_once_one_gives_way(cluster: Cluster) -> None:
    cluster.put(node())
    row = cluster.look(cluster.begin())
    stale = NodeHandover.objects.get(pk=row.pk)
    cluster.look(row, approve=True)
    with pytest.raises(store.Overtaken):
        store.move(stale, Step.DRAIN, (), datetime.now(UTC))
    row.refresh_from_db()
    assert row.step != Step.DRAIN


def test_a_second_take_over_of_a_node_is_refused_and_names_the_first(cluster: Cluster) -> None:
    cluster.put(node())
    first = cluster.begin()
    with pytest.raises(store.HandoverOpen) as refused:
        cluster.begin()
    assert refused.value.handover == first
    store.close(first.pk, "ada", datetime.now(UTC))
    cluster.begin()


Change = Callable[[NodeHandover], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda row: store.approve(store.Asked(row.pk, "drain", "ada"), datetime.now(UTC)),
        lambda row: store.withdraw(store.Asked(row.pk, "drain", "ada"), datetime.now(UTC)),
    ],
)
def test_an_approval_means_the_step_that_was_seen(cluster: Cluster, change: Change) -> None:
    cluster.put(node())
    row = cluster.look(cluster.begin())
    with pytest.raises(store.OtherStep, match="at step cordon by now, not drain"):
        change(row)
    row.refresh_from_db()
    assert row.approved_by == ""


def test_what_is_over_is_not_changed_any_more(cluster: Cluster) -> None:
    cluster.put(node())
    row = cluster.begin()
    store.close(row.pk, "ada", datetime.now(UTC))
    for change in (
        lambda: store.approve(store.Asked(row.pk, row.step, "ada"), datetime.now(UTC)),
        lambda: store.turn_back(row.pk, "ada", datetime.now(UTC)),
        lambda: store.close(row.pk, "ada", datetime.now(UTC)),
    ):
        with pytest.raises(store.HandoverOver):
            change()
