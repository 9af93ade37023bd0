"""Session and system functions of the simulated library."""

from __future__ import annotations

import ctypes
from ctypes import c_uint, c_void_p
from functools import cache
from typing import Any

from node_agent.nvml.codes import NvmlCode, code_text
from node_agent.nvml.simulated.calling import Call, symbol, write_text, write_uint
from node_agent.nvml.simulated.mutations import Refusal

NVML_VERSION = "13.580.95.05"
CUDA_DRIVER_VERSION = 13000
_INIT_FUNCTIONS = ("nvmlInitWithFlags", "nvmlInit_v2", "nvmlInit")
# Functions that work without an open session.
SESSION_FUNCTIONS = (*_INIT_FUNCTIONS, "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion")


@symbol("nvmlInitWithFlags", takes=(c_uint,))
def init_with_flags(call: Call, _flags: int) -> None:
    with call.session.lock:
        call.session.open(call.node)


@symbol("nvmlInit_v2", "nvmlInit", takes=())
def init(call: Call) -> None:
    init_with_flags(call, 0)


@symbol("nvmlShutdown", takes=())
def shutdown(call: Call) -> None:
    with call.session.lock:
        if call.session.count < 1:
            raise Refusal(NvmlCode.UNINITIALIZED)
        call.session.count -= 1


@symbol("nvmlSystemGetDriverVersion", takes=(c_void_p, c_uint))
def driver_version(call: Call, text: int | None, length: int) -> None:
    write_text(text, length, call.node.driver_version)


@symbol("nvmlSystemGetNVMLVersion", takes=(c_void_p, c_uint))
def nvml_version(_call: Call, text: int | None, length: int) -> None:
    write_text(text, length, NVML_VERSION)


@symbol("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion", takes=(c_void_p,))
def cuda_driver_version(_call: Call, version: int | None) -> None:
    write_uint(version, CUDA_DRIVER_VERSION)


@cache
def error_string_pointer() -> Any:
    """``nvmlErrorString``: a pointer to a text that lives as long as the process."""
    texts = {code: ctypes.create_string_buffer(code_text(code).encode()) for code in NvmlCode}
    unknown = ctypes.create_string_buffer(b"unknown error")

    def error_string(code: int) -> int:
        known = texts.get(NvmlCode(code), unknown) if code in texts else unknown
        return ctypes.addressof(known)

    return ctypes.CFUNCTYPE(c_void_p, ctypes.c_int)(error_string)
