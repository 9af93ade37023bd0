"""``manage.py configuration``: what this process would be configured with, secrets hidden."""

from __future__ import annotations

import json

from django.core.management.base import BaseCommand, CommandParser

from hami_web.environment import SETTINGS


class Command(BaseCommand):
    """Reads only the environment."""

    help = "Show every setting of extender, web and worker: value, origin and what is allowed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("-o", "--output", choices=["table", "json"], default="table")

    def handle(self, *_arguments: object, **options: object) -> None:
        rows = [
            {
                "name": setting.name,
                "value": setting.shown,
                "origin": "environment" if setting.given else "default",
                "allowed": setting.allowed,
            }
            for setting in sorted(SETTINGS.values(), key=lambda setting: setting.name)
        ]
        if options["output"] == "json":
            self.stdout.write(json.dumps(rows, ensure_ascii=False, indent=2))
            return
        widths = [max(len(row[key]) for row in rows) for key in ("name", "value", "origin")]
        for row in rows:
            cells = zip((row["name"], row["value"], row["origin"]), widths, strict=True)
            padded = "  ".join(cell.ljust(width) for cell, width in cells)
            self.stdout.write(f"{padded}  {row['allowed']}")
