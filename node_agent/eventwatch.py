"""Follows NVML's error events of all GPUs that answer, for as long as an NVML session lasts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from node_agent.ailments import Ailments
from node_agent.nvml.ports import (
    DriverError,
    DriverGpuLost,
    DriverNotSupported,
    DriverUnavailable,
    MigDriver,
)

logger = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 0.05
"""Short, since nothing ends a wait in NVML early: a stopping agent waits this long."""
_RETRY_SECONDS: Final = 1.0


class EventWatch:
    """One event set after another; a lost GPU ends one, and the next goes without it."""

    def __init__(self, driver: MigDriver, ailments: Ailments, changed: Callable[[], None]) -> None:
        """``changed`` is called when a GPU is lost or NVML is gone."""
        self._driver = driver
        self._ailments = ailments
        self._changed = changed

    def run(self, over: threading.Event) -> None:
        """Follow until told to stop or NVML is gone."""
        while not over.is_set():
            try:
                self._follow(over)
            except DriverUnavailable:
                self._changed()
                return
            except DriverNotSupported as error:
                logger.warning("this driver reports no errors of GPUs: %s", error)
                return
            except DriverGpuLost as error:
                logger.warning("a GPU is lost: %s", error)
                self._changed()
                over.wait(_RETRY_SECONDS)
            except DriverError as error:
                logger.warning("errors of GPUs are followed again after: %s", error)
                over.wait(_RETRY_SECONDS)

    def _follow(self, over: threading.Event) -> None:
        events = self._driver.events([gpu.uuid for gpu in self._driver.gpus()])
        try:
            while not over.is_set():
                event = events.wait(_WAIT_SECONDS)
                if event is not None:
                    self._ailments.take(event)
                self._ailments.probe(self._driver)
        finally:
            events.close()
