"""Keys that the scheduler, the agent and their users share on nodes and Pods (HAMi v2.10)."""

from typing import Final

# on nodes
NODE_REGISTER: Final = "hami.io/node-nvidia-register"
NODE_LOCK: Final = "hami.io/mutex.lock"
NODE_DEVICE_CORDON: Final = "hami.io/device-cordon"
NODE_MIG_BLOCKED: Final = "hami.io/node-mig-blocked"
NODE_MIG_VERIFIED: Final = "hami.io/node-mig-verified"
"""``true`` where the agent takes signed reservations only, and publishes as blocked what is live
without one."""
NODE_MIG_OWNER: Final = "hami.io/node-mig-owner"
"""Which Pod of the node, in words, may change the MIG layout beside the agent; absent for none."""

# on Pods, written by the scheduler with the Binding
POD_NODE: Final = "hami.io/vgpu-node"
POD_TIME: Final = "hami.io/vgpu-time"
POD_DEVICES_TO_ALLOCATE: Final = "hami.io/vgpu-devices-to-allocate"
POD_DEVICES_ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
POD_MIG_ALLOCATIONS: Final = "hami.io/vgpu-mig-allocations"
POD_BIND_PHASE: Final = "hami.io/bind-phase"
POD_BIND_TIME: Final = "hami.io/bind-time"
POD_MIG_SIGNATURE: Final = "hami.io/vgpu-mig-signature"

# on Pods, written by the extender to wake kube-scheduler for a Pod that waits; a time, for people
POD_RETRY_AT: Final = "hami.io/retry-at"

OWNED_ON_PODS: Final = (
    POD_NODE,
    POD_TIME,
    POD_DEVICES_TO_ALLOCATE,
    POD_DEVICES_ALLOCATED,
    POD_MIG_ALLOCATIONS,
    POD_BIND_PHASE,
    POD_BIND_TIME,
    POD_MIG_SIGNATURE,
    POD_RETRY_AT,
)
"""Annotations that only the scheduler and the agent may write. ``POD_NODE`` is a label as well."""

# on Pods, written by their users
POD_MODE: Final = "nvidia.com/vgpu-mode"
POD_PROFILE: Final = "nvidia.com/mig-profile"
POD_USE_GPU_TYPE: Final = "nvidia.com/use-gputype"
POD_NOUSE_GPU_TYPE: Final = "nvidia.com/nouse-gputype"
POD_USE_GPU_UUID: Final = "nvidia.com/use-gpuuuid"
POD_NOUSE_GPU_UUID: Final = "nvidia.com/nouse-gpuuuid"

POD_DO_NOT_EVICT: Final = "hami.io/do-not-evict"
POD_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
POD_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Others read these two on Pods; a Pod that may not be moved for them is not moved for us."""

POD_NUMA_BIND: Final = "nvidia.com/numa-bind"
POD_NODE_POLICY: Final = "hami.io/node-scheduler-policy"
POD_GPU_POLICY: Final = "hami.io/gpu-scheduler-policy"
POD_DEVICE_WEIGHTS: Final = "hami.io/device-scoring-weights"

BIND_PHASE_ALLOCATING: Final = "allocating"
BIND_PHASE_SUCCESS: Final = "success"
BIND_PHASE_FAILED: Final = "failed"

MODE_MIG: Final = "mig"
MODES: Final = (MODE_MIG, "hami-core", "mps")
"""Modes of a GPU that a Pod may name; only the first is ours."""
VENDOR: Final = "NVIDIA"

# resources of containers
RESOURCE_COUNT: Final = "nvidia.com/gpu"
RESOURCE_MEMORY: Final = "nvidia.com/gpumem"
RESOURCE_MEMORY_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
RESOURCE_CORES: Final = "nvidia.com/gpucores"
LEGACY_PROFILE_PREFIX: Final = "nvidia.com/mig-"
"""Resources of fixed MIG geometries, one per profile: ``nvidia.com/mig-2g.10gb``."""

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
"""Environment variable by which the container runtime gives GPUs to a container."""
NO_DEVICES: Final = "void"
