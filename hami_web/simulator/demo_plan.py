"""What the demo's cluster is made of, and the Pods that its stories create."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hami_web.core import annotations as keys
from hami_web.simulator.documents import JsonObject
from hami_web.simulator.kubelet import STOP_SECONDS

NAMESPACE: Final = "demo"
CONTAINER: Final = "main"


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node to simulate: GPU models by key, and which GPU-instance ids the driver gives.

    ``create_s`` is how long the driver takes to create a GPU instance, in seconds.
    """

    name: str
    gpus: tuple[str, ...]
    id_map: str = "identity"
    create_s: float = 0.0

    @property
    def description(self) -> str:
        counts = {model: self.gpus.count(model) for model in self.gpus}
        gpus = ", ".join(f"{count} {model}" for model, count in counts.items())
        return f"{self.name} ({gpus})"


A100: Final = "a100-sxm4-40gb"
H100: Final = "h100-sxm5-80gb"

# About what a driver takes; it makes a reservation visible before its instance exists.
_CREATE_S: Final = 0.6
SHOW_NODES: Final = (
    NodePlan("gpu-01", (A100, A100), create_s=_CREATE_S),
    # On some driver versions an H100 numbers its instances the other way round; one of these does.
    NodePlan("gpu-02", (H100, H100), id_map="mixed", create_s=_CREATE_S),
    NodePlan("gpu-03", ("rtx-pro-6000-se",), create_s=_CREATE_S),
    NodePlan("gpu-04", ("a30",) * 4, create_s=_CREATE_S),
)
CHECK_NODES: Final = (
    NodePlan("gpu-a100-1", (A100,)),
    NodePlan("gpu-h100-1", (H100,), id_map="swapped"),
)


@dataclass(frozen=True, slots=True)
class PodPlan:
    """A Pod with one container that wants equal MIG devices.

    ``memory_mib`` is asked for per device, in MiB; ``gpu_type`` is part of a model's name;
    ``stop_s`` is how long its container takes to end when the Pod is deleted, in seconds.
    """

    name: str
    memory_mib: int
    devices: int = 1
    gpu_type: str = ""
    stop_s: float = 0.0

    @property
    def wish(self) -> str:
        """What it asks for, in words."""
        what = f"{self.memory_mib} MiB of GPU memory"
        return what if self.devices == 1 else f"{self.devices} devices with {what} each"

    def document(self) -> JsonObject:
        """The Pod as it is created."""
        annotations = {keys.POD_MODE: keys.MODE_MIG, STOP_SECONDS: f"{self.stop_s:g}"}
        if self.gpu_type:
            annotations[keys.POD_USE_GPU_TYPE] = self.gpu_type
        limits = {
            keys.RESOURCE_COUNT: str(self.devices),
            keys.RESOURCE_MEMORY: str(self.memory_mib),
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "annotations": annotations},
            "spec": {
                "containers": [
                    {"name": CONTAINER, "image": "demo/job:1", "resources": {"limits": limits}}
                ]
            },
        }


@dataclass(frozen=True, slots=True)
class ForeignSpot:
    """Where somebody makes an instance by hand."""

    node: str
    gpu_index: int
    profile: str


FULL: Final = 7
"""Instances of the smallest profile that an A100 holds (its instance count in NVML)."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays in the story.

    ``everyday`` are the Pods of the other nodes, ``a100s`` how many GPUs small Pods fill;
    ``wanted`` is the profile that the waiting Pod needs, and ``foreign`` is made past everyone.
    """

    everyday: tuple[PodPlan, ...]
    a100s: int
    wanted: str
    foreign: ForeignSpot

    @property
    def small(self) -> int:
        """How many small Pods fill the A100s."""
        return FULL * self.a100s


SMALL_MIB: Final = 4000
"""MiB that the smallest profile of an A100 40 GB covers."""
LARGER_MIB: Final = 8000
"""MiB that need its next profile, of two memory slices."""
SHOW_CAST: Final = Cast(
    everyday=(
        PodPlan("llm-serving", 38000, gpu_type="H100"),
        PodPlan("speech-to-text", 5500, gpu_type="A30"),
        PodPlan("cad-viewer", 47000, gpu_type="RTX PRO"),
        PodPlan("embeddings", 9000, gpu_type="H100"),
        PodPlan("notebook-lena", 11000, gpu_type="A30"),
        PodPlan("video-encode", 24000, gpu_type="RTX PRO"),
        PodPlan("vision-train", 19000, devices=2, gpu_type="H100"),
        PodPlan("notebook-wei", 5500, gpu_type="A30"),
    ),
    a100s=2,
    wanted="2g.10gb",
    foreign=ForeignSpot("gpu-04", 3, "2g.12gb"),
)
CHECK_CAST: Final = Cast(
    everyday=(PodPlan("embeddings", 9000, gpu_type="H100"),),
    a100s=1,
    wanted="2g.10gb",
    foreign=ForeignSpot("gpu-h100-1", 0, "3g.40gb"),
)
