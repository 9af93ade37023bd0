"""gunicorn's threaded worker, told apart by what it does when it is asked to stop."""

from __future__ import annotations

import threading
from typing import Any

from gunicorn.workers.gthread import ThreadWorker


class ExtenderWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn is untyped
    """Lets another replica lead at once, while connections still wind down."""

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: retire on a thread, since a signal handler must not wait."""
        application = getattr(self, "wsgi", None)
        if self.alive and application is not None:
            threading.Thread(target=application.retire, name="retire").start()
        super().handle_exit(sig, frame)
