"""Command line of the control plane: ``hami-web`` installed, ``manage.py`` in a checkout."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")
    if sys.argv[1:2] == ["extender"]:
        os.environ.setdefault("HAMI_ROLE", "extender")
    from django.conf import settings  # noqa: PLC0415
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    from hami_web.startup import settings_or_exit  # noqa: PLC0415

    settings_or_exit(lambda: settings.LOGGING)
    execute_from_command_line(sys.argv)
