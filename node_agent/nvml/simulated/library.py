"""The simulated NVML library: an object with C function pointers for attributes, like a CDLL."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated import (  # noqa: F401  (importing them registers their symbols)
    compute_symbols,
    device_symbols,
    event_symbols,
    field_symbols,
    instance_symbols,
    usage_symbols,
)
from node_agent.nvml.simulated.calling import SYMBOLS, Call, NoEffect, Session, Symbol
from node_agent.nvml.simulated.faults import gpu_of_call, take_fault
from node_agent.nvml.simulated.mutations import Refusal
from node_agent.nvml.simulated.session_symbols import SESSION_FUNCTIONS, error_string_pointer
from node_agent.nvml.simulated.state import Fault, Node, SimulatorError
from node_agent.nvml.simulated.store import StateStore

logger = logging.getLogger(__name__)

KILLED_STATUS = 137
_DRIVER_CODES = {
    "not_loaded": NvmlCode.DRIVER_NOT_LOADED,
    "library_missing": NvmlCode.LIBRARY_NOT_FOUND,
    "mismatch": NvmlCode.LIB_RM_VERSION_MISMATCH,
}


def exported_symbols() -> tuple[str, ...]:
    """Names of all functions of the library, as nvml.h exports them."""
    return tuple(sorted(SYMBOLS))


class SimulatedLibrary:
    """Stands where pynvml keeps ``nvmlLib``. One for each process; its node is in ``directory``.

    An attribute is a C function pointer, made once; a symbol that the library lacks or that the
    node hides raises AttributeError, which pynvml turns into FUNCTION_NOT_FOUND.
    """

    def __init__(self, directory: Path) -> None:
        self.store = StateStore(directory)
        self.session = Session()
        self._pointers: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        if name == "nvmlErrorString":
            return error_string_pointer()
        if name not in SYMBOLS or self._hidden(name):
            raise AttributeError(name)
        with self._lock:
            if name not in self._pointers:
                self._pointers[name] = self._pointer(SYMBOLS[name])
            return self._pointers[name]

    def close(self) -> None:
        self.store.close()

    def _hidden(self, name: str) -> bool:
        return self.store.exists() and name in self.store.read().options.hidden_symbols

    def _pointer(self, symbol: Symbol) -> Any:
        def invoke(*arguments: Any) -> int:
            try:
                return int(self._call(symbol, arguments))
            except Refusal as refusal:
                return refusal.code
            except SimulatorError as error:
                logger.warning("the simulated node cannot be read: %s", error)
                return int(NvmlCode.DRIVER_NOT_LOADED)
            except Exception:  # nothing may cross a C boundary; the text must not get lost
                logger.exception("%s failed inside the simulator", symbol.name)
                return int(NvmlCode.UNKNOWN)

        return ctypes.CFUNCTYPE(ctypes.c_int, *symbol.arguments)(invoke)

    def _call(self, symbol: Symbol, arguments: tuple[Any, ...]) -> int:
        node = self.store.read()
        self._check(symbol, node)
        fault = None
        if node.faults:
            gpu_uuid = gpu_of_call(node, arguments)
            fault = take_fault(self.store, node, symbol.name, gpu_uuid)
        if fault is None:
            return self._run(symbol, arguments, node, effect=True)
        return self._call_with(fault, symbol, arguments)

    def _check(self, symbol: Symbol, node: Node) -> None:
        if symbol.name in node.options.hidden_symbols:
            raise Refusal(NvmlCode.FUNCTION_NOT_FOUND)
        if node.options.driver in _DRIVER_CODES:
            raise Refusal(_DRIVER_CODES[node.options.driver])
        if symbol.name not in SESSION_FUNCTIONS and not self.session.is_open(node):
            raise Refusal(NvmlCode.UNINITIALIZED)

    def _call_with(self, fault: Fault, symbol: Symbol, arguments: tuple[Any, ...]) -> int:
        time.sleep(fault.latency_s)
        if fault.kill == "before":
            os._exit(KILLED_STATUS)
        works = fault.code is None or fault.effect
        if not works and fault.code != NvmlCode.SUCCESS:
            raise Refusal(fault.code or 0)
        code = self._run(symbol, arguments, self.store.read(), effect=works)
        if fault.kill == "after":
            os._exit(KILLED_STATUS)
        return code if fault.code is None else fault.code

    def _run(self, symbol: Symbol, arguments: tuple[Any, ...], node: Node, *, effect: bool) -> int:
        try:
            return (
                symbol.function(Call(self.store, self.session, node, effect=effect), *arguments)
                or 0
            )
        except NoEffect:
            return NvmlCode.SUCCESS
