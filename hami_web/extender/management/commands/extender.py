"""``manage.py extender``: serve kube-scheduler and the API server."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.errors import InvalidConfiguration
from hami_web.extender.server import ExtenderServer, ServerOptions


class Command(BaseCommand):
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
        try:
            OfficialConnection(settings.KUBECONFIG).close()
        except InvalidConfiguration as error:
            raise CommandError(f"HAMI_KUBECONFIG: {error}") from error
        ExtenderServer(
            ServerOptions(
                listen=str(options["listen"]),
                threads=int(str(options["threads"])),
                tls_cert=settings.EXTENDER_TLS_CERT,
                tls_key=settings.EXTENDER_TLS_KEY,
            )
        ).run()
