"""What the commands share: who runs them, and how they are given a password."""

from __future__ import annotations

import argparse
import getpass
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from hami_web.access.audit import Actor
from hami_web.access.caller import Source


def command_actor() -> Actor:
    """The account of the operating system that runs the command, and its machine."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        name = "unknown"
    return Actor(name, Source.COMMAND, address=socket.gethostname()[:64])


def add_password_options(parser: argparse.ArgumentParser) -> None:
    """The ways to give a password; never as an argument, which others could read."""
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--password-file", type=Path, help="file that holds the password")
    ways.add_argument("--password-stdin", action="store_true", help="read it from standard input")


def read_password(options: Mapping[str, Any]) -> str:
    """From a file, standard input, HAMI_ADMIN_PASSWORD, or a question at a terminal.

    Raises CommandError where none of them has one: there is no default.
    """
    path = options["password_file"]
    if path is not None:
        try:
            return str(path.read_text(encoding="utf-8")).rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--password-file: {path}: {error}") from error
    if options["password_stdin"]:
        return sys.stdin.readline().rstrip("\r\n")
    if settings.ADMIN_PASSWORD:
        return str(settings.ADMIN_PASSWORD)
    if not sys.stdin.isatty():
        raise CommandError(
            "no password: allowed: --password-file, --password-stdin, HAMI_ADMIN_PASSWORD, "
            "HAMI_ADMIN_PASSWORD_FILE, or a terminal"
        )
    password = getpass.getpass("Password: ")
    if password != getpass.getpass("Again: "):
        raise CommandError("the two passwords differ")
    return password
