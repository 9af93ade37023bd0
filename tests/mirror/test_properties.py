"""Whatever was there, after a complete list the mirror equals it."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from hami_web.inventory import models as inventory
from hami_web.inventory.mirror import mirror_nodes
from hami_web.reservations.mirror import mirror_pods
from hami_web.reservations.models import MemorySliceClaim, MigReservation, Phase

from .observations import (
    facts_of_nodes,
    facts_of_pods,
    moment,
    observed_nodes,
    observed_pods,
    rows_of_nodes,
    rows_of_pods,
    shares,
)

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]

POD_DAMAGE = {
    "rows deleted": lambda: MigReservation.objects.filter(pod_uid__lt="d").delete(),
    "placements changed": lambda: MigReservation.objects.update(start=3, size=1),
    "Pods renamed": lambda: MigReservation.objects.update(pod="other"),
    "claims deleted": lambda: MemorySliceClaim.objects.all().delete(),
    "phases changed": lambda: MigReservation.objects.filter(released_at=None).update(
        phase=Phase.RESERVED
    ),
    "rows invented": lambda: MigReservation.objects.create(
        pod_uid="zz", namespace="x", pod="x", node="x", container_index=0, device_index=0,
        gpu_uuid="GPU-0", profile="x", start=0, size=1, phase=Phase.RESERVED,
        reserved_at=moment(9), changed_at=moment(9),
    ),
    "times in the future": lambda: MigReservation.objects.update(changed_at=moment(1e9)),
    "nothing": lambda: None,
}  # fmt: skip
NODE_DAMAGE = {
    "GPUs deleted": lambda: inventory.Gpu.objects.filter(uuid="GPU-1").delete(),
    "GPUs changed": lambda: inventory.Gpu.objects.update(model="other", healthy=False),
    "profiles changed": lambda: inventory.Profile.objects.update(placements=[[0, 1]]),
    "profiles deleted": lambda: inventory.Profile.objects.filter(name="1g.5gb").delete(),
    "nodes gone": lambda: inventory.Node.objects.update(gone_at=moment(5)),
    "nodes invented": lambda: inventory.Node.objects.create(name="zz", changed_at=moment(5)),
    "blocked intervals deleted": lambda: inventory.BlockedInterval.objects.all().delete(),
    "histories changed": lambda: inventory.GpuState.objects.update(cordoned=True, index=99),
    "histories ended": lambda: inventory.NodeState.objects.update(ended_at=moment(9)),
    "nothing": lambda: None,
}


@given(st.lists(observed_pods(), max_size=3), st.sampled_from(sorted(POD_DAMAGE)), observed_pods())
def test_reservations_equal_the_list(earlier, damage, listed) -> None:
    with transaction.atomic():
        for step, pods in enumerate(earlier):
            mirror_pods(pods, seen_at=moment(step), now=moment(step), complete=step % 2 == 0)
        POD_DAMAGE[damage]()
        mirror_pods(listed, seen_at=moment(20), now=moment(20), complete=True)
        check_reservations(listed)
        assert mirror_pods(listed, seen_at=moment(21), now=moment(21), complete=True) == []
        transaction.set_rollback(True)


def check_reservations(listed) -> None:
    assert rows_of_pods() == facts_of_pods(listed)
    wanted = Counter(
        (item.gpu_uuid, slot)
        for pod in listed
        for item in pod.reservations
        for slot in range(item.placement.start, item.placement.end)
    )
    assert shares() == sorted(wanted.elements())
    for row in MigReservation.objects.filter(released_at=None):
        taken = [wanted[row.gpu_uuid, slot] for slot in range(row.start, row.placement.end)]
        assert (row.phase == Phase.CONFLICTED) == (max(taken) > 1)


def check_states() -> None:
    """What is open in the history of nodes is what is there now."""
    live = inventory.Node.objects.filter(inventory.LIVE).values_list("id", "closed")
    states = inventory.NodeState.objects.filter(ended_at=None)
    assert set(states.values_list("node_id", "closed")) == set(live)
    facts = ("node_id", "index", "healthy", "cordoned", "closed", "profile_set_id")
    gpus = inventory.Gpu.objects.filter(inventory.LIVE).values_list("id", *facts)
    states = inventory.GpuState.objects.filter(ended_at=None)
    assert set(states.values_list("gpu_id", *facts)) == set(gpus)
    places = ("gpu_id", "start", "size", "reason")
    states = inventory.BlockedState.objects.filter(ended_at=None)
    blocked = inventory.BlockedInterval.objects.values_list(*places)
    assert set(states.values_list(*places)) == set(blocked)


@given(
    st.lists(observed_nodes(), max_size=3), st.sampled_from(sorted(NODE_DAMAGE)), observed_nodes()
)
def test_nodes_and_gpus_equal_the_list(earlier, damage, listed) -> None:
    with transaction.atomic():
        for step, nodes in enumerate(earlier):
            mirror_nodes(nodes, seen_at=moment(step), now=moment(step), complete=step % 2 == 0)
        NODE_DAMAGE[damage]()
        mirror_nodes(listed, seen_at=moment(20), now=moment(20), complete=True)
        assert rows_of_nodes() == facts_of_nodes(listed)
        check_states()
        assert mirror_nodes(listed, seen_at=moment(21), now=moment(21), complete=True) == []
        transaction.set_rollback(True)
