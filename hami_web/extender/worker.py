"""gunicorn's threaded worker, told apart by what it does when it is asked to stop."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from gunicorn.workers.gthread import ThreadWorker

_LINGER_MS: Final = 20
"""How long a thread waits for the next call on its connection before it hands it back."""


class ExtenderWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn is untyped
    """Lets another replica lead at once, and sends callers of a standby there."""

    def handle(self, conn: Any) -> Any:
        """Answer a call, and those that follow at once on the same thread.

        kube-scheduler asks for one Pod after another; the way back to the loop that watches idle
        connections and out to a thread again would take a good part of the time of a decision.
        """
        keeps = super().handle(conn)
        while keeps is True and self.alive and self._has_threads_left() and _speaks_again(conn):
            keeps = super().handle(conn)
        return keeps

    def handle_request(self, req: Any, conn: Any) -> bool:
        """Close the connection after a 503: a kept one would lead to this replica for ever."""
        with _one_packet(conn.sock):
            keeps = bool(super().handle_request(req, conn))
        return keeps and not self.wsgi.sent_away

    def _has_threads_left(self) -> bool:
        """Whether every connection could have a thread to itself."""
        return bool(self.nr_conns < self.cfg.threads)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: retire on a thread, since a signal handler must not wait."""
        application = getattr(self, "wsgi", None)
        if self.alive and application is not None:
            threading.Thread(target=application.retire, name="retire").start()
        super().handle_exit(sig, frame)


def _speaks_again(conn: Any) -> bool:
    poll = select.poll()
    poll.register(conn.sock, select.POLLIN)
    return bool(poll.poll(_LINGER_MS))


@contextmanager
def _one_packet(connection: socket.socket) -> Iterator[None]:
    """Send head and body of an answer together: the caller wakes once."""
    option = getattr(socket, "TCP_CORK", None)  # Linux
    if option is None or connection.family == socket.AF_UNIX:
        yield
        return
    connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    try:
        yield
    finally:
        with suppress(OSError):  # the caller has gone
            connection.setsockopt(socket.IPPROTO_TCP, option, 0)
