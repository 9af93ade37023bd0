"""``manage.py api_token``: make or revoke a token for the REST API."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hami_web.api.models import ApiToken
from hami_web.api.tokens import create_token

DAYS_MAX = 3650


class Command(BaseCommand):
    """Print a new token once, or end an old one."""

    help = "Make a token for the REST API and print it once, or revoke one."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose token, and for how long."""
        parser.add_argument("name", help="whose token it is")
        parser.add_argument("--days", type=int, default=90, help="lifetime, 1…3650, default 90")
        parser.add_argument("--revoke", action="store_true", help="end this token at once")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Make or revoke."""
        name, days = options["name"], options["days"]
        if options["revoke"]:
            deleted, _ = ApiToken.objects.filter(name=name).delete()
            if not deleted:
                raise CommandError(f"there is no token {name!r}")
            return
        if not 1 <= days <= DAYS_MAX:
            raise CommandError(f"--days: {days} is not allowed; allowed: 1…{DAYS_MAX}")
        if not 1 <= len(name) <= 128 or ApiToken.objects.filter(name=name).exists():
            raise CommandError(f"name: {name!r} is taken or not of 1…128 characters")
        self.stdout.write(create_token(name, timedelta(days=days)))
