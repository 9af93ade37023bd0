"""gunicorn's threaded worker, told apart by what it does when it is asked to stop."""

from __future__ import annotations

import threading
from typing import Any

from gunicorn.workers.gthread import ThreadWorker


class ExtenderWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn is untyped
    """Lets another replica lead at once, and sends callers of a standby there."""

    def handle_request(self, req: Any, conn: Any) -> bool:
        """Close the connection after a 503: a kept one would lead to this replica for ever."""
        keeps = bool(super().handle_request(req, conn))
        return keeps and not self.wsgi.sent_away

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: retire on a thread, since a signal handler must not wait."""
        application = getattr(self, "wsgi", None)
        if self.alive and application is not None:
            threading.Thread(target=application.retire, name="retire").start()
        super().handle_exit(sig, frame)
