"""Celery's beat without its tracebacks: a queue that is away is told once, and tried every turn."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import Scheduler, SchedulingError

from hami_web.core.trouble import Trouble

logger = logging.getLogger(__name__)


class TaskScheduler(Scheduler):
    """Sends what is due; what cannot be sent expires, and the next turn does all of it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._trouble = Trouble(logger, "tasks cannot be sent: %s; again when they are due")
        super().__init__(*arguments, **options)

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send one task."""
        logger.debug("sending %s", entry.task)
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            self._trouble.tell(error)
        else:
            self._trouble.over()
