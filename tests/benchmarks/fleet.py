"""A large cluster as the API server's bytes: nodes with eight A100s, Pods with reservations."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import orjson

from hami_web.cluster.listed_pods import ListedPod
from hami_web.cluster.views import NodeView, PodView
from hami_web.core import annotations as keys
from hami_web.core.capability import NodeCapability
from hami_web.core.device_list import ListedDevice, encode_devices
from hami_web.core.registration import encode_registration
from hami_web.core.reservation import Reservation, RuntimeIdentity, encode_allocations
from hami_web.core.tables import ProfileTable
from tests.boards import PLAIN_A100, board

GPUS_PER_NODE: Final = 8
_HERE: Final = "00000"
PAGE: Final = 500


def node_names(count: int) -> list[str]:
    """Names of equal length."""
    return [f"gpu-node-{number:05d}.example.internal" for number in range(count)]


def write_fleet(folder: Path, nodes: int, pods: int) -> None:
    """Write ``nodes.jsonl`` and ``pods.jsonl``: a JSON array of objects per line, as pages."""
    names = node_names(nodes)
    _write(folder / "nodes.jsonl", node_documents(names))
    _write(folder / "pods.jsonl", _pods(names, pods))


def node_pages(folder: Path) -> Iterator[list[NodeView]]:
    """Decode the nodes page after page."""
    with (folder / "nodes.jsonl").open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=list[NodeView])


def pod_pages(folder: Path) -> Iterator[list[PodView]]:
    """Decode the Pods page after page; their bytes are read at once."""
    lines = (folder / "pods.jsonl").read_bytes().splitlines()
    decoder = msgspec.json.Decoder(list[ListedPod])
    return ([pod.view() for pod in decoder.decode(line)] for line in lines)


def filter_body(uid: str, names: Sequence[str], memory: int = 4000, count: int = 1) -> bytes:
    """ExtenderArgs with node names, as kube-scheduler sends them."""
    return orjson.dumps({"Pod": _waiting(uid, memory, count), "Nodes": None, "NodeNames": names})


def full_nodes_body(uid: str, names: Sequence[str]) -> bytes:
    """ExtenderArgs with whole Node objects: some 21 kB each, with 50 images and 60 labels."""
    items = b",".join(node_documents(names, images=50))
    pod = orjson.dumps(_waiting(uid, 4000, 1))
    return b'{"Pod":' + pod + b',"Nodes":{"metadata":{},"items":[' + items + b']},"NodeNames":null}'


def node_documents(names: Sequence[str], images: int = 0) -> Iterator[bytes]:
    """Nodes; all are the same but for their name and the UUIDs of their GPUs."""
    gpus = tuple(
        board("a100-sxm4-40gb", f"GPU-{_HERE}-{index}", index, names=PLAIN_A100)
        for index in range(GPUS_PER_NODE)
    )
    name = node_names(1)[0]
    document = {
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
            "images": [_image(number) for number in range(images)],
        },
    }
    template = orjson.dumps(document)
    for other in names:
        number = other[9:14].encode()
        yield template.replace(name.encode(), other.encode()).replace(
            f"GPU-{_HERE}-".encode(), b"GPU-" + number + b"-"
        )


def _image(number: int) -> dict[str, object]:
    path = f"registry.example.com/team-with-a-long-name/service-{number}"
    return {
        "names": [f"{path}@sha256:{number:064d}", f"{path}:v1.{number}.0-release"],
        "sizeBytes": 1_000_000_000 + number,
    }


def _waiting(uid: str, memory: int, count: int) -> dict[str, object]:
    limits = {keys.RESOURCE_COUNT: str(count), keys.RESOURCE_MEMORY: str(memory)}
    return {
        "metadata": {"name": f"new-{uid}", "namespace": "team-1", "uid": uid},
        "spec": {
            "schedulerName": "hami-scheduler",
            "containers": [{"name": "main", "resources": {"limits": limits, "requests": limits}}],
        },
        "status": {"phase": "Pending"},
    }


def _pods(names: Sequence[str], count: int) -> Iterator[bytes]:
    """Bound Pods with one realized instance each, at random, never overlapping."""
    rng = random.Random(f"{len(names)} {count}")
    table = ProfileTable(board("a100-sxm4-40gb", names=PLAIN_A100))
    shapes = [table.by_name[n] for n in ("1g.5gb", "1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb")]
    states: dict[int, int] = {}
    templates: dict[tuple[str, int], bytes] = {}
    made = 0
    while made < count:
        place = rng.randrange(len(names) * GPUS_PER_NODE)
        shape = rng.choice(shapes)
        fit = table.best(states.get(place, 0), shape)
        if fit is None:
            continue
        states[place] = fit.state
        node, gpu = divmod(place, GPUS_PER_NODE)
        key = (shape.profile.name, fit.placement.start)
        if key not in templates:
            identity = RuntimeIdentity("MIG-%UID%-0000-4000-8000-0123456789ab", 7, 0)
            item = Reservation(0, 0, "%GPU%", key[0], fit.placement, identity)
            templates[key] = orjson.dumps(_bound(item))
        yield (
            templates[key]
            .replace(b"%UID%", b"%08x" % made)
            .replace(b"%GPU%", b"GPU-%05d-%d" % (node, gpu))
            .replace(b"%NODE%", names[node].encode())
        )
        made += 1


def _bound(item: Reservation) -> dict[str, object]:
    document = _waiting("%UID%", 4000, 1)
    return {
        **document,
        "metadata": {
            "name": "job-%UID%",
            "namespace": "team-1",
            "uid": "1b4e28ba-2fa1-11d2-883f-%UID%",
            "resourceVersion": "7654321",
            "annotations": {
                keys.POD_NODE: "%NODE%",
                keys.POD_DEVICES_ALLOCATED: encode_devices([[ListedDevice("%GPU%", 4864, 15)]]),
                keys.POD_MIG_ALLOCATIONS: encode_allocations([item]),
            },
        },
        "spec": {**dict(document["spec"]), "nodeName": "%NODE%"},  # type: ignore[call-overload]
        "status": {"phase": "Running"},
    }


def _write(path: Path, documents: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        page: list[bytes] = []
        for document in documents:
            page.append(document)
            if len(page) == PAGE:
                file.write(b"[" + b",".join(page) + b"]\n")
                page.clear()
        if page:
            file.write(b"[" + b",".join(page) + b"]\n")
