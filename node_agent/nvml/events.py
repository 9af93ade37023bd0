"""NVML's error events of several GPUs, over one event set.

Events are asked for on GPUs, never on MIG devices; their data says which instance is meant, where
the driver knows (nvml.h, ``nvmlEventData_t``).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from node_agent.nvml import binding
from node_agent.nvml.binding import NvmlSession, call_nvml
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.ports import DriverError, DriverEvent, DriverUnavailable
from node_agent.nvml.reading import device_handle

logger = logging.getLogger(__name__)

_DOUBLE_BIT_ECC: Final = 0x2
_XID_CRITICAL: Final = 0x8
_RECOVERY_ACTION: Final = 0x8000
_WANTED: Final = _DOUBLE_BIT_ECC | _XID_CRITICAL | _RECOVERY_ACTION


class NvmlEvents:
    """See :class:`~node_agent.nvml.ports.DriverEvents`. Raises :class:`DriverError`."""

    def __init__(self, session: NvmlSession, uuids: Sequence[str]) -> None:
        self._session = session
        self._closed = False
        with session.use("events"):
            self._set = call_nvml("nvmlEventSetCreate")
            for uuid in uuids:
                self._register(uuid)

    def wait(self, seconds: float) -> DriverEvent | None:
        with self._session.use("wait for events"):
            try:
                data = call_nvml("nvmlEventSetWait_v2", self._set, max(1, int(seconds * 1000)))
            except DriverError as error:
                if error.code == NvmlCode.TIMEOUT:
                    return None
                raise
            return DriverEvent(
                _uuid(data.device),
                int(data.eventData) if data.eventType == _XID_CRITICAL else 0,
                _known(data.gpuInstanceId),
                _known(data.computeInstanceId),
                recovery=data.eventType == _RECOVERY_ACTION,
            )

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            with self._session.use("close the events"):
                call_nvml("nvmlEventSetFree", self._set)
        except DriverError as error:
            logger.debug("the event set had ended before: %s", error)

    def _register(self, uuid: str) -> None:
        try:
            device = device_handle(uuid)
            wanted = _WANTED & int(call_nvml("nvmlDeviceGetSupportedEventTypes", device))
            if wanted:
                call_nvml("nvmlDeviceRegisterEvents", device, wanted, self._set)
        except DriverUnavailable:
            self.close()
            raise
        except DriverError as error:
            logger.warning("errors of GPU %s are not reported: %s", uuid, error)


def _uuid(device: Any) -> str:
    value = call_nvml("nvmlDeviceGetUUID", device)
    return value.decode() if isinstance(value, bytes) else str(value)


def _known(number: int) -> int | None:
    return None if number == binding.ANY_INSTANCE else int(number)
