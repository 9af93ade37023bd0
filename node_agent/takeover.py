"""What a session does before it serves: adopt, prepare idle GPUs, undo what a reboot did."""

from __future__ import annotations

import logging

from node_agent.adoption import Adoption, AdoptionReport
from node_agent.delivery import Delivery
from node_agent.errors import AgentError
from node_agent.instances import InstanceManager
from node_agent.journal import Journal
from node_agent.nvml.ports import DriverError, DriverUnavailable
from node_agent.preparation import Preparation
from node_agent.restoration import Restoration

logger = logging.getLogger(__name__)


class TakeOver:
    """The steps in their order; GPUs that answer late are taken over later."""

    def __init__(
        self,
        adoption: Adoption,
        preparation: Preparation | None,
        restoration: Restoration,
        delivery: Delivery,
        instances: InstanceManager,
        journal: Journal,
    ) -> None:
        """Without a ``preparation`` idle GPUs are left as they are."""
        self._adoption = adoption
        self._preparation = preparation
        self._restoration = restoration
        self._delivery = delivery
        self._instances = instances
        self._journal = journal

    def run(self) -> AdoptionReport:
        """The whole of it; returns what was seen last.

        Raises :class:`AgentError` or :class:`DriverError` to try again.
        """
        report = self._adoption.run()
        if self._preparation is not None and self._preparation.run(report, self._journal.doubt):
            report = self._adoption.run(anew=True)
        self._complete(report)
        return report

    def late(self) -> None:
        """A GPU that could not be read at the start may carry instances of Pods that run.

        And what could not be made anew beside another owner may be free to be made now.
        """
        if self._adoption.complete and not self._restoration.waiting:
            return
        try:
            self._complete(self._adoption.run())
        except DriverUnavailable:
            raise
        except (AgentError, DriverError) as error:
            logger.warning("what was left at the start waits: %s", error)

    def _complete(self, report: AdoptionReport) -> None:
        hardware = report.hardware
        self._restoration.run(report, self._journal.earlier())
        if hardware.complete and not self._restoration.waiting:
            self._journal.forget_earlier()
        self._delivery.rebuild(self._instances.records, hardware.live, complete=hardware.complete)
