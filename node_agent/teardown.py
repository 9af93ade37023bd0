"""Destroys one GPU instance: compute instances first, then itself, then a look that it is gone.

The caller holds the GPU's lock. What is destroyed was found by placement and profile in a fresh
listing, in the same locked section.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from node_agent.errors import InstanceBusy, InstanceUnverified
from node_agent.nvml.ports import DriverNotFound, LiveInstance, MigDriver
from node_agent.ownership import InstanceRecord, InstanceSpec, located
from node_agent.planning import identity_of

logger = logging.getLogger(__name__)


def find_instance(driver: MigDriver, spec: InstanceSpec, profile_id: int) -> LiveInstance | None:
    """The instance of this profile at exactly this placement, in a fresh listing."""
    return next(
        (
            live
            for live in driver.instances(spec.gpu_uuid)
            if live.placement == spec.placement and live.profile_id == profile_id
        ),
        None,
    )


def destroy_record(driver: MigDriver, record: InstanceRecord) -> None:
    """Destroy exactly the record's instance; one that is not it any more is left alone."""
    live = find_instance(driver, record.spec, record.profile_id)
    if live is None:
        return
    known, found = record.identity, identity_of(live)
    same = known is None or (
        live.gpu_instance_id == known.gpu_instance_id and found in (None, known)
    )
    if not same:
        fields = located(record)
        logger.warning("no longer the instance that was made: left alone", extra=fields)
        return
    destroy_live(driver, live)


def destroy_live(driver: MigDriver, live: LiveInstance) -> None:
    """Destroy an instance. Raises :class:`InstanceBusy` while a process is on it.

    An instance that is half destroyed already is finished. Raises :class:`InstanceUnverified` when
    NVML reports success and the instance is still listed.
    """
    where = f"GPU instance {live.gpu_instance_id} at {live.placement} of {live.gpu_uuid}"
    for process in driver.processes(live.gpu_uuid):
        if process.gpu_instance_id == live.gpu_instance_id:
            raise InstanceBusy(f"{where} is in use by process {process.pid}")
    for compute in live.compute_instances:
        _tolerate_absence(
            driver.destroy_compute_instance,
            live.gpu_uuid,
            live.gpu_instance_id,
            compute.compute_instance_id,
        )
    _tolerate_absence(driver.destroy_gpu_instance, live.gpu_uuid, live.gpu_instance_id)
    remains = [
        item
        for item in driver.instances(live.gpu_uuid)
        if (item.placement, item.profile_id) == (live.placement, live.profile_id)
    ]
    if remains:
        raise InstanceUnverified(f"NVML reported {where} as destroyed and still lists it")


def _tolerate_absence(call: Callable[..., None], *ids: object) -> None:
    """Gone already is what destroying wants to reach."""
    try:
        call(*ids)
    except DriverNotFound:
        logger.debug("already absent: %s", ids)
