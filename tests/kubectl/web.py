"""A web process for the tests: its own database, mirrored from a kubeconfig's cluster.

``python -m tests.kubectl.web KUBECONFIG ADDRESS`` writes an API token and serves until it is ended.
"""

# ruff: noqa: PLC0415  # Django's settings come first

from __future__ import annotations

import os
import sys
import threading
from contextlib import closing
from pathlib import Path

import django


def main(kubeconfig: Path, address: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "hami_web.settings"
    django.setup()
    from django.core.management import call_command

    from hami_web.access.audit import SYSTEM
    from hami_web.access.roles import Role
    from hami_web.access.tokens import TokenGrant, create_token
    from hami_web.cluster.client import OfficialConnection
    from hami_web.cluster.listing import Listing
    from hami_web.cluster.resources import nodes, pods
    from hami_web.cluster.transport import Transport
    from tests.planning.clusters import Cluster

    call_command("migrate", verbosity=0)
    with closing(OfficialConnection(kubeconfig)) as connection:
        transport = Transport(connection, user_agent="tests")
        Cluster(
            list(Listing(nodes(transport), 500, threading.Event())),
            list(Listing(pods(transport), 500, threading.Event())),
        ).mirror()
    sys.stdout.write(create_token("tests", TokenGrant(Role.ADMIN), by=SYSTEM) + "\n")
    sys.stdout.flush()
    call_command("web", listen=address)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
