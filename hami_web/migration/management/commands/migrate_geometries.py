"""``manage.py migrate_geometries``: from whole-GPU geometries to an allowlist, explained."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hami_web.core.allowlist import render_allowlist
from hami_web.core.errors import InvalidField
from hami_web.core.geometries import Conversion, convert
from hami_web.migration.comparison import Profiles, changes, current_profiles
from hami_web.migration.geometry_files import FoundConfiguration, find_configurations
from hami_web.migration.wording import note_text


class Command(BaseCommand):
    """Reads a file or standard input, and changes nothing anywhere."""

    help = (
        "Convert knownMigGeometries of HAMi up to 2.9, or a configuration of NVIDIA's mig-parted, "
        "into migProfileAllowlist. Takes the file itself or a ConfigMap with it."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What to read, what to compare with, how to write."""
        parser.add_argument("file", help="a path, or - for standard input")
        parser.add_argument("--current", type=Path, help="device configuration to compare with")
        parser.add_argument("-o", "--output", choices=["yaml", "json"], default="yaml")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Convert, explain, compare."""
        try:
            found = find_configurations(_read(options["file"]))
            made = [(item, convert(item.document)) for item in found]
            current = _current(options["current"])
        except InvalidField as error:
            raise CommandError(str(error)) from error
        write = self._json if options["output"] == "json" else self._yaml
        write(made, current)

    def _yaml(
        self,
        made: list[tuple[FoundConfiguration, Conversion]],
        current: Profiles | None,
    ) -> None:
        for item, conversion in made:
            self.stdout.write(f"# {item.where}")
            for note in conversion.notes:
                self.stdout.write(f"# {note.code}: {note.where}: {note_text(note)}")
            for line in _changes(current, conversion):
                self.stdout.write(f"# {line}")
            self.stdout.write(render_allowlist(conversion.entries))

    def _json(
        self,
        made: list[tuple[FoundConfiguration, Conversion]],
        current: Profiles | None,
    ) -> None:
        answer = [
            {
                "source": item.where,
                "migProfileAllowlist": [
                    {"models": list(entry.models), "profiles": list(entry.profiles)}
                    for entry in conversion.entries
                ],
                "notes": [
                    {
                        "code": note.code.value,
                        "field": note.where,
                        "model": note.model,
                        "profile": note.profile,
                        "text": str(note_text(note)),
                    }
                    for note in conversion.notes
                ],
                "changes": list(_changes(current, conversion)),
            }
            for item, conversion in made
        ]
        self.stdout.write(json.dumps(answer, ensure_ascii=False, indent=2))


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name}: {error}") from error


def _current(path: Path | None) -> Profiles | None:
    if path is None:
        return None
    try:
        return current_profiles(_read(str(path)))
    except InvalidField as error:
        raise CommandError(f"--current: {path}: {error}") from error


def _changes(current: Profiles | None, conversion: Conversion) -> Iterable[str]:
    """What is other than in the current allowlist, where one was given."""
    return () if current is None else changes(current, conversion)
