"""A mirror of a large cluster, copied into PostgreSQL as rows.

No real GPU holds ten instances: the grid here is as long as it takes for 2,000 GPUs to carry 20,000
live reservations, one memory slice each. What is read does not depend on the grid.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final

from django.db import connection

from hami_web.core.capability import GpuCapability, ProfileCapability
from hami_web.core.placement import Placement
from hami_web.inventory.mirror import mirror_nodes
from hami_web.inventory.models import Gpu, Node
from hami_web.inventory.observed import ObservedGpu, ObservedNode
from hami_web.reservations.models import MigReservation

NODES: Final = 250
GPUS_PER_NODE: Final = 8
PER_GPU: Final = 10
LIVE: Final = NODES * GPUS_PER_NODE * PER_GPU
NAMESPACES: Final = 50
DAYS: Final = 90
NOW: Final = datetime(2026, 6, 1, 12, tzinfo=UTC)
PROFILE: Final = ProfileCapability(
    "1g.5gb", 4864, 14, 1, tuple(Placement(start, 1) for start in range(PER_GPU))
)


def fill(historical: int) -> None:
    """Nodes, GPUs, live reservations with their claims, and so many that are over."""
    _inventory()
    defaults = _defaults()
    names = [name for name in defaults if name != "id"]
    rng = random.Random(historical)
    with connection.cursor() as cursor:
        table = MigReservation._meta.db_table
        with cursor.copy(f"COPY {table} ({', '.join(names)}) FROM STDIN") as copy:
            for facts in chain(_live(rng), _over(rng, historical)):
                whole = defaults | facts
                copy.write_row([whole[name] for name in names])
        cursor.execute(
            "INSERT INTO reservations_memorysliceclaim (reservation_id, gpu_uuid, memory_slice)"
            f" SELECT id, gpu_uuid, start FROM {table} WHERE released_at IS NULL"
        )
    connection.commit()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def uuid(node: int, index: int) -> str:
    return f"GPU-{node:04d}{index:02d}00-0000-4000-8000-000000000000"


def node_name(number: int) -> str:
    return f"gpu-node-{number:04d}.example.internal"


def _inventory() -> None:
    """The first node as the product writes it, all others like it."""
    mirror_nodes([_node(0)], seen_at=NOW, now=NOW)
    [sample] = Gpu.objects.filter(uuid=uuid(0, 0))
    nodes = Node.objects.bulk_create(
        Node(name=node_name(number), changed_at=NOW) for number in range(1, NODES)
    )
    facts = {f.attname: getattr(sample, f.attname) for f in Gpu._meta.concrete_fields}
    Gpu.objects.bulk_create(
        Gpu(**facts | {"id": None, "node_id": node.pk, "uuid": uuid(number, index), "index": index})
        for number, node in enumerate(nodes, 1)
        for index in range(GPUS_PER_NODE)
    )


def _node(number: int) -> ObservedNode:
    gpus = tuple(
        ObservedGpu(
            GpuCapability(
                uuid(number, index),
                index,
                PER_GPU,
                49152,
                100,
                "NVIDIA A100-SXM4-40GB",
                0,
                "mig",
                (PROFILE,),
                True,
            )
        )
        for index in range(GPUS_PER_NODE)
    )
    return ObservedNode(node_name(number), gpus)


def _live(rng: random.Random) -> Iterator[dict[str, Any]]:
    for place in range(LIVE):
        gpu, start = divmod(place, PER_GPU)
        began = NOW - timedelta(seconds=rng.randrange(DAYS * 86400))
        yield _facts(rng, place, gpu, start, began) | {
            "phase": "realized",
            "released_at": None,
            "terminating_at": None,
        }


def _over(rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        gpu, start = rng.randrange(NODES * GPUS_PER_NODE), rng.randrange(PER_GPU)
        ended = NOW - timedelta(seconds=rng.randrange(DAYS * 86400))
        began = ended - timedelta(seconds=rng.randrange(60, 86400))
        yield _facts(rng, LIVE + number, gpu, start, began) | {
            "phase": "released",
            "released_at": ended,
            "terminating_at": ended - timedelta(seconds=5),
            "changed_at": ended,
        }


def _facts(
    rng: random.Random, number: int, gpu: int, start: int, began: datetime
) -> dict[str, Any]:
    node, index = divmod(gpu, GPUS_PER_NODE)
    return {
        "pod_uid": f"{number:08x}-2fa1-11d2-883f-0016d3cca427",
        "namespace": f"team-{rng.randrange(NAMESPACES)}",
        "pod": f"job-{number:08d}-worker-0",
        "node": node_name(node),
        "container_index": 0,
        "device_index": 0,
        "gpu_uuid": uuid(node, index),
        "profile": PROFILE.name,
        "start": start,
        "size": 1,
        "gpu_memory_slices": PER_GPU,
        "memory_mib": PROFILE.memory_mib,
        "mig_uuid": f"MIG-{number:08x}-0000-4000-8000-000000000000",
        "gpu_instance_id": start + 1,
        "compute_instance_id": 0,
        "reserved_at": began,
        "realized_at": began + timedelta(seconds=2),
        "changed_at": began + timedelta(seconds=2),
    }


def _defaults() -> dict[str, Any]:
    """What the columns hold that no fact tells."""
    return {f.column: f.get_default() for f in MigReservation._meta.concrete_fields}
