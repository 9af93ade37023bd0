"""``manage.py create_admin``: the first person who may do everything."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hami_web.access.accounts import RefusedAccount, create_person
from hami_web.access.commands import add_password_options, command_actor, read_password
from hami_web.access.models import User
from hami_web.access.roles import Role


class Command(BaseCommand):
    """Make an admin who signs in by password."""

    help = "Make an admin, with a password from a file, standard input, environment or terminal."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The name, and where the password is."""
        parser.add_argument("name", nargs="?", default="admin", help="default %(default)s")
        parser.add_argument(
            "--if-none", action="store_true", help="do nothing where there is an admin already"
        )
        add_password_options(parser)

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Make the admin."""
        if options["if_none"] and User.objects.filter(role=Role.ADMIN, is_active=True).exists():
            self.stderr.write("there is an admin already")
            return
        password = read_password(options)
        try:
            user = create_person(options["name"], password, Role.ADMIN, by=command_actor())
        except RefusedAccount as error:
            raise CommandError(str(error)) from error
        self.stderr.write(f"{user.username} may sign in as an admin")
