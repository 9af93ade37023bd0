"""Health of the node's GPUs: what an Xid error means, for which instance, and for how long.

Application errors blame the program, not the GPU. An error that needs a reset keeps the GPU out
until the agent starts anew: a reset needs every client gone, the agent too. Any other error keeps
it out until a probe is clean, unless it keeps coming back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from node_agent.metrics import AgentMetrics
from node_agent.nvml.ports import DriverError, DriverEvent, MigDriver
from node_agent.ownership import InstanceRecord
from node_agent.podevents import PodEvents, PodReference, Reason

logger = logging.getLogger(__name__)


class XidClass(StrEnum):
    """What has to happen after an error."""

    APPLICATION = "application"
    NEEDS_RESET = "needs-reset"
    FATAL = "fatal"
    OTHER = "other"


_APPLICATION: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Those that NVIDIA's device plugin and DRA driver take for errors of the application."""
_NEEDS_RESET: Final = frozenset({46, 62, 64, 95, 119, 120, 140})
"""Resolution "reset the GPU" in NVIDIA's catalogue of Xid errors."""
_FATAL: Final = frozenset({79})
"""Off the bus: the node must be looked at."""
_QUIET_SECONDS: Final = 30.0
_FLAPS_MOST: Final = 3
_FLAP_SECONDS: Final = 3600.0


def classify(xid: int) -> XidClass:
    """The class of an Xid; 0 (memory error without one) and unknown ones are ``OTHER``."""
    if xid in _APPLICATION:
        return XidClass.APPLICATION
    if xid in _NEEDS_RESET:
        return XidClass.NEEDS_RESET
    return XidClass.FATAL if xid in _FATAL else XidClass.OTHER


@dataclass(slots=True)
class _Illness:
    reason: str
    since: float
    lasting: bool


class Ailments:
    """What is wrong with which GPU, during one NVML session. Thread-safe."""

    def __init__(
        self,
        metrics: AgentMetrics,
        events: PodEvents,
        records: Callable[[], tuple[InstanceRecord, ...]],
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``changed`` is called when a GPU falls ill or recovers."""
        self._metrics = metrics
        self._events = events
        self._records = records
        self._changed = changed
        self._clock = clock
        self._mutex = threading.Lock()
        self._ill: dict[str, _Illness] = {}
        self._past: dict[str, list[float]] = {}

    def of(self, gpu_uuid: str) -> str:
        """What is wrong with a GPU, in one line, or an empty text."""
        with self._mutex:
            illness = self._ill.get(gpu_uuid)
            return illness.reason if illness else ""

    def take(self, event: DriverEvent) -> None:
        """An error was reported, or a change of what the driver asks for."""
        if event.recovery:
            self._changed()
            return
        kind = classify(event.xid)
        self._metrics.xids.labels(kind.value).inc()
        instance = event.gpu_instance_id
        name = f"Xid {event.xid}" if event.xid else "an uncorrectable memory error"
        where = event.gpu_uuid if instance is None else f"{event.gpu_uuid} instance {instance}"
        logger.warning("%s on %s (%s)", name, where, kind.value)
        self._tell(event, kind, name)
        whole_gpu = instance is None or kind in (XidClass.NEEDS_RESET, XidClass.FATAL)
        if kind is not XidClass.APPLICATION and whole_gpu:
            self._fall_ill(event.gpu_uuid, kind, name)

    def probe(self, driver: MigDriver) -> None:
        """Look whether GPUs that have been quiet for long enough work again."""
        now = self._clock()
        with self._mutex:
            due = [
                uuid
                for uuid, illness in self._ill.items()
                if not illness.lasting and now - illness.since >= _QUIET_SECONDS
            ]
        for uuid in due:
            if _is_clean(driver, uuid):
                with self._mutex:
                    self._ill.pop(uuid, None)
                logger.info("GPU %s works again after a clean probe", uuid)
                self._changed()

    def _fall_ill(self, uuid: str, kind: XidClass, name: str) -> None:
        now = self._clock()
        with self._mutex:
            known = self._ill.get(uuid)
            if known is None:
                past = [t for t in self._past.get(uuid, []) if now - t < _FLAP_SECONDS]
                self._past[uuid] = [*past, now]
            flaps = len(self._past.get(uuid, []))
            lasting = kind is not XidClass.OTHER or flaps > _FLAPS_MOST
            if known is not None and known.lasting:
                return
            self._ill[uuid] = _Illness(_reason(name, kind, flaps), now, lasting)
        self._changed()

    def _tell(self, event: DriverEvent, kind: XidClass, name: str) -> None:
        """An error of one instance concerns its Pod; one of the whole GPU all Pods on it."""
        instance = event.gpu_instance_id
        if instance is None and kind is XidClass.APPLICATION:
            return
        for record in self._records():
            identity = record.identity
            mine = identity is not None and record.spec.gpu_uuid == event.gpu_uuid
            if mine and identity is not None and instance in (None, identity.gpu_instance_id):
                self._events.tell(
                    PodReference(record.namespace, record.pod_name, record.owner.pod_uid),
                    Reason.GPU_ERROR,
                    f"{name} ({kind.value}) on {record.spec}",
                )


def _reason(name: str, kind: XidClass, flaps: int) -> str:
    if kind is XidClass.FATAL:
        return f"{name}: the GPU fell off the bus, the node needs attention"
    if kind is XidClass.NEEDS_RESET:
        return f"{name}: the GPU needs a reset (drain the node, stop the agent, nvidia-smi -r)"
    if flaps > _FLAPS_MOST:
        return f"{name}: {flaps} times within an hour, it stays out until the agent is restarted"
    return f"{name}: it comes back after {_QUIET_SECONDS:g} s without errors and a clean probe"


def _is_clean(driver: MigDriver, uuid: str) -> bool:
    try:
        active = driver.gpu(uuid).mig_active
        driver.instances(uuid)
        driver.processes(uuid)
    except DriverError as error:
        logger.info("GPU %s is not well yet: %s", uuid, error)
        return False
    return active
