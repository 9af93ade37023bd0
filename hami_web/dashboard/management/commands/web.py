"""``manage.py web``: the dashboard's server."""

from __future__ import annotations

import argparse
from types import FrameType
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import CommandError

from hami_web.dashboard.installed import installed_map
from hami_web.metrics.exposition import render
from hami_web.metrics.requests import REQUESTS
from hami_web.metrics.server import start_server
from hami_web.startup import RoleCommand, require_cluster

GRACE_S = 5


class DashboardServer(uvicorn.Server):
    """Ends the open event streams first when told to stop: they would keep the server waiting."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """First signal: close the streams and finish requests; second: leave."""
        if self.started:
            installed_map().close()
        super().handle_exit(sig, frame)


class Command(RoleCommand):
    """Serve the dashboard until SIGTERM."""

    help = "Serve the dashboard (HTTP) until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The address; the rest is configured by environment."""
        parser.add_argument(
            "--listen", default=settings.WEB_LISTEN, help="host:port, default HAMI_WEB_LISTEN"
        )

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Run uvicorn in this process."""
        host, port = parse_address(options["listen"])
        require_cluster(settings.KUBECONFIG)
        config = uvicorn.Config(
            "hami_web.asgi:application",
            host=host,
            port=port,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            # Which proxies are believed is a setting of ours (access/network.py).
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        metrics = start_server(settings.METRICS_LISTEN, lambda: render(REQUESTS.collect()))
        try:
            DashboardServer(config).run()
        finally:
            if metrics is not None:
                metrics.close()


def parse_address(text: str) -> tuple[str, int]:
    """Split ``host:port`` or ``[v6]:port``. Raises CommandError naming what is allowed."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise CommandError(f"--listen: {text!r} is not allowed; allowed: host:port, port 0…65535")
    return host.strip("[]"), int(port)
