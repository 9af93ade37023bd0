"""A large cluster as the API server's bytes: nodes with eight A100s, Pods with reservations."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from hami_web.cluster.views import NodeView, PodView
from hami_web.core import annotations as keys
from hami_web.core.capability import NodeCapability
from hami_web.core.device_list import ListedDevice, encode_devices
from hami_web.core.registration import encode_registration
from hami_web.core.reservation import Reservation, RuntimeIdentity, encode_allocations
from hami_web.core.tables import ProfileTable
from tests.boards import PLAIN_A100, board

GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes and Pods as JSON documents, one each, and the names of the nodes."""

    names: tuple[str, ...]
    nodes: bytes
    pods: bytes

    def node_views(self) -> list[NodeView]:
        return msgspec.json.decode(self.nodes, type=list[NodeView])

    def pod_views(self) -> list[PodView]:
        return msgspec.json.decode(self.pods, type=list[PodView])


def fleet(nodes: int, pods: int, *, images: int = 0) -> Fleet:
    """A cluster with reservations spread over its GPUs at random, never overlapping.

    With ``images`` the nodes carry what real ones do: images, labels, conditions.
    """
    names = tuple(f"gpu-node-{number:05d}.example.internal" for number in range(nodes))
    return Fleet(
        names,
        msgspec.json.encode([node_document(name, images) for name in names]),
        msgspec.json.encode(list(_pods(names, pods))),
    )


def node_document(name: str, images: int = 0) -> dict[str, object]:
    """One node."""
    gpus = tuple(
        board("a100-sxm4-40gb", f"GPU-{name[9:14]}-{index}", index, names=PLAIN_A100)
        for index in range(GPUS_PER_NODE)
    )
    document: dict[str, object] = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1234567",
            "annotations": {keys.NODE_REGISTER: encode_registration(NodeCapability(gpus))},
            "labels": {f"example.com/label-{n}": f"value-{n}" for n in range(images and 60)},
        },
        "spec": {},
        "status": {
            "allocatable": {"cpu": "128", keys.RESOURCE_COUNT: "56"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [
                {
                    "names": [
                        f"registry.example.com/team/image-{n}@sha256:{n:064d}",
                        f"registry.example.com/team/image-{n}:v1.{n}",
                    ],
                    "sizeBytes": 1_000_000 + n,
                }
                for n in range(images)
            ],
        },
    }
    return document


def pod_document(uid: str, node: str, reservations: Sequence[Reservation]) -> dict[str, object]:
    """One bound Pod with the annotations of its reservations."""
    listed = encode_devices([[ListedDevice(r.gpu_uuid, 4864, 15) for r in reservations]])
    limits = {keys.RESOURCE_COUNT: str(len(reservations)), keys.RESOURCE_MEMORY: "4000"}
    return {
        "metadata": {
            "name": f"job-{uid}",
            "namespace": f"team-{hash(uid) % 20}",
            "uid": uid,
            "resourceVersion": "7654321",
            "annotations": {
                keys.POD_DEVICES_ALLOCATED: listed,
                keys.POD_MIG_ALLOCATIONS: encode_allocations(reservations),
            },
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"limits": limits, "requests": limits}}],
        },
        "status": {"phase": "Running"},
    }


def _pods(names: Sequence[str], count: int) -> Iterator[dict[str, object]]:
    rng = random.Random(f"{len(names)} {count}")
    table = ProfileTable(board("a100-sxm4-40gb", names=PLAIN_A100))
    shapes = [table.by_name[name] for name in ("1g.5gb", "1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb")]
    states: dict[tuple[int, int], int] = {}
    made = 0
    while made < count:
        node, gpu = rng.randrange(len(names)), rng.randrange(GPUS_PER_NODE)
        state = states.get((node, gpu), 0)
        # At most half full, so that every request of the benchmark finds candidates everywhere.
        fits = table.fits(state, rng.choice(shapes))
        if not fits:
            continue
        fit = fits[0]
        states[node, gpu] = fit.state
        name = names[node]
        profile = next(s.profile.name for s in shapes if fit.placement in s.placements)
        identity = RuntimeIdentity(f"MIG-{made:08x}-1234-1234-1234-123456789abc", 7, 0)
        reservation = Reservation(0, 0, f"GPU-{name[9:14]}-{gpu}", profile, fit.placement)
        yield pod_document(f"uid-{made:08d}", name, [replace(reservation, identity=identity)])
        made += 1
