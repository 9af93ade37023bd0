"""Every method of a MigDriver that asks NVML, as a call on one GPU."""

from __future__ import annotations

from collections.abc import Callable

from hami_web.core.placement import Placement
from node_agent.nvml.ports import MigDriver

CALLS: dict[str, Callable[[MigDriver, str], object]] = {
    "gpus": lambda driver, _gpu: driver.gpus(),
    "gpu": lambda driver, gpu: driver.gpu(gpu),
    "profiles": lambda driver, gpu: driver.profiles(gpu),
    "instances": lambda driver, gpu: driver.instances(gpu),
    "create_gpu_instance": lambda driver, gpu: driver.create_gpu_instance(gpu, 19, Placement(0, 1)),
    "create_compute_instance": lambda driver, gpu: driver.create_compute_instance(gpu, 0),
    "destroy_compute_instance": lambda driver, gpu: driver.destroy_compute_instance(gpu, 0, 0),
    "destroy_gpu_instance": lambda driver, gpu: driver.destroy_gpu_instance(gpu, 0),
    "processes": lambda driver, gpu: driver.processes(gpu),
    "enable_mig_mode": lambda driver, gpu: driver.enable_mig_mode(gpu),
    "guest": lambda driver, gpu: driver.guest(gpu),
    "recovery_action": lambda driver, gpu: driver.recovery_action(gpu),
    "remaining_capacity": lambda driver, gpu: driver.remaining_capacity(gpu, 19),
}
