"""Field values: of all fields only the action that the driver asks for."""

from __future__ import annotations

import time
from ctypes import c_int, c_void_p, sizeof
from typing import Final

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated import layout
from node_agent.nvml.simulated.calling import Call, at, symbol
from node_agent.nvml.simulated.mutations import Refusal
from node_agent.nvml.simulated.state import Gpu

FIELD_RECOVERY_ACTION: Final = 230
_UNSIGNED_INT: Final = 1
_CODES: Final = {
    "known": NvmlCode.SUCCESS,
    "unsupported": NvmlCode.NOT_SUPPORTED,
    "unknown": NvmlCode.INVALID_ARGUMENT,
}


@symbol("nvmlDeviceGetFieldValues", takes=(c_void_p, c_int, c_void_p))
def field_values(call: Call, device: int | None, count: int, values: int | None) -> None:
    """Success even where no field can be had: each value has a return code of its own."""
    gpu = call.gpu(device)
    if values is None or count < 1:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    for position in range(count):
        address = values + position * sizeof(layout.FieldValue)
        _fill(call, gpu, at(layout.FieldValue, address))


def _fill(call: Call, gpu: Gpu, value: layout.FieldValue) -> None:
    value.timestamp = time.time_ns() // 1000
    if value.fieldId != FIELD_RECOVERY_ACTION:
        value.nvmlReturn = NvmlCode.NOT_SUPPORTED
        return
    value.nvmlReturn = _CODES[call.node.options.recovery_field]
    value.valueType = _UNSIGNED_INT
    value.value.uiVal = gpu.recovery_action
