"""``manage.py api_token``: make or revoke a token for the REST API."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hami_web.access.caller import Caller
from hami_web.access.commands import command_actor
from hami_web.access.models import ApiToken, User
from hami_web.access.roles import Role
from hami_web.access.tokens import TokenGrant, caller_of_token, create_token, revoke_token

DAYS_MAX = 3650


class Command(BaseCommand):
    """Print a new token once, or end an old one."""

    help = "Make a token for the REST API and print it once, or revoke one."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose token, what it may, and for how long."""
        parser.add_argument("name", help="whose token it is")
        parser.add_argument("--days", type=int, default=90, help="lifetime, 1…3650, default 90")
        parser.add_argument(
            "--role", choices=list(Role), default=Role.VIEWER, help="default %(default)s"
        )
        parser.add_argument(
            "--namespace", action="append", help="one that it sees, again for more; * for all"
        )
        parser.add_argument("--owner", help="the person whose rights it can never exceed")
        parser.add_argument("--revoke", action="store_true", help="end this token at once")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Make or revoke."""
        name, days = options["name"], options["days"]
        if options["revoke"]:
            if not revoke_token(name, by=command_actor()):
                raise CommandError(f"there is no token {name!r}")
            return
        if not 1 <= days <= DAYS_MAX:
            raise CommandError(f"--days: {days} is not allowed; allowed: 1…{DAYS_MAX}")
        if not 1 <= len(name) <= 128 or ApiToken.objects.filter(name=name).exists():
            raise CommandError(f"name: {name!r} is taken or not of 1…128 characters")
        grant = TokenGrant(
            role=Role(options["role"]),
            namespaces=options["namespace"],
            lifetime=timedelta(days=days),
            owner=_owner(options["owner"]),
        )
        token = create_token(name, grant, by=command_actor())
        self.stderr.write(_described(caller_of_token(token)))
        self.stdout.write(token)


def _described(caller: Caller) -> str:
    if caller.namespaces is None:
        seen = "what the cluster's rules let them" if caller.reviewed else "every namespace"
    else:
        seen = ", ".join(sorted(caller.namespaces)) or "no namespace (see --namespace)"
    return f"role {caller.role}, sees {seen}"


def _owner(name: str | None) -> User | None:
    if name is None:
        return None
    owner = User.objects.filter(username=name).first()
    if owner is None:
        raise CommandError(f"--owner: there is no person {name!r}")
    return owner
