"""``manage.py person``: make, change, end or remove someone who signs in."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hami_web.access import accounts
from hami_web.access.commands import add_password_options, command_actor, read_password
from hami_web.access.models import User
from hami_web.access.roles import Role


class Command(BaseCommand):
    """One person by name."""

    help = "Make a person, or change their role, namespaces or password, or end their account."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Who, and what is to be."""
        parser.add_argument("name", help="a new name makes a person")
        parser.add_argument("--role", choices=list(Role))
        parser.add_argument(
            "--namespace", action="append", help="one that they see, again for more; * for all"
        )
        parser.add_argument("--new-password", action="store_true", help="of one who is there")
        add_password_options(parser)
        ends = parser.add_mutually_exclusive_group()
        ends.add_argument("--disable", action="store_true", help="no sign-in until --enable")
        ends.add_argument("--enable", action="store_true")
        ends.add_argument("--remove", action="store_true", help="with all tokens")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Make or change."""
        user = User.objects.filter(username=options["name"]).first()
        try:
            if user is None:
                self._create(options)
            elif options["remove"]:
                accounts.remove_person(user, by=command_actor())
            else:
                self._change(user, options)
        except accounts.RefusedAccount as error:
            raise CommandError(str(error)) from error

    def _create(self, options: dict[str, Any]) -> None:
        name, role = options["name"], options["role"]
        if options["remove"] or options["disable"] or options["enable"]:
            raise CommandError(f"there is no person {name!r}")
        if role is None:
            raise CommandError(f"--role: {name!r} is new; allowed: {', '.join(Role)}")
        accounts.create_person(
            name,
            read_password(options),
            Role(role),
            namespaces=options["namespace"],
            by=command_actor(),
        )

    def _change(self, user: User, options: dict[str, Any]) -> None:
        given = options["password_file"] or options["password_stdin"] or options["new_password"]
        role = options["role"]
        accounts.change_person(
            user,
            role=None if role is None else Role(role),
            namespaces=options["namespace"],
            password=read_password(options) if given else None,
            active=False if options["disable"] else True if options["enable"] else None,
            by=command_actor(),
        )
