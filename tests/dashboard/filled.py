"""A cluster of some size with its history, as live map and as rows of every table of pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.utils import timezone

from hami_web.access.models import AuditEntry
from hami_web.access.models import Outcome as AuditOutcome
from hami_web.core import annotations as keys
from hami_web.core.reservation import Reservation, encode_allocations
from hami_web.dashboard.cluster_map import ClusterMap, WaitingPod
from hami_web.handover.models import NodeHandover
from hami_web.history.conditions import AlertCode
from hami_web.history.models import (
    Alert,
    Decision,
    Drift,
    DriftCause,
    Explanation,
    Outcome,
    Reconciliation,
    Sample,
)
from hami_web.inventory.mirror import mirror_nodes
from hami_web.migration.models import Finding, MigrationRun, NodeReadiness
from hami_web.reservations.mirror import mirror_pods, release_pods
from tests.mirror import observations as seen

from .handovers import under_way
from .test_drawing import GPU, REGISTER, drawn, node, pod

MINUTE = timedelta(minutes=1)
BODY = {
    "asked": [],
    "nodes_asked": 1,
    "reasons": {"CardMigTopologyInfeasible": 1},
    "nodes": [
        {"node": "n1", "code": None, "text": "", "found": 0, "wanted": 1, "doubts": [], "gpus": [
            {"gpu_uuid": GPU, "code": "CardMigTopologyInfeasible", "free_memory_slices": 5,
             "memory_slices": 8},
        ]},
        {"node": "n2", "code": "NodeCapabilityStale", "text": "", "found": 0, "wanted": 1,
         "doubts": [], "gpus": []},
    ],
    "quota": None,
    "nearest": {"node": "n1", "gpu_uuid": GPU, "profile": "3g.20gb", "start": 4, "size": 4,
                "fragmented": True, "text": "3g.20gb would fit without secret/owner",
                "reservations": [{"namespace": "secret", "name": "owner", "uid": "u", "size": 1,
                                  "profile": "1g.5gb", "start": 4}],
                "smaller": {"profile": "2g.10gb", "memory_mib": 9856, "node": "n1",
                            "gpu_uuid": GPU, "start": 2, "size": 2}},
    "nearest_known": True,
}  # fmt: skip
"""Why a Pod was refused, as the extender writes it."""


def gpu_of(number: int) -> str:
    """The first GPU of each node; that of the first node is the one of the other tests."""
    return GPU.replace("12345678", f"{12345678 + number:08d}")


def filled_map(count: int) -> ClusterMap:
    """Nodes with a reservation and a waiting Pod each."""
    register = REGISTER.read_text().strip()
    nodes, pods = [], []
    for number in range(count):
        own = register.replace("12345678", f"{12345678 + number:08d}")
        nodes.append(node(f"n{number + 1}", **{keys.NODE_REGISTER: own}))
        there = pod(f"a{number}", 0, 1)
        reserved = Reservation(0, 0, gpu_of(number), "1g.5gb", seen.placed(0).placement)
        there.metadata.annotations[keys.POD_MIG_ALLOCATIONS] = encode_allocations([reserved])
        there.spec.node_name = f"n{number + 1}"
        pods.append(there)
    known = drawn(nodes, pods)
    waiting = tuple(WaitingPod(f"team/waits{number or ''}", "") for number in range(count))
    return replace(known, version=count + 1, waiting=waiting)


def fill_tables(count: int) -> None:
    """``count`` nodes, and as many rows of all that a node or a Pod leaves behind."""
    now = timezone.now()
    _fill_mirror(count)
    for number in range(count):
        _fill_decisions(number)
        _fill_history(number)
    under_way(now, count)
    run = MigrationRun.objects.create(
        pk=1, state="finished", requested_at=now, requested_by="ann", finished_at=now
    )
    for number in range(count):
        name = f"n{number + 1}"
        NodeReadiness.objects.create(run=run, node=name, readiness="not_ready", checked_at=now)
        Finding.objects.create(
            run=run,
            node=name,
            severity="blocker",
            code="MigConfigLabel",
            subject=name,
            evidence="x",
        )
        NodeHandover.objects.create(
            node=f"n{number + 2}", node_uid="u", step="cordon", started_at=now, started_by="ann",
            entered_at=now,
        )  # fmt: skip
        MigrationRun.objects.create(
            state="finished", requested_at=now - MINUTE, requested_by="ann", finished_at=now
        )


def _fill_mirror(count: int) -> None:
    now = timezone.now()
    nodes = [
        seen.node(f"n{number + 1}", (seen.gpu(gpu_of(number)),), unschedulable=False)
        for number in range(count)
    ]
    mirror_nodes(nodes, seen_at=now - 90 * MINUTE, now=now - 90 * MINUTE)
    pods = [
        seen.pod(f"{word}{number}", seen.placed(start, gpu_uuid=gpu_of(number)),
                 node=f"n{number + 1}", namespace=namespace)
        for number in range(count)
        for word, start, namespace in (("a", 0, "team"), ("gone", 2, f"team-{number}"))
    ]  # fmt: skip
    mirror_pods(pods, seen_at=now - 60 * MINUTE, now=now - 60 * MINUTE)
    gone = [f"gone{number}" for number in range(count)]
    release_pods(gone, seen_at=now - 30 * MINUTE, now=now - 30 * MINUTE)


def _fill_decisions(number: int) -> None:
    at = timezone.now() - (number + 1) * MINUTE
    explanation = Explanation.objects.create(digest=f"d{number}", body=BODY)
    for pod_uid, name in (("u", "waits"), (f"u{number}", f"waits{number or ''}")):
        Decision.objects.create(
            pod_uid=pod_uid, namespace="team", pod=name, outcome=Outcome.REFUSED, times=1,
            digest=f"d{number}", message="no available node", explanation=explanation,
            entry=f"{name}-{number}-{pod_uid}", entry_times=1, first_at=at, last_at=at,
        )  # fmt: skip


def _fill_history(number: int) -> None:
    now = timezone.now()
    name, at = f"n{number + 1}", now - (number + 1) * MINUTE
    Alert.objects.create(
        code=AlertCode.AGENT_STALE, subject=name, text="silent", raised_at=now, seen_at=now
    )
    Alert.objects.create(
        code=AlertCode.CONFLICT, subject=f"c{number}", namespace="team", text="t", raised_at=now,
        seen_at=now,
    )  # fmt: skip
    run = Reconciliation.objects.create(
        began_at=at, finished_at=now, nodes=3, pods=4, corrections=1
    )
    Drift.objects.create(
        reconciliation=run, at=at, cause=DriftCause.ALTERED, kind="vanished", entity="reservation",
        key=f"team/a{number} 0.0 1g.5gb {gpu_of(number)} 0:1",
    )  # fmt: skip
    AuditEntry.objects.create(
        at=at, actor="ann", source="local", verb="cordon-gpu", kind="gpu", name=gpu_of(number),
        outcome=AuditOutcome.DONE,
    )  # fmt: skip
    for where in ("", name):
        Sample.objects.create(
            at=at, node=where, gpus=2, memory_slices=16, reserved_memory_slices=2,
            realized_memory_slices=1, blocked_memory_slices=0, fragmentation=0.4,
        )  # fmt: skip
