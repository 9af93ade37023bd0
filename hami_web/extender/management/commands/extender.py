"""``manage.py extender``: serve kube-scheduler and the API server."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hami_web.extender.server import ExtenderServer, ServerOptions


class Command(BaseCommand):
    """Starts the server in this process; SIGTERM ends it."""

    help = "Serve /filter, /bind, /webhook, /healthz, /readyz and /metrics until SIGTERM."
    requires_system_checks = ()

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
        cert, key = settings.EXTENDER_TLS_CERT, settings.EXTENDER_TLS_KEY
        if (cert is None) != (key is None):
            raise CommandError("HAMI_EXTENDER_TLS_CERT, HAMI_EXTENDER_TLS_KEY: set both or none")
        for path in (cert, key):
            if path is not None and not path.is_file():
                raise CommandError(f"{path}: no such file")
        ExtenderServer(
            ServerOptions(
                listen=str(options["listen"]),
                threads=int(str(options["threads"])),
                tls_cert=cert,
                tls_key=key,
            )
        ).run()
