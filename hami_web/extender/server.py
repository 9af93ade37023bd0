"""The extender's server: gunicorn with one worker process and threads.

One worker, because the cluster's occupancy lives in its memory; threads, because a bind may wait
for a node while filters go on. No preload: threads do not survive a fork.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.util import import_app

from hami_web.extender.serving import serving
from hami_web.extender.worker import ExtenderWorker

APPLICATION = "hami_web.wsgi:build_application()"
KEEP_ALIVE_S = 120
"""Above the 90 s after which Go's client closes idle connections itself: if we closed first, a
call on its way would be lost."""
GRACEFUL_S = 10


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where to listen (``host:port`` or ``unix:path``), with how many threads, with which TLS."""

    listen: str
    threads: int
    tls_cert: Path | None = None
    tls_key: Path | None = None


class ServerLogger(Logger):  # type: ignore[misc]  # gunicorn is untyped
    """Has no handler of its own: its lines are written as all others are."""

    def setup(self, cfg: Any) -> None:
        """Called when the settings are known."""
        super().setup(cfg)
        self.error_log.propagate = True


class ExtenderServer(BaseApplication):  # type: ignore[misc]  # gunicorn is untyped
    """Runs the WSGI application of the extender until SIGTERM."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        """Set what does not vary, and the options."""
        settings: dict[str, object] = {
            "bind": [self._options.listen],
            "workers": 1,
            "worker_class": ExtenderWorker,
            "threads": self._options.threads,
            "preload_app": False,
            "keepalive": KEEP_ALIVE_S,
            "timeout": 60,
            "graceful_timeout": GRACEFUL_S,
            "worker_connections": 1000,
            "control_socket_disable": True,
            "accesslog": None,
            "errorlog": None,
            "logger_class": ServerLogger,
            "loglevel": "warning",
            "worker_exit": _close_application,
        }
        if self._options.tls_cert and self._options.tls_key:
            settings["certfile"] = str(self._options.tls_cert)
            settings["keyfile"] = str(self._options.tls_key)
            certificate = serving(self._options.tls_cert, self._options.tls_key)
            settings["ssl_context"] = lambda _settings, _usual: certificate.context()
        for name, value in settings.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> Any:
        """Build the application, in the worker."""
        return import_app(APPLICATION)


def _close_application(_server: Any, worker: Any) -> None:
    application = getattr(worker, "wsgi", None)
    if application is not None:
        application.close()
