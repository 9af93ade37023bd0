"""A hold as the annotations that carry it on the bound Pod."""

from __future__ import annotations

import time

from hami_web.core import annotations as keys
from hami_web.core.device_list import encode_devices
from hami_web.core.reservation import encode_allocations
from hami_web.core.signature import KeyRing
from hami_web.scheduling.holds import Hold


def reservation_annotations(
    hold: Hold, ring: KeyRing | None = None, *, now_s: float | None = None
) -> dict[str, str]:
    """Everything that the node's agent and any later reader need, for one write.

    ``now_s`` is Unix time in seconds. Without a ``ring`` the reservation is not signed. Both device
    lists are equal here: the agent erases one as it allocates, the other stays.
    """
    moment = str(int(time.time() if now_s is None else now_s))
    devices = encode_devices(hold.devices)
    annotations = {
        keys.POD_NODE: hold.node,
        keys.POD_TIME: moment,
        keys.POD_DEVICES_TO_ALLOCATE: devices,
        keys.POD_DEVICES_ALLOCATED: devices,
        keys.POD_MIG_ALLOCATIONS: encode_allocations(hold.reservations),
        keys.POD_BIND_PHASE: keys.BIND_PHASE_ALLOCATING,
        keys.POD_BIND_TIME: moment,
    }
    if ring is not None:
        signature = ring.sign(hold.pod_uid, hold.node, hold.reservations)
        annotations[keys.POD_MIG_SIGNATURE] = signature
    return annotations
