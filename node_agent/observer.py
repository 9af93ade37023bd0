"""Who hears of what was done to instances."""

from __future__ import annotations

from node_agent.ownership import InstanceRecord


class Observer:
    """Hears of what was done; this one does nothing with it."""

    def gone(self, record: InstanceRecord) -> None:
        """An instance was seen gone and is about to be forgotten; an error keeps it on record."""

    def took(self, operation: str, seconds: float) -> None:
        """NVML took so long for ``create`` or ``destroy`` of one instance."""
