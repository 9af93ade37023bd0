"""What may be imported where, tried in fresh interpreters."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import hami_web.core

ROOT = Path(__file__).parents[2]
CORE = sorted(f"hami_web.core.{m.name}" for m in pkgutil.iter_modules(hami_web.core.__path__))


def test_the_core_needs_nothing_but_the_standard_library() -> None:
    """``-S`` leaves site-packages out, so that any other import fails."""
    program = f"import importlib, sys; sys.path.insert(0, {str(ROOT)!r})\n" + "\n".join(
        f"importlib.import_module({name!r})" for name in CORE
    )
    subprocess.run([sys.executable, "-S", "-c", program], check=True, timeout=30)


def test_the_control_plane_does_not_load_the_agent() -> None:
    program = (
        "import sys, hami_web.wsgi, hami_web.asgi\n"
        "sys.exit(any(name.split('.')[0] in ('node_agent', 'pynvml') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30, cwd=ROOT)


def test_the_extender_runs_without_what_only_other_roles_need() -> None:
    program = (
        "import os, sys\n"
        "for name in ('celery', 'redis', 'psycopg', 'rest_framework', 'drf_spectacular'):\n"
        "    sys.modules[name] = None\n"
        "os.environ['HAMI_ROLE'] = 'extender'\n"
        "import hami_web.wsgi\n"
        "from django.core.management import call_command\n"
        "call_command('check')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30, cwd=ROOT)
