"""``manage.py setup``: make the Secrets of an installation that are missing."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.errors import ClusterError, Forbidden, Unauthorized
from hami_web.cluster.transport import Transport
from hami_web.core.faults import Fault
from hami_web.environment import Refused
from hami_web.extender.installing import Installer, SetupFailed, Wanted
from hami_web.startup import RoleCommand, require_cluster


class Command(RoleCommand):
    """Ends when all is there; may run as often as anyone likes."""

    help = "Make the Secrets that HAMI_NAMESPACE lacks; replace none, renew the certificate."
    checks_settings = False

    def add_arguments(self, parser: CommandParser) -> None:
        """What is wanted; nothing by default."""
        parser.add_argument("--signing-keys", action="store_true", help="keys of reservations")
        parser.add_argument("--secret-key", action="store_true", help="key of sessions")
        parser.add_argument("--admin", action="store_true", help="password of the first admin")
        parser.add_argument("--certificate", action="store_true", help="CA and certificate")
        parser.add_argument(
            "--webhook", action="store_true", help="tell the API server to trust that CA"
        )

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Make it."""
        wanted = Wanted(
            signing_keys=options["signing_keys"],
            secret_key=options["secret_key"],
            admin=options["admin"],
            certificate=options["certificate"] or options["webhook"],
            webhook=options["webhook"],
        )
        require_cluster(settings.KUBECONFIG)
        try:
            connection = OfficialConnection(settings.KUBECONFIG)
            try:
                transport = Transport(connection, user_agent="hami-web/setup")
                Installer(transport, settings.NAMESPACE).run(wanted)
            finally:
                connection.close()
        except (Unauthorized, Forbidden) as error:
            raise Refused(Fault.API_SERVER_FORBIDS, str(error)) from error
        except ClusterError as error:
            raise Refused(Fault.API_SERVER, str(error)) from error
        except SetupFailed as error:
            raise CommandError(str(error)) from error
