"""``manage.py extender``: serve kube-scheduler and the API server."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import CommandParser

from hami_web.extender.server import ExtenderServer, ServerOptions
from hami_web.startup import RoleCommand, require_cluster


class Command(RoleCommand):
    """Starts the server in this process; SIGTERM ends it."""

    help = (
        "Serve /filter, /bind, /webhook, /healthz, /readyz, /metrics and /decisions until SIGTERM."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--listen",
            default=settings.EXTENDER_LISTEN,
            help="host:port or unix:path (HAMI_EXTENDER_LISTEN; %(default)s)",
        )
        parser.add_argument(
            "--threads",
            type=int,
            default=settings.EXTENDER_THREADS,
            help="answering threads (HAMI_EXTENDER_THREADS; %(default)s)",
        )

    def handle(self, *_arguments: object, **options: object) -> None:
        require_cluster(settings.KUBECONFIG)
        ExtenderServer(
            ServerOptions(
                listen=str(options["listen"]),
                threads=int(str(options["threads"])),
                tls_cert=settings.EXTENDER_TLS_CERT,
                tls_key=settings.EXTENDER_TLS_KEY,
            )
        ).run()
